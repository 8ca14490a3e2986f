#include <algorithm>
#include <utility>

#include "headroom/complexity.h"
#include "headroom/error.h"
#include "length.h"
#include "regimes.h"

namespace headroom {
namespace {

/// Replaces `symbol` with half of `twice`. Coefficients of pairs are even, since a multiply–add is
/// 2 FLOP.
Expr substitute_half(const Expr& expr, Symbol symbol, const Expr& twice) {
  Expr result;
  for (Term term : expr.terms()) {
    const unsigned power = std::exchange(term.powers[index(symbol)], std::uint8_t{0});
    if (power == 0) {
      result += Expr::from_terms({term});
      continue;
    }
    if (power > 1 || term.coefficient % 2 != 0) {
      throw Error(ErrorCode::internal, "an odd coefficient of pairs");
    }
    term.coefficient /= 2;
    result += Expr::from_terms({term}) * twice;
  }
  return result;
}

/// Twice the pairs of a window, and its keys (bindings_of).
struct WindowSizes {
  Expr twice_pairs;
  Expr keys;
};

/// While the sequence is shorter than the window.
WindowSizes growing_window(const WindowSpec& window) {
  const bool centred = window.kind == WindowKind::centred;
  return {centred ? Integer{2} * kLength * kLength : kLength * kLength + kLength, kLength};
}

/// Once the sequence is longer than the window.
WindowSizes full_window(const WindowSpec& window) {
  const Integer size = window.size;
  if (window.kind == WindowKind::centred) {
    // Each query sees itself and `size` keys on either side, fewer at both ends.
    return {Integer{2} * kLength + Integer{4} * size * kLength -
                Expr(checked_multiply(2, checked_multiply(size, size + 1))),
            kLength};
  }
  return {Integer{2} * size * kLength - Expr(checked_multiply(size, size - 1)), size};
}

LengthPolynomial polynomial_of(const Expr& expr) {
  std::vector<Integer> coefficients(expr.degree(Symbol::seq_len) + 1U, 0);
  for (Term term : expr.terms()) {
    const unsigned power = std::exchange(term.powers[index(Symbol::seq_len)], std::uint8_t{0});
    if (term.powers != Monomial{}) {
      throw Error(ErrorCode::internal, "unbound symbols in " + format(Expr::from_terms({term})));
    }
    coefficients[power] = checked_add(coefficients[power], term.coefficient);
  }
  return LengthPolynomial(std::move(coefficients));
}

/// Upper bound of the lengths at which the polynomial changes sign (Cauchy's bound).
Integer last_change(const LengthPolynomial& polynomial) {
  const std::vector<Integer>& coefficients = polynomial.coefficients();
  const auto magnitude = [](Integer value) { return value < 0 ? -value : value; };
  Integer largest = 0;
  for (std::size_t i = 0; i + 1 < coefficients.size(); ++i) {
    largest = std::max(largest, magnitude(coefficients[i]));
  }
  return coefficients.empty() ? 1 : largest / magnitude(coefficients.back()) + 2;
}

/// p(N + 1) − p(N).
LengthPolynomial difference_of(const LengthPolynomial& polynomial) {
  const std::vector<Integer>& from = polynomial.coefficients();
  std::vector<Integer> result(from.empty() ? 0 : from.size() - 1, 0);
  for (std::size_t power = 1; power < from.size(); ++power) {
    // (N + 1)^power − N^power, by the binomial theorem.
    Integer binomial = 1;
    for (std::size_t i = 0; i < power; ++i) {
      result[i] = checked_add(result[i], checked_multiply(binomial, from[power]));
      binomial =
          checked_multiply(binomial, static_cast<Integer>(power - i)) / static_cast<Integer>(i + 1);
    }
  }
  return LengthPolynomial(std::move(result));
}

/// Lengths from..to, both included.
struct Range {
  Integer from = 1;
  Integer to = 1;
};

/// The first length in a range of monotone values where "above zero" differs from the range's
/// start; empty if none.
std::optional<Integer> only_change(const LengthPolynomial& polynomial, Range range) {
  const bool above = polynomial.at(range.from) > 0;
  if ((polynomial.at(range.to) > 0) == above) return std::nullopt;
  while (range.to - range.from > 1) {
    const Integer middle = range.from + (range.to - range.from) / 2;
    ((polynomial.at(middle) > 0) == above ? range.from : range.to) = middle;
  }
  return range.to;
}

Integer negated(Integer value) { return -value; }

LengthPolynomial operator-(const LengthPolynomial& polynomial) {
  std::vector<Integer> coefficients = polynomial.coefficients();
  std::ranges::transform(coefficients, coefficients.begin(), negated);
  return LengthPolynomial(std::move(coefficients));
}

/// Regimes of "above zero" within a range.
std::vector<Regime> regimes_in(const LengthPolynomial& polynomial, Range range) {
  std::vector<Regime> result{{range.from, polynomial.at(range.from) > 0}};
  if (range.to == range.from || polynomial.degree() == 0) return result;
  const LengthPolynomial step = difference_of(polynomial);
  // Lengths at which the slope changes sign, in either direction.
  std::vector<Integer> turns;
  for (const LengthPolynomial& one : {step, -step}) {
    for (const Regime& regime : regimes_in(one, {range.from, range.to - 1})) {
      turns.push_back(regime.from);
    }
  }
  turns.push_back(range.to);
  std::ranges::sort(turns);
  for (std::size_t i = 0; i + 1 < turns.size(); ++i) {
    if (turns[i] == turns[i + 1]) continue;
    const auto change = only_change(polynomial, {turns[i], turns[i + 1]});
    if (change) result.push_back({*change, !result.back().above});
  }
  return result;
}

}  // namespace

LengthPolynomial::LengthPolynomial(std::vector<Integer> coefficients)
    : coefficients_(std::move(coefficients)) {
  while (!coefficients_.empty() && coefficients_.back() == 0) coefficients_.pop_back();
}

unsigned LengthPolynomial::degree() const noexcept {
  return coefficients_.empty() ? 0 : static_cast<unsigned>(coefficients_.size()) - 1;
}

Integer LengthPolynomial::at(Integer length) const {
  Integer value = 0;
  for (auto it = coefficients_.rbegin(); it != coefficients_.rend(); ++it) {
    value = checked_add(checked_multiply(value, length), *it);
  }
  return value;
}

LengthPolynomial operator-(const LengthPolynomial& a, const LengthPolynomial& b) {
  std::vector<Integer> result(std::max(a.coefficients().size(), b.coefficients().size()), 0);
  std::ranges::copy(a.coefficients(), result.begin());
  for (std::size_t i = 0; i < b.coefficients().size(); ++i) {
    result[i] = checked_add(result[i], -b.coefficients()[i]);
  }
  return LengthPolynomial(std::move(result));
}

Integer LengthFunction::at(Integer length) const {
  const auto next = std::ranges::upper_bound(pieces, length, {}, &LengthPiece::from);
  if (next == pieces.begin()) throw Error(ErrorCode::internal, "lengths start at 1");
  return std::prev(next)->polynomial.at(length);
}

namespace {

/// A window, and the symbols of the keys and pairs that it leaves.
struct WindowSymbols {
  WindowSpec window;
  Symbol keys;
  Symbol pairs;
};

/// The window of the graph's layers, or the keys that an indexer chooses: as many as a window of
/// that size leaves.
WindowSymbols window_in(const Expr& cost, const Graph& graph) {
  const bool chosen = cost.degree(Symbol::chosen_pairs) > 0 || cost.degree(Symbol::chosen_keys) > 0;
  if (!chosen) return {graph.traits.window, Symbol::windowed_keys, Symbol::windowed_pairs};
  const WindowSpec choice{WindowKind::sliding, graph.traits.indexer_top_k};
  return {choice, Symbol::chosen_keys, Symbol::chosen_pairs};
}

}  // namespace

LengthFunction in_length(const Expr& cost, const Graph& graph) {
  if (graph.traits.compresses_keys()) {
    throw Error(ErrorCode::invalid_input,
                "the cost of compressed keys is not a polynomial in the length", {},
                "use a model whose attention reads single keys");
  }
  const bool parts_of_encoder = cost.degree(Symbol::transient_global_tokens) > 0 ||
                                cost.degree(Symbol::encoder_windowed_pairs) > 0;
  if (parts_of_encoder) {
    throw Error(ErrorCode::invalid_input,
                "the cost of windows and global tokens of an encoder is not a polynomial in the "
                "length",
                {}, "use a model whose encoder attends to all positions");
  }
  const bool chooses =
      cost.degree(Symbol::chosen_pairs) > 0 || cost.degree(Symbol::chosen_keys) > 0;
  if (chooses && graph.traits.indexed_block > 1) {
    throw Error(ErrorCode::invalid_input,
                "the cost of keys chosen in blocks is not a polynomial in the length", {},
                "use " + quoted(Setting::attention) + " eager, which computes all pairs");
  }
  Bindings sizes = graph.sizes;
  sizes.set(Symbol::batch_size, 1);
  sizes.set(Symbol::past_len, 0);
  const Expr whole = substitute_half(cost.substitute(sizes)
                                         .substitute(Symbol::visible_keys, kLength)
                                         .substitute(Symbol::enc_seq_len, kLength)
                                         .substitute(Symbol::chunked_tokens, kLength)
                                         .substitute(Symbol::encoder_block_tokens, kLength),
                                     Symbol::visible_pairs, kLength * kLength + kLength);
  const WindowSymbols symbols = window_in(whole, graph);
  const auto with_window = [&](const WindowSizes& window) {
    return polynomial_of(substitute_half(whole.substitute(symbols.keys, window.keys), symbols.pairs,
                                         window.twice_pairs));
  };
  const bool windowed = whole.degree(symbols.pairs) > 0 || whole.degree(symbols.keys) > 0;
  if (!windowed) return {{{1, polynomial_of(whole)}}};
  if (symbols.window.kind == WindowKind::chunked) {
    throw Error(ErrorCode::invalid_input,
                "the cost of chunked windows is not a polynomial in the length", {},
                "use a model with sliding windows, or " + quoted(Setting::attention) + " eager");
  }
  return {{{1, with_window(growing_window(symbols.window))},
           {checked_add(symbols.window.size, 1), with_window(full_window(symbols.window))}}};
}

std::vector<Regime> regimes(const LengthFunction& a, const LengthFunction& b) {
  std::vector<Integer> starts;
  for (const LengthFunction* function : {&a, &b}) {
    for (const LengthPiece& piece : function->pieces) starts.push_back(piece.from);
  }
  std::ranges::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  const auto piece_at = [](const LengthFunction& function, Integer length) {
    return std::prev(std::ranges::upper_bound(function.pieces, length, {}, &LengthPiece::from))
        ->polynomial;
  };
  std::vector<Regime> result;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const LengthPolynomial polynomial = piece_at(a, starts[i]) - piece_at(b, starts[i]);
    const Integer end =
        i + 1 < starts.size() ? starts[i + 1] - 1 : std::max(starts[i], last_change(polynomial));
    for (const Regime& regime : regimes_in(polynomial, {starts[i], end})) {
      const bool continues = !result.empty() && result.back().above == regime.above;
      if (!continues) result.push_back(regime);
    }
  }
  return result;
}

std::optional<Integer> overtakes_at(const LengthFunction& a, const LengthFunction& b) {
  const Regime last = regimes(a, b).back();
  return last.above ? std::optional(last.from) : std::nullopt;
}

}  // namespace headroom
