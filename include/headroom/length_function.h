// Costs as functions of the sequence length alone, and the length at which one overtakes another,
// exactly over the integers.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/graph.h"

namespace headroom {

/// A polynomial in the length with integer coefficients. Invariant: the last coefficient is
/// nonzero.
class LengthPolynomial {
 public:
  /// Zero.
  LengthPolynomial() = default;
  /// coefficients[i] belongs to the i-th power.
  explicit LengthPolynomial(std::vector<Integer> coefficients);

  [[nodiscard]] const std::vector<Integer>& coefficients() const noexcept { return coefficients_; }
  /// The highest power; 0 for the zero polynomial.
  [[nodiscard]] unsigned degree() const noexcept;
  /// The exact value. Throws Error{overflow}.
  [[nodiscard]] Integer at(Integer length) const;
  bool operator==(const LengthPolynomial&) const = default;

 private:
  std::vector<Integer> coefficients_;
};

[[nodiscard]] LengthPolynomial operator-(const LengthPolynomial& a, const LengthPolynomial& b);

/// A polynomial that holds from length `from` on. A window splits a cost into two pieces: before
/// and after it is full.
struct LengthPiece {
  Integer from = 1;
  LengthPolynomial polynomial;
};

/// A cost for every length ≥ 1. Invariant: pieces ascend and the first starts at 1.
struct LengthFunction {
  std::vector<LengthPiece> pieces;

  [[nodiscard]] Integer at(Integer length) const;
};

/// `cost`, for one sequence without a past, as a function of the length, with the model's sizes
/// substituted; the encoder reads as many tokens as the decoder. Throws Error{overflow}, and
/// Error{invalid_input} for chunked windows (WindowKind::chunked), whose cost is not a polynomial.
[[nodiscard]] LengthFunction in_length(const Expr& cost, const Graph& graph);

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

/// The length from which a > b always holds; empty if a is not above b for long sequences.
[[nodiscard]] std::optional<Integer> overtakes_at(const LengthFunction& a, const LengthFunction& b);

}  // namespace headroom
