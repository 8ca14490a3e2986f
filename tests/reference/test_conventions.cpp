// Other tools' conventions against their published formulas.
#include <doctest/doctest.h>

#include "headroom/analysis.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Integer forward(const char* model, const Workload& workload, Convention convention) {
  return count(load_model(model).spec, workload, convention).figures.forward.matrix_flops;
}

Integer backward(const char* model, const Workload& workload, Convention convention) {
  return count(load_model(model).spec, workload, convention).figures.backward.matrix_flops;
}

Workload fused() {
  Workload workload;
  workload.attention = AttentionImplementation::fused;
  return workload;
}

constexpr Integer kLayers = 12;
constexpr Integer kSeq = 128;
constexpr Integer kHidden = 768;
constexpr Integer kVocab = 50257;

}  // namespace

TEST_CASE("torch counts all pairs, eager or fused") {
  CHECK(forward("gpt2", {}, Convention::torch) == 32228179968);
  CHECK(forward("gpt2", fused(), Convention::torch) == 32228179968);
  CHECK(forward("gpt2", fused(), Convention::headroom) < 32228179968);
}

TEST_CASE("torch counts five GEMMs in the backward pass of fused attention") {
  Workload workload = fused();
  workload.phase = Phase::train;
  const Integer attention = 4 * kLayers * kSeq * kSeq * kHidden;
  const Integer linear = 32228179968 - attention;
  CHECK(backward("gpt2", workload, Convention::torch) == 2 * linear + attention / 2 * 5);
}

TEST_CASE("fvcore counts multiply–adds and omits fused attention") {
  CHECK(forward("gpt2", {}, Convention::fvcore) == 32228179968 / 2);
  const Integer attention = 4 * kLayers * kSeq * kSeq * kHidden;
  CHECK(forward("gpt2", fused(), Convention::fvcore) == (32228179968 - attention) / 2);
}

TEST_CASE("Megatron-LM halves the pairs under a causal mask only") {
  const Integer attention = 4 * kLayers * kSeq * kSeq * kHidden;
  CHECK(forward("gpt2", {}, Convention::megatron) == 32228179968 - attention / 2);
  CHECK(forward("bert-base", {}, Convention::megatron) == 22348431360);
}

TEST_CASE("a decoder costs Megatron-LM's 24·b·s·l·d²·(1 + s/(6·d) + V/(12·l·d))") {
  const double linear = static_cast<double>(24 * kSeq * kLayers * kHidden * kHidden);
  const double s = static_cast<double>(kSeq);
  const double d = static_cast<double>(kHidden);
  const double whole =
      linear *
      (1 + s / (6 * d) + static_cast<double>(kVocab) / (12 * static_cast<double>(kLayers) * d));
  CHECK(static_cast<double>(forward("gpt2", {}, Convention::headroom)) == doctest::Approx(whole));
}

TEST_CASE("PaLM counts 2·N per token and 4·l·s·d for attention, a third of 6·N + 12·l·h·k·s") {
  const Integer parameters = 124439808;
  CHECK(forward("gpt2", {}, Convention::palm) ==
        2 * parameters * kSeq + 4 * kLayers * kSeq * kSeq * kHidden);
  Workload train;
  train.phase = Phase::train;
  const Counted counted = count(load_model("gpt2").spec, train, Convention::palm);
  CHECK(counted.figures.forward.matrix_flops + counted.figures.backward.matrix_flops ==
        (6 * parameters + 12 * kLayers * kHidden * kSeq) * kSeq);
}

TEST_CASE("every convention has a name, a unit and a summary") {
  for (const ConventionInfo& convention : conventions()) {
    CHECK(info(convention.convention).name == convention.name);
    CHECK_FALSE(convention.summary.empty());
    CHECK((convention.unit == "FLOP" || convention.unit == "MAC"));
  }
}
