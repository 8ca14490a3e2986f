// Crossovers, exact over the integers, against an exhaustive search.
#include <doctest/doctest.h>

#include <random>

#include "headroom/error.h"
#include "layers.h"
#include "regimes.h"

namespace headroom::test {
namespace {

LengthFunction whole(std::vector<Integer> coefficients) {
  return {{{1, LengthPolynomial(std::move(coefficients))}}};
}

/// Regimes of a > b, by checking every length.
std::vector<Regime> regimes_by_search(const LengthFunction& a, const LengthFunction& b,
                                      Integer last) {
  std::vector<Regime> result;
  for (Integer n = 1; n <= last; ++n) {
    const bool above = a.at(n) > b.at(n);
    if (result.empty() || result.back().above != above) result.push_back({n, above});
  }
  return result;
}

}  // namespace

TEST_CASE("attention's GEMMs overtake its projections at s = 2·d + 1") {
  const LengthFunction core = whole({0, 0, 4 * 512});
  const LengthFunction projections = whole({0, 8 * 512 * 512});
  CHECK(*overtakes_at(core, projections) == 2 * 512 + 1);
  CHECK_FALSE(overtakes_at(projections, core).has_value());
  CHECK(core.at(1024) == projections.at(1024));
  CHECK(core.at(1025) > projections.at(1025));
}

TEST_CASE("softmax attention overtakes linear attention beyond the head dimension") {
  const LayerComplexity softmax = layer_of(kSelfAttention);
  const LayerComplexity linear = layer_of(kLinearAttention);
  // 4·s²·d > s·(4·d·k + 2·d) at s > k + 1/2.
  const Integer n = *overtakes_at(softmax.core->by_length, linear.core->by_length);
  CHECK(n == 65);
  CHECK(softmax.core->by_length.at(n - 1) <= linear.core->by_length.at(n - 1));
  CHECK(softmax.core->by_length.at(n) > linear.core->by_length.at(n));
}

TEST_CASE("equal costs never overtake each other") {
  const LengthFunction cost = whole({3, 5, 7});
  CHECK(regimes(cost, cost) == std::vector<Regime>{{1, false}});
  CHECK_FALSE(overtakes_at(cost, cost).has_value());
}

TEST_CASE("cubics that cross three times have four regimes") {
  // (n − 3)·(n − 10)·(n − 50) > 0
  const LengthFunction a = whole({0, 680, 0, 1});
  const LengthFunction b = whole({1500, 0, 63, 0});
  const std::vector<Regime> expected{{1, false}, {4, true}, {10, false}, {51, true}};
  CHECK(regimes(a, b) == expected);
}

TEST_CASE("regimes of random polynomials equal those of a search") {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> coefficient(-40, 40);
  std::uniform_int_distribution<std::size_t> terms(1, 5);
  for (int i = 0; i < 300; ++i) {
    const auto draw = [&] {
      std::vector<Integer> coefficients(terms(random));
      for (Integer& one : coefficients) one = coefficient(random);
      return whole(std::move(coefficients));
    };
    const LengthFunction a = draw();
    const LengthFunction b = draw();
    // Cauchy's bound: no sign change beyond 1 + 80 / 1.
    CHECK(regimes(a, b) == regimes_by_search(a, b, 90));
  }
}

TEST_CASE("a window splits a cost into two pieces that join without a gap") {
  const LayerComplexity window = layer_of(kWindowAttention);
  const LayerComplexity all = layer_of(kSelfAttention);
  CHECK(window.flops.by_length.pieces.size() == 2);
  CHECK(regimes(all.flops.by_length, window.flops.by_length) ==
        regimes_by_search(all.flops.by_length, window.flops.by_length, 2000));
  // Up to 65 positions, a window of 64 on either side masks no pair.
  CHECK(*overtakes_at(all.flops.by_length, window.flops.by_length) == 66);
}

TEST_CASE("values beyond 128 bits are an error") {
  const LengthPolynomial large({0, 0, 0, Integer{1} << 100});
  CHECK_THROWS_AS((void)large.at(Integer{1} << 20), Error);
}

TEST_CASE("a chunked window, whose cost is not a polynomial, is an error") {
  Graph graph;
  graph.traits.window = {WindowKind::chunked, 4};
  CHECK_THROWS_AS((void)in_length(Integer{2} * Expr(Symbol::windowed_pairs), graph), Error);
}

}  // namespace headroom::test
