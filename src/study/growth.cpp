#include "growth.h"

#include <algorithm>
#include <array>
#include <utility>

#include "headroom/complexity.h"
#include "headroom/expr.h"
#include "length.h"

namespace headroom {
namespace {

constexpr std::array kConstants{
    Symbol::batch_size,   Symbol::num_hidden_layers, Symbol::num_encoder_layers,
    Symbol::weight_bytes, Symbol::activation_bytes,  Symbol::kv_cache_bytes,
    Symbol::mask_bytes,
};

/// Sizes of at most the hidden size d: a term with d in their place outgrows them.
constexpr std::array kPartsOfWidth{Symbol::head_dim, Symbol::value_head_dim};

Monomial widened(Monomial powers) {
  for (const Symbol part : kPartsOfWidth) {
    const unsigned power = std::exchange(powers[index(part)], std::uint8_t{0});
    powers[index(Symbol::hidden_size)] =
        static_cast<std::uint8_t>(powers[index(Symbol::hidden_size)] + power);
  }
  return powers;
}

bool outgrows(const Monomial& a, const Monomial& b) {
  return a != b && (divides(b, a) || divides(widened(b), a));
}

/// `cost` for one sequence without a past, with layer counts substituted; pairs and windows stay.
Expr without_batch(const Expr& cost, const Graph& graph) {
  Bindings values;
  values.set(Symbol::batch_size, 1);
  values.set(Symbol::past_len, 0);
  for (const Symbol layers : {Symbol::num_hidden_layers, Symbol::num_encoder_layers}) {
    if (const auto value = graph.sizes.get(layers)) values.set(layers, *value);
  }
  return cost.substitute(values).substitute(Symbol::visible_keys, kLength);
}

/// The monomials of `expr` without coefficients and constants.
Expr bare_terms(const Expr& expr) {
  std::vector<Term> terms(expr.terms().begin(), expr.terms().end());
  for (Term& term : terms) {
    term.coefficient = 1;
    for (const Symbol constant : kConstants) term.powers[index(constant)] = 0;
  }
  return Expr::from_terms(std::move(terms));
}

}  // namespace

Growth growth_of(const Expr& cost, const Graph& graph) {
  const Expr window = Symbol::sliding_window;
  Expr expr = bare_terms(collapse(without_batch(cost, graph), graph.relations));
  expr = expr.substitute(Symbol::visible_pairs, kLength * kLength)
             .substitute(Symbol::windowed_pairs, window * kLength)
             .substitute(Symbol::windowed_keys, window)
             .substitute(Symbol::chunked_tokens, kLength)
             .substitute(Symbol::chosen_pairs, kLength)
             .substitute(Symbol::chosen_keys, Integer{1})
             .substitute(Symbol::compressed_keys, kLength)
             .substitute(Symbol::new_compressed_keys, kLength)
             .substitute(Symbol::heavily_compressed_keys, kLength)
             .substitute(Symbol::new_heavily_compressed_keys, kLength)
             .substitute(Symbol::heavily_compressed_pairs, kLength * kLength)
             .substitute(Symbol::intermediate_size, Symbol::hidden_size);
  expr = collapse(expr, graph.relations);
  Growth growth;
  for (Term term : expr.terms()) {
    const bool outgrown = std::ranges::any_of(
        expr.terms(), [&](const Term& other) { return outgrows(other.powers, term.powers); });
    term.coefficient = 1;
    if (!outgrown) growth.dominant += Expr::from_terms({term});
  }
  return growth;
}

std::string format(const Growth& growth) {
  if (growth.dominant.is_zero()) return "–";
  // Highest powers of the length first, as in the literature.
  std::vector<Term> terms(growth.dominant.terms().begin(), growth.dominant.terms().end());
  std::ranges::stable_sort(terms, std::greater<>{}, [](const Term& term) {
    return term.powers[index(Symbol::seq_len)] + term.powers[index(Symbol::new_tokens)];
  });
  std::string sum;
  for (const Term& term : terms) {
    sum += (sum.empty() ? "" : " + ") + format(Expr::from_terms({term}));
  }
  return "O(" + sum + ")";
}

Expr of_one_sequence(const Expr& cost, const Graph& graph) {
  const Expr window = Symbol::sliding_window;
  Expr expr = without_batch(cost, graph);
  const auto halved = [&](Symbol symbol, const Expr& twice) {
    Expr result;
    for (Term term : expr.terms()) {
      // An odd coefficient cannot be halved; the symbol stays.
      if (term.powers[index(symbol)] != 1 || term.coefficient % 2 != 0) {
        result += Expr::from_terms({term});
        continue;
      }
      term.powers[index(symbol)] = 0;
      term.coefficient /= 2;
      result += Expr::from_terms({term}) * twice;
    }
    expr = std::move(result);
  };
  halved(Symbol::visible_pairs, kLength * kLength + kLength);
  const bool centred = graph.traits.window.kind == WindowKind::centred;
  halved(Symbol::windowed_pairs, centred
                                     ? Integer{2} * kLength + Integer{4} * window * kLength -
                                           Integer{2} * window * window - Integer{2} * window
                                     : Integer{2} * window * kLength - window * window + window);
  return collapse(expr.substitute(Symbol::windowed_keys, window), graph.relations);
}

}  // namespace headroom
