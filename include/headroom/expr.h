// Expr: a polynomial with integer coefficients over the symbols of symbol.h.
// Invariant: terms are sorted in display order, monomials are distinct, coefficients are nonzero.
// So two Exprs compare equal, and print alike, exactly when they are the same polynomial.
//
//   24·b·s·d² + 4·b·s²·d        unicode
//   24*b*s*d^2 + 4*b*s^2*d      ascii
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/integer.h"
#include "headroom/symbol.h"

namespace headroom {

/// The exponent of every symbol in a product, by `index(symbol)`.
using Monomial = std::array<std::uint8_t, kSymbolCount>;

/// A product of symbols with an integer coefficient.
struct Term {
  Integer coefficient = 0;
  Monomial powers{};
  bool operator==(const Term&) const = default;
};

/// Values of some symbols; the others are unbound.
class Bindings {
 public:
  /// Binds `symbol`, replacing any earlier value.
  void set(Symbol symbol, Integer value) { values_[index(symbol)] = value; }
  /// The value of `symbol`; empty if unbound.
  [[nodiscard]] std::optional<Integer> get(Symbol symbol) const { return values_[index(symbol)]; }

 private:
  std::array<std::optional<Integer>, kSymbolCount> values_{};
};

/// An integer polynomial over symbols. A value type; every operation keeps the canonical form.
class Expr {
 public:
  /// Zero.
  Expr() = default;
  /// A constant. Implicit, so that `2 * b * s` reads as on paper.
  Expr(Integer constant);  // NOLINT(google-explicit-constructor)
  /// A single symbol; implicit for the same reason.
  Expr(Symbol symbol);  // NOLINT(google-explicit-constructor)

  /// The sum of `terms`, given in any order. Throws Error{overflow}.
  [[nodiscard]] static Expr from_terms(std::vector<Term> terms);

  [[nodiscard]] std::span<const Term> terms() const noexcept { return terms_; }
  [[nodiscard]] bool is_zero() const noexcept { return terms_.empty(); }
  /// The value of a constant polynomial; empty if any symbol occurs.
  [[nodiscard]] std::optional<Integer> constant() const;
  /// The highest power of `symbol`: the order of growth in it.
  [[nodiscard]] unsigned degree(Symbol symbol) const noexcept;

  /// Replaces `symbol` with `value`. Throws Error{overflow}.
  [[nodiscard]] Expr substitute(Symbol symbol, const Expr& value) const;
  /// Replaces every bound symbol with its value. Throws Error{overflow}.
  [[nodiscard]] Expr substitute(const Bindings& bindings) const;
  /// The exact value. Throws Error{overflow}, and Error{internal} for an unbound symbol.
  [[nodiscard]] Integer evaluate(const Bindings& bindings) const;

  Expr& operator+=(const Expr& other);
  Expr& operator-=(const Expr& other);
  bool operator==(const Expr&) const = default;

 private:
  std::vector<Term> terms_;
};

/// Sum, difference and product; each throws Error{overflow}.
[[nodiscard]] Expr operator+(const Expr& a, const Expr& b);
[[nodiscard]] Expr operator-(const Expr& a, const Expr& b);
[[nodiscard]] Expr operator*(const Expr& a, const Expr& b);

/// Returns whether monomial `a` prints before `b`: by layer count, then by ascending power of the
/// sequence lengths (terms without a length last), then by descending powers of the model's sizes.
[[nodiscard]] bool display_before(const Monomial& a, const Monomial& b) noexcept;

/// A rewrite rule such as h·k → d: replaces `product` in every term that it divides. `replacement`
/// must not contain `product`.
struct Relation {
  Monomial product{};
  Expr replacement;
};

/// Makes the relation `product` → `replacement`.
[[nodiscard]] Relation relation(std::initializer_list<Symbol> product, Expr replacement);

/// Applies each relation in turn, as often as it matches.
[[nodiscard]] Expr collapse(const Expr& expr, std::span<const Relation> relations);

/// Output syntax of a formula.
enum class Notation { unicode, ascii, latex };

/// Prints `expr` in its canonical form.
[[nodiscard]] std::string format(const Expr& expr, Notation notation = Notation::unicode);

/// Prints `expr` with values in place of bound symbols: "24·1·128·768² + 4·1·128²·768".
[[nodiscard]] std::string format_with_values(const Expr& expr, const Bindings& bindings,
                                             Notation notation = Notation::unicode);

}  // namespace headroom
