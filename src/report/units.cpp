#include "units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "byte_text.h"

namespace headroom::detail {
namespace {

constexpr std::array<std::string_view, 11> kFlops{"FLOP",  "kFLOP", "MFLOP", "GFLOP",
                                                  "TFLOP", "PFLOP", "EFLOP", "ZFLOP",
                                                  "YFLOP", "RFLOP", "QFLOP"};
constexpr std::array<std::string_view, 11> kMultiplyAdds{
    "MAC", "kMAC", "MMAC", "GMAC", "TMAC", "PMAC", "EMAC", "ZMAC", "YMAC", "RMAC", "QMAC"};

Unit choose(std::span<const std::string_view> names, Integer step, Integer value) {
  Unit unit{names.front(), 1};
  for (const std::string_view name : names.subspan(1)) {
    if (value / step < unit.size) break;
    unit = {name, unit.size * step};
  }
  return unit;
}

}  // namespace

Unit byte_unit(Integer bytes) {
  const ByteUnit unit = fitting_byte_unit(bytes);
  return {unit.name, unit.size};
}

Unit operation_unit(Integer operations, OperationUnit kind) {
  return kind == OperationUnit::flop ? choose(kFlops, 1000, operations)
                                     : choose(kMultiplyAdds, 1000, operations);
}

std::string grouped(double value, int decimals) {
  std::string digits = fmt::format("{:.{}f}", value, decimals);
  for (std::size_t at = std::min(digits.find('.'), digits.size()); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string short_text(double value) {
  if (value >= 100) return grouped(value, 0);
  if (value >= 10) return fmt::format("{:.1f}", value);
  if (value >= 1) return fmt::format("{:.2f}", value);
  if (value == 0) return "0";
  return value < 0.001 ? "<0.001" : fmt::format("{:#.3g}", value);
}

std::string deviation_text(double deviation) {
  if (deviation == 0) return "0";
  if (std::abs(deviation) < 0.0005) return "<0.1 %";
  return fmt::format("{}{:.1f} %", deviation < 0 ? "−" : "+", 100 * std::abs(deviation));
}

std::string duration(double seconds) {
  if (seconds >= 1) return grouped(seconds, 3) + " s";
  if (seconds >= 1e-3) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.1f} µs", seconds * 1e6);
}

}  // namespace headroom::detail
