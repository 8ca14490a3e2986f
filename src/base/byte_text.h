// Bytes in a unit that fits.
#pragma once

#include <string>
#include <string_view>

#include "headroom/expr.h"

namespace headroom::detail {

/// A power of 1024: {"GiB", 2³⁰}.
struct ByteUnit {
  std::string_view name;
  Integer size;
};

/// The largest unit of which `bytes` has at least one; B to YiB.
[[nodiscard]] ByteUnit fitting_byte_unit(Integer bytes) noexcept;

/// "22.59 GiB", "465.15 PiB"
[[nodiscard]] std::string byte_text(Integer bytes);

}  // namespace headroom::detail
