// Units on screen: one unit per column, chosen from its largest value. Internal to src/report.
#pragma once

#include <string>
#include <string_view>

#include "headroom/expr.h"

namespace headroom::detail {

/// A unit and its size in base units.
struct Unit {
  std::string_view name;
  Integer size = 1;
};

/// B, KiB, MiB, … (powers of 1024): the largest unit not above `bytes`.
[[nodiscard]] Unit byte_unit(Integer bytes);

enum class OperationUnit { flop, multiply_add };
/// FLOP, kFLOP, MFLOP, … or MAC, kMAC, … (powers of 1000): the largest unit not above
/// `operations`.
[[nodiscard]] Unit operation_unit(Integer operations, OperationUnit kind);

/// "37,801.0": the digits of a value that is not negative, with separators of thousands.
[[nodiscard]] std::string grouped(double value, int decimals);

/// Three significant digits of a value that is not negative: "1,234", "12.3", "0.0120", "<0.001".
[[nodiscard]] std::string short_text(double value);

/// A fraction of deviation: "+2.2 %", "−36.4 %", "0", "<0.1 %".
[[nodiscard]] std::string deviation_text(double deviation);

/// "1.234 s", "81.250 ms", "3.1 µs".
[[nodiscard]] std::string duration(double seconds);

}  // namespace headroom::detail
