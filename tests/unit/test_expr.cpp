#include <doctest/doctest.h>

#include <set>
#include <string_view>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/expr.h"
#include "support/data.h"

using namespace headroom;

namespace {
const Expr b = Symbol::batch_size;
const Expr s = Symbol::seq_len;
const Expr d = Symbol::hidden_size;
const Expr h = Symbol::num_attention_heads;
const Expr k = Symbol::head_dim;
const Expr l = Symbol::num_hidden_layers;
const Expr V = Symbol::vocab_size;
}  // namespace

TEST_CASE("a polynomial is equal however it was constructed") {
  CHECK((b + s) * (b - s) == b * b - s * s);
  CHECK(Integer{2} * b * s + s * b == Integer{3} * s * b);
  CHECK((b - b).is_zero());
  CHECK((b - b) == Expr());
  CHECK(b * (s + d) == b * s + b * d);
}

TEST_CASE("the printed form is canonical, in UTF-8, ASCII and LaTeX") {
  const Expr layer = Integer{4} * d * s * s * b + Integer{24} * d * d * s * b;
  CHECK(format(layer) == "24·b·s·d² + 4·b·s²·d");
  CHECK(format(layer, Notation::ascii) == "24*b*s*d^2 + 4*b*s^2*d");
  CHECK(format(layer, Notation::latex) == "24\\,b\\,s\\,d^{2} + 4\\,b\\,s^{2}\\,d");
  CHECK(format(Integer{34} * b * s * d + Integer{5} * b * s * s * h) == "34·b·s·d + 5·b·s²·h");
  CHECK(format(Integer{2} * b * s - Integer{2} * b) == "2·b·s − 2·b");
  CHECK(format(Integer{-1} * b, Notation::ascii) == "-b");
  CHECK(format(Expr()) == "0");
  CHECK(format(Integer{7}) == "7");
  CHECK(format(b + Integer{1}) == "b + 1");
}

TEST_CASE("every symbol has a spelling of its own, and N stays free for the number of parameters") {
  std::set<std::string_view> unicode{"N"};
  std::set<std::string_view> latex{"N"};
  for (const SymbolInfo& symbol : symbols()) {
    CAPTURE(symbol.key);
    CHECK(unicode.insert(symbol.unicode).second);
    CHECK(latex.insert(symbol.latex).second);
  }
}

TEST_CASE("exponents of two digits print both") {
  Expr power = Integer{1};
  for (int i = 0; i < 12; ++i) power = power * d;
  CHECK(format(power) == "d¹²");
  CHECK(format(power, Notation::latex) == "d^{12}");
}

TEST_CASE("a formula prints with numbers in place of symbols") {
  Bindings values;
  values.set(Symbol::batch_size, 1);
  values.set(Symbol::seq_len, 128);
  values.set(Symbol::hidden_size, 768);
  const Expr layer = Integer{24} * b * s * d * d + Integer{4} * b * s * s * d;
  CHECK(format_with_values(layer, values) == "24·1·128·768² + 4·1·128²·768");
  CHECK(layer.evaluate(values) == 24 * 128 * 768 * 768 + 4 * 128 * 128 * 768);
}

TEST_CASE("an unbound symbol is an error that names it, not a zero") {
  Bindings values;
  values.set(Symbol::batch_size, 1);
  CHECK_THROWS_WITH_AS((void)(b * d).evaluate(values), "unbound symbols in d", Error);
}

TEST_CASE("an unbound symbol of a compiled formula is an error that names it, too") {
  Bindings sizes;
  sizes.set(Symbol::hidden_size, 768);
  const CompiledExpr formula(b * s * d + h, sizes);
  SymbolValues values;
  values.set(Symbol::batch_size, 2);
  CHECK_THROWS_WITH_AS((void)formula.evaluate(values),
                       "unbound symbols in a compiled formula: seq_len, num_attention_heads",
                       Error);
  values.set(Symbol::seq_len, 0);
  values.set(Symbol::num_attention_heads, 12);
  CHECK(formula.evaluate(values) == 12);
  values.set(Symbol::seq_len, 3);
  CHECK(formula.evaluate(values) == 2 * 3 * 768 + 12);
}

TEST_CASE("a compiled formula equals the formula for every workload") {
  Bindings sizes;
  sizes.set(Symbol::hidden_size, 64);
  const Expr formula = Integer{24} * b * s * d * d + Integer{4} * b * s * s * d - Integer{7} * s;
  const CompiledExpr compiled(formula, sizes);
  for (std::int64_t length = 0; length < 5; ++length) {
    Bindings values = sizes;
    values.set(Symbol::batch_size, 3);
    values.set(Symbol::seq_len, length);
    CHECK(compiled.evaluate(SymbolValues(values)) == formula.evaluate(values));
  }
}

TEST_CASE("substitution replaces a symbol with a polynomial") {
  CHECK((s * s).substitute(Symbol::seq_len, b + d) == b * b + Integer{2} * b * d + d * d);
  CHECK((d * s).substitute(Symbol::seq_len, Integer{0}).is_zero());
  CHECK(b.substitute(Symbol::seq_len, d) == b);
}

TEST_CASE("related sizes collapse wherever they occur together") {
  const Relation heads = relation({Symbol::num_attention_heads, Symbol::head_dim}, d);
  const std::vector<Relation> relations{heads};
  CHECK(collapse(h * k * h * k, relations) == d * d);
  CHECK(collapse(h * h * k, relations) == h * d);
  CHECK(collapse(h + k, relations) == h + k);
  const std::vector<Relation> inner{relation({Symbol::intermediate_size}, Integer{4} * d)};
  CHECK(collapse(Expr(Symbol::intermediate_size) * d, inner) == Integer{4} * d * d);
}

TEST_CASE("evaluation and construction report overflow") {
  Bindings values;
  values.set(Symbol::vocab_size, Integer{1} << 62);
  CHECK((V * V).evaluate(values) == Integer{1} << 124);
  CHECK_THROWS_AS((void)(V * V * V).evaluate(values), Error);
  const Expr large = Integer{1} << 126;
  CHECK_THROWS_AS((void)(large + large), Error);
  CHECK_THROWS_AS((void)(large * Integer{4}), Error);
}

TEST_CASE("the degree is the order of growth") {
  const Expr cost = l * (b * s * s * d + b * s * d * d);
  CHECK(cost.degree(Symbol::seq_len) == 2);
  CHECK(cost.degree(Symbol::hidden_size) == 2);
  CHECK(cost.degree(Symbol::vocab_size) == 0);
  CHECK(Expr().degree(Symbol::seq_len) == 0);
}
