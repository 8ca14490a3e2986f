#include "headroom/expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "headroom/error.h"

namespace headroom {
namespace {

constexpr std::array kLayerCounts = {Symbol::num_hidden_layers, Symbol::num_encoder_layers};

/// Display rank of a term by the total power of its sequence lengths: linear, quadratic, …; terms
/// without a length come last.
unsigned length_rank(const Monomial& powers) {
  constexpr unsigned kLast = 256 * kSymbolCount;
  unsigned degree = 0;
  for (std::size_t i = index(Symbol::seq_len); i <= index(Symbol::past_len); ++i) {
    degree += powers[i];
  }
  return degree == 0 ? kLast : degree;
}

bool is_constant(const Monomial& powers) { return powers == Monomial{}; }

Monomial product(const Monomial& a, const Monomial& b) {
  Monomial result{};
  for (std::size_t i = 0; i < kSymbolCount; ++i) {
    const unsigned power = static_cast<unsigned>(a[i]) + b[i];
    if (power > 255) throw Error(ErrorCode::overflow, "a formula has a power above 255");
    result[i] = static_cast<std::uint8_t>(power);
  }
  return result;
}

Expr power(const Expr& base, unsigned exponent) {
  Expr result = Integer{1};
  for (; exponent > 0; --exponent) result = result * base;
  return result;
}

/// The canonical form of `terms`, which are in display order: one term for each monomial, none
/// zero.
std::vector<Term> canonical(std::span<const Term> terms) {
  std::vector<Term> merged;
  merged.reserve(terms.size());
  for (const Term& term : terms) {
    if (!merged.empty() && merged.back().powers == term.powers) {
      merged.back().coefficient = checked_add(merged.back().coefficient, term.coefficient);
    } else {
      merged.push_back(term);
    }
  }
  std::erase_if(merged, [](const Term& term) { return term.coefficient == 0; });
  return merged;
}

}  // namespace

bool display_before(const Monomial& a, const Monomial& b) noexcept {
  if (is_constant(a) != is_constant(b)) return is_constant(b);
  for (const Symbol count : kLayerCounts) {
    if (a[index(count)] != b[index(count)]) return a[index(count)] > b[index(count)];
  }
  const unsigned rank_of_a = length_rank(a);
  const unsigned rank_of_b = length_rank(b);
  return rank_of_a != rank_of_b ? rank_of_a < rank_of_b : a > b;
}

bool divides(const Monomial& divisor, const Monomial& powers) noexcept {
  return std::ranges::equal(divisor, powers, [](auto small, auto large) { return small <= large; });
}

Expr::Expr(Integer constant) {
  if (constant != 0) terms_.push_back({constant, {}});
}

Expr::Expr(Symbol symbol) {
  Term term{1, {}};
  term.powers[index(symbol)] = 1;
  terms_.push_back(term);
}

Expr Expr::from_terms(std::vector<Term> terms) {
  std::ranges::sort(terms, display_before, &Term::powers);
  Expr result;
  result.terms_ = canonical(terms);
  return result;
}

std::optional<Integer> Expr::constant() const {
  if (terms_.empty()) return Integer{0};
  if (terms_.size() == 1 && is_constant(terms_.front().powers)) return terms_.front().coefficient;
  return std::nullopt;
}

unsigned Expr::degree(Symbol symbol) const noexcept {
  unsigned degree = 0;
  for (const Term& term : terms_) degree = std::max<unsigned>(degree, term.powers[index(symbol)]);
  return degree;
}

Expr Expr::substitute(Symbol symbol, const Expr& value) const {
  Expr result;
  for (Term term : terms_) {
    const unsigned exponent = std::exchange(term.powers[index(symbol)], std::uint8_t{0});
    result += from_terms({term}) * power(value, exponent);
  }
  return result;
}

Expr Expr::substitute(const Bindings& bindings) const {
  std::vector<Term> terms(terms_);
  for (Term& term : terms) {
    for (const SymbolInfo& symbol : symbols()) {
      const auto value = bindings.get(symbol.symbol);
      std::uint8_t& exponent = term.powers[index(symbol.symbol)];
      if (!value || exponent == 0) continue;
      term.coefficient = checked_multiply(term.coefficient, checked_power(*value, exponent));
      exponent = 0;
    }
  }
  return from_terms(std::move(terms));
}

Integer Expr::evaluate(const Bindings& bindings) const {
  const Expr rest = substitute(bindings);
  if (const auto value = rest.constant()) return *value;
  throw Error(ErrorCode::internal, fmt::format("unbound symbols in {}", format(rest)));
}

Expr& Expr::operator+=(const Expr& other) {
  std::vector<Term> terms;
  terms.reserve(terms_.size() + other.terms_.size());
  std::ranges::merge(terms_, other.terms_, std::back_inserter(terms), display_before, &Term::powers,
                     &Term::powers);
  terms_ = canonical(terms);
  return *this;
}

Expr& Expr::operator-=(const Expr& other) { return *this += Integer{-1} * other; }

Expr operator+(const Expr& a, const Expr& b) { return Expr(a) += b; }

Expr operator-(const Expr& a, const Expr& b) { return Expr(a) -= b; }

Expr operator*(const Expr& a, const Expr& b) {
  std::vector<Term> terms;
  terms.reserve(a.terms().size() * b.terms().size());
  for (const Term& left : a.terms()) {
    for (const Term& right : b.terms()) {
      terms.push_back({checked_multiply(left.coefficient, right.coefficient),
                       product(left.powers, right.powers)});
    }
  }
  return Expr::from_terms(std::move(terms));
}

Relation relation(std::initializer_list<Symbol> product, Expr replacement) {
  Relation result{{}, std::move(replacement)};
  for (const Symbol symbol : product) ++result.product[index(symbol)];
  return result;
}

Expr collapse(const Expr& expr, std::span<const Relation> relations) {
  Expr result = expr;
  for (const Relation& rule : relations) {
    const auto applies = [&](const Term& term) { return divides(rule.product, term.powers); };
    while (std::ranges::any_of(result.terms(), applies)) {
      Expr next;
      for (Term term : result.terms()) {
        if (!applies(term)) {
          next += Expr::from_terms({term});
          continue;
        }
        for (std::size_t i = 0; i < kSymbolCount; ++i) term.powers[i] -= rule.product[i];
        next += Expr::from_terms({term}) * rule.replacement;
      }
      result = std::move(next);
    }
  }
  return result;
}

}  // namespace headroom
