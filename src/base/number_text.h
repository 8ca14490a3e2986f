// Numbers in words that users and files write: decimal, without blanks, in any locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom::detail {

/// Removes the integer at the start of `text` and returns it; empty if there is none, or it needs
/// more than 64 bits.
[[nodiscard]] std::optional<std::int64_t> take_integer(std::string_view& text);
/// Removes the number at the start of `text`, such as "1.5e9", and returns it; empty if there is
/// none, or it is not finite.
[[nodiscard]] std::optional<double> take_decimal(std::string_view& text);
/// The integer that all of `text` is, or empty.
[[nodiscard]] std::optional<std::int64_t> integer_of(std::string_view text);
/// The finite number that all of `text` is, or empty.
[[nodiscard]] std::optional<double> decimal_of(std::string_view text);

}  // namespace headroom::detail
