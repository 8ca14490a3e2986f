// One line of a log: values behind known words. Internal to src/import.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headroom::detail {

class LogLine {
 public:
  explicit LogLine(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] bool has(std::string_view words) const noexcept;
  /// The line from `words` on; empty without them.
  [[nodiscard]] LogLine from(std::string_view words) const noexcept;

  /// The number behind `words`, blanks and "=", with "," between thousands; empty if there is none
  /// below 2^32.
  [[nodiscard]] std::optional<double> number_after(std::string_view words) const;
  /// Such a number without a fraction, below 2^53.
  [[nodiscard]] std::optional<std::int64_t> count_after(std::string_view words) const;
  /// Such a number above zero.
  [[nodiscard]] std::optional<std::int64_t> size_after(std::string_view words) const;
  /// Letters, digits, ".", "_" and "^" behind `words` and blanks; empty if there are none.
  [[nodiscard]] std::string_view word_after(std::string_view words) const noexcept;

 private:
  [[nodiscard]] std::optional<double> value_after(std::string_view words) const;
  /// The rest of the line behind `words`, blanks and "="; empty without them.
  [[nodiscard]] std::string_view rest_after(std::string_view words) const noexcept;

  std::string_view text_;
};

}  // namespace headroom::detail
