// Costs as functions of the sequence length alone, and where one overtakes another, exactly over
// the integers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/graph.h"

namespace headroom {

/// A polynomial in the length with integer coefficients. Invariant: the last one is not zero.
class LengthPolynomial {
 public:
  /// Zero.
  LengthPolynomial() = default;
  /// coefficients[i] stands before the i-th power.
  explicit LengthPolynomial(std::vector<Integer> coefficients);

  [[nodiscard]] const std::vector<Integer>& coefficients() const noexcept { return coefficients_; }
  /// The highest power; 0 also for zero itself.
  [[nodiscard]] unsigned degree() const noexcept;
  /// The exact value. Throws Error{overflow}.
  [[nodiscard]] Integer at(Integer length) const;
  bool operator==(const LengthPolynomial&) const = default;

 private:
  std::vector<Integer> coefficients_;
};

[[nodiscard]] LengthPolynomial operator-(const LengthPolynomial& a, const LengthPolynomial& b);

/// A polynomial that holds from one length on. A window makes two pieces of a cost: while it is
/// not full yet, and afterwards.
struct LengthPiece {
  Integer from = 1;
  LengthPolynomial polynomial;
};

/// A cost for every length from 1 on. Invariant: pieces ascend, the first begins at 1.
struct LengthFunction {
  std::vector<LengthPiece> pieces;

  [[nodiscard]] Integer at(Integer length) const;
};

/// `cost` of one sequence without a past in the length alone, the model's own sizes put in; an
/// encoder reads as much as its decoder. Throws Error{invalid_input} for a window of runs
/// (WindowKind::chunked), which makes no polynomial, Error{overflow}.
[[nodiscard]] LengthFunction in_length(const Expr& cost, const Graph& graph);

/// A run of lengths, from `from` to where the next begins, in which one cost is above another or
/// is not.
struct Regime {
  Integer from = 1;
  bool above = false;
  bool operator==(const Regime&) const = default;
};

/// Where a > b holds, over all lengths from 1 on: regimes alternate, the last has no end. Exact:
/// a polynomial is monotone where its differences keep their sign, and these are of one degree
/// less. Throws Error{overflow}.
[[nodiscard]] std::vector<Regime> regimes(const LengthFunction& a, const LengthFunction& b);

/// The length from which on a > b holds for good; empty where it does not in the end.
[[nodiscard]] std::optional<Integer> overtakes_at(const LengthFunction& a, const LengthFunction& b);

}  // namespace headroom
