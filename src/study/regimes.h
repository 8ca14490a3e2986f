// Differences of costs as functions of the length, and the lengths at which their sign changes.
// Internal to src/study.
#pragma once

#include <vector>

#include "headroom/complexity.h"

namespace headroom {

[[nodiscard]] LengthPolynomial operator-(const LengthPolynomial& a, const LengthPolynomial& b);

/// A range of lengths, up to the next regime, in which one cost is above another or is not.
struct Regime {
  Integer from = 1;
  bool above = false;
  bool operator==(const Regime&) const = default;
};

/// Regimes of a > b over all lengths ≥ 1. They alternate; the last has no end. Exact: a polynomial
/// is monotone where its differences keep their sign, and those are of one degree less. Throws
/// Error{overflow}.
[[nodiscard]] std::vector<Regime> regimes(const LengthFunction& a, const LengthFunction& b);

}  // namespace headroom
