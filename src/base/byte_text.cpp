#include "byte_text.h"

#include <fmt/format.h>

#include <array>

namespace headroom::detail {

ByteUnit fitting_byte_unit(Integer bytes) noexcept {
  constexpr std::array<std::string_view, 9> kNames{"B",   "KiB", "MiB", "GiB", "TiB",
                                                   "PiB", "EiB", "ZiB", "YiB"};
  constexpr Integer kStep = 1024;
  ByteUnit unit{kNames.front(), 1};
  for (std::size_t i = 1; i < kNames.size() && bytes / kStep >= unit.size; ++i) {
    unit = {kNames[i], unit.size * kStep};
  }
  return unit;
}

std::string byte_text(Integer bytes) {
  const ByteUnit unit = fitting_byte_unit(bytes);
  const double value = static_cast<double>(bytes) / static_cast<double>(unit.size);
  return fmt::format("{:.{}f} {}", value, unit.size == 1 ? 0 : 2, unit.name);
}

}  // namespace headroom::detail
