// Units for people: one unit a column, chosen from its largest value. Internal to src/report.
#pragma once

#include <string>
#include <string_view>

#include "headroom/integer.h"

namespace headroom::detail {

/// A unit and how many base units it is.
struct Unit {
  std::string_view name;
  Integer size = 1;
};

/// B, KiB, MiB, … (powers of 1024): the largest that `bytes` still has one of.
[[nodiscard]] Unit byte_unit(Integer bytes);

/// FLOP, kFLOP, MFLOP, … (powers of 1000): the largest that `flops` still has one of.
/// `multiply_adds` says MAC in the place of FLOP.
enum class OperationUnit { flop, multiply_add };
[[nodiscard]] Unit operation_unit(Integer operations, OperationUnit kind);

/// Seconds in the unit that people read them in: "1.234 s", "81.250 ms", "3.1 µs".
[[nodiscard]] std::string duration(double seconds);

}  // namespace headroom::detail
