// Arbitrary bytes as a program on a stack of polynomials: the laws of a ring hold, evaluation is a
// homomorphism, and the canonical form prints. Overflow is the only error.
#include <span>
#include <vector>

#include "fuzz_target.h"
#include "headroom/expr.h"

using namespace headroom;

namespace {

/// Polynomials of more terms only take longer.
constexpr std::size_t kMostTerms = 64;

Bindings values_by(std::uint8_t seed) {
  Bindings values;
  for (const SymbolInfo& symbol : symbols()) {
    values.set(symbol.symbol, Integer{(index(symbol.symbol) * 7 + seed) % 11});
  }
  return values;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void check_laws(const Expr& a, const Expr& b, const Bindings& values) {
  (void)test::accepts([&] {
    const Expr sum = a + b;
    require(sum == b + a);
    require(sum - b == a);
    require(sum.evaluate(values) == checked_add(a.evaluate(values), b.evaluate(values)));
  });
  (void)test::accepts([&] {
    const Expr product = a * b;
    require(product == b * a);
    require(product.evaluate(values) == checked_multiply(a.evaluate(values), b.evaluate(values)));
    require(product.substitute(values).constant() == product.evaluate(values));
    require(Expr::from_terms({product.terms().begin(), product.terms().end()}) == product);
  });
  for (const Notation notation : {Notation::unicode, Notation::ascii, Notation::latex}) {
    require(!format(a, notation).empty());
  }
}

void step(std::uint8_t code, std::uint8_t argument, std::vector<Expr>& stack) {
  const auto symbol = static_cast<Symbol>(argument % kSymbolCount);
  if (code < 64 || stack.size() < 2) {
    stack.emplace_back(symbol);
    return;
  }
  if (code < 96) {
    const Integer constant = Integer{argument} - 128;
    stack.emplace_back(code % 2 == 0 ? constant : constant * (Integer{1} << 100U));
    return;
  }
  const Expr b = stack.back();
  stack.pop_back();
  Expr& a = stack.back();
  if (code < 144) {
    a = a + b;
  } else if (code < 176) {
    a = a - b;
  } else if (code < 232) {
    a = a * b;
  } else {
    a = a.substitute(symbol, b);
  }
  if (a.terms().size() > kMostTerms) a = Integer{1};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<Expr> stack;
  for (std::size_t i = 0; i + 1 < size && i < 64; i += 2) {
    (void)test::accepts([&] { step(data[i], data[i + 1], stack); });
    if (stack.empty()) return 0;
  }
  if (stack.size() < 2) return 0;
  check_laws(stack.back(), stack[stack.size() - 2], values_by(data[0]));
  return 0;
}
