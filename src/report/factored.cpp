#include "factored.h"

#include <array>
#include <vector>

namespace headroom::detail {
namespace {

constexpr std::array kLayerCounts{Symbol::num_hidden_layers, Symbol::num_encoder_layers};

/// Removes the terms linear in `symbol` from `rest`; returns their sum divided by `symbol`.
Expr take_factor(std::vector<Term>& rest, Symbol symbol) {
  std::vector<Term> taken;
  std::erase_if(rest, [&](Term term) {
    if (term.powers[index(symbol)] != 1) return false;
    term.powers[index(symbol)] = 0;
    taken.push_back(term);
    return true;
  });
  return Expr::from_terms(std::move(taken));
}

std::string plus(const std::string& sum, const std::string& term) {
  if (sum.empty()) return term;
  const bool negative = term.starts_with("−");
  return negative ? sum + " − " + term.substr(std::string("−").size()) : sum + " + " + term;
}

}  // namespace

std::string format_factored(const Expr& expr) { return format_factored_with_values(expr, {}); }

std::string format_factored_with_values(const Expr& expr, const Bindings& values) {
  std::vector<Term> rest(expr.terms().begin(), expr.terms().end());
  std::string result;
  for (const Symbol symbol : kLayerCounts) {
    const Expr inner = take_factor(rest, symbol);
    if (inner.terms().size() < 2) {
      // A single term needs no parentheses.
      const Expr term = inner * symbol;
      if (!term.is_zero()) result = plus(result, format_with_values(term, values));
      continue;
    }
    result = plus(result, format_with_values(symbol, values) + "·(" +
                              format_with_values(inner, values) + ")");
  }
  const Expr remaining = Expr::from_terms(std::move(rest));
  if (!remaining.is_zero()) result = plus(result, format_with_values(remaining, values));
  return result.empty() ? "0" : result;
}

}  // namespace headroom::detail
