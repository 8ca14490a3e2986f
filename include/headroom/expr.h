// Expr: a polynomial with integer coefficients over the symbols of symbol.h.
// Invariant: terms are sorted in display order, no two have the same monomial, none is zero; so two
// Exprs are equal exactly when they are the same polynomial, and print the same way.
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

/// The power of every symbol in a product, by `index(symbol)`.
using Monomial = std::array<std::uint8_t, kSymbolCount>;

/// A product of symbols with an integer in front.
struct Term {
  Integer coefficient = 0;
  Monomial powers{};
  bool operator==(const Term&) const = default;
};

/// The values of some symbols.
class Bindings {
 public:
  /// Gives `symbol` a value, instead of the one it had.
  void set(Symbol symbol, Integer value) { values_[index(symbol)] = value; }
  /// The value of `symbol`; empty when it has none.
  [[nodiscard]] std::optional<Integer> get(Symbol symbol) const { return values_[index(symbol)]; }

 private:
  std::array<std::optional<Integer>, kSymbolCount> values_{};
};

class Expr {
 public:
  /// Zero.
  Expr() = default;
  /// A constant. Implicit, so that `2 * b * s` reads as it is written on paper.
  Expr(Integer constant);  // NOLINT(google-explicit-constructor)
  /// A single symbol; implicit for the same reason.
  Expr(Symbol symbol);  // NOLINT(google-explicit-constructor)

  /// The polynomial of these terms, in any order. Throws Error{overflow}.
  [[nodiscard]] static Expr from_terms(std::vector<Term> terms);

  [[nodiscard]] std::span<const Term> terms() const noexcept { return terms_; }
  [[nodiscard]] bool is_zero() const noexcept { return terms_.empty(); }
  /// The value, when no symbol is left in it.
  [[nodiscard]] std::optional<Integer> constant() const;
  /// The highest power of `symbol`: its order of growth in it.
  [[nodiscard]] unsigned degree(Symbol symbol) const noexcept;

  /// This polynomial with `value` in the place of `symbol`. Throws Error{overflow}.
  [[nodiscard]] Expr substitute(Symbol symbol, const Expr& value) const;
  /// This polynomial with every bound symbol replaced by its value. Throws Error{overflow}.
  [[nodiscard]] Expr substitute(const Bindings& bindings) const;
  /// The exact value. Throws Error{overflow}, and Error{internal} for a symbol without a value.
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

/// True when monomial `a` is printed before `b`: by layers, then by growing powers of the sequence
/// lengths (those without any last), then by falling powers of the model's sizes.
[[nodiscard]] bool display_before(const Monomial& a, const Monomial& b) noexcept;

/// A rule such as h·k → d: wherever all the symbols of `product` occur together in a term, they are
/// replaced. `replacement` must not contain `product` again.
struct Relation {
  Monomial product{};
  Expr replacement;
};

/// The relation of a product of symbols and what it equals.
[[nodiscard]] Relation relation(std::initializer_list<Symbol> product, Expr replacement);

/// `expr` after each relation in turn was applied as often as it can be.
[[nodiscard]] Expr collapse(const Expr& expr, std::span<const Relation> relations);

/// How a formula is written.
enum class Notation { unicode, ascii, latex };

/// The canonical form of `expr`.
[[nodiscard]] std::string format(const Expr& expr, Notation notation = Notation::unicode);

/// The same form with values in the place of symbols: "24·1·128·768² + 4·1·128²·768". Symbols
/// without a value stay.
[[nodiscard]] std::string format_with_values(const Expr& expr, const Bindings& bindings,
                                             Notation notation = Notation::unicode);

}  // namespace headroom
