// Crossovers, against what follows by hand from published formulas.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/crossover.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

const Crossover& crossover_of(const CrossoverReport& report, const std::string& left) {
  const auto found = std::ranges::find(report.crossovers, left, &Crossover::left_name);
  REQUIRE(found != report.crossovers.end());
  return *found;
}

Integer fraction(const Crossover& crossover, const Bindings& values) {
  return Expr::from_terms({*crossover.numerator}).evaluate(values) /
         Expr::from_terms({*crossover.denominator}).evaluate(values);
}

}  // namespace

TEST_CASE("attention exceeds an FFN of 4d at 4d tokens, and with its projections at 2d") {
  // Per layer 8·b·s·d² + 4·b·s²·d against 16·b·s·d² (Narayanan et al. 2021, arXiv 2104.04473).
  const CrossoverReport report = make_crossover_report(load_model("gpt2"), {});
  const Crossover& core = crossover_of(report, "scores and context");
  CHECK(core.at == Integer{4 * 768 + 1});
  CHECK(fraction(core, report.values) == 4 * 768);
  const Crossover& attention = crossover_of(report, "attention with its projections");
  CHECK(attention.at == Integer{2 * 768 + 1});
  CHECK(fraction(attention, report.values) == 2 * 768);
}

TEST_CASE("a fused kernel that skips masked pairs exceeds an FFN of 4d at 8d tokens") {
  // 2·b·s·(s + 1)·d against 16·b·s·d²: s > 8·d − 1.
  WorkloadRequest request;
  request.attention = AttentionImplementation::fused;
  const CrossoverReport report = make_crossover_report(load_model("gpt2"), request);
  const Crossover& core = crossover_of(report, "scores and context");
  CHECK(core.at == Integer{8 * 768});
  CHECK(format(core.left) == "s");
  CHECK(core.right.evaluate(report.values) == 8 * 768 - 1);
}

TEST_CASE("saved scores exceed the other activations near 34d/5h tokens") {
  // 5·b·s²·h against 34·b·s·d and 8·b·s for the norms' statistics (arXiv 2205.05198, section 4.1):
  // s > (34·768 + 8)/(5·12) = 435.3
  WorkloadRequest request;
  request.dtype = DType::bfloat16;
  request.kernels = Kernels::fused;
  const CrossoverReport report = make_crossover_report(load_model("gpt2"), request);
  CHECK(crossover_of(report, "saved scores and probabilities").at == Integer{436});
}

TEST_CASE("the cache of Llama-2-7B passes its weights at 25,706 tokens") {
  // 6,738,415,616 parameters / (2·32·4096 elements a token) = 25,705.03, in any one type.
  WorkloadRequest request;
  request.dtype = DType::float16;
  const CrossoverReport report = make_crossover_report(load_model("llama-2-7b"), request);
  CHECK(crossover_of(report, "KV-cache").at == Integer{25'706});
  const auto explained =
      make_explain_report(load_model("llama-2-7b"), request, Subject::kv, {}, 100);
  CHECK(explained.cache_passes_weights == Integer{25'706});
  // 2·2·32·4096 B for each of 128 + 100 − 1 tokens
  CHECK(explained.parts.back().value == Integer{524'288} * 227);
}

TEST_CASE("the cache of Llama 3 8B passes its weights by the type that it is stored in") {
  // 16,060,522,496 B of weights; 2·32·1024 elements a token: 65,536 B in float8, and 34 B for every
  // 32 elements, 69,632 B, in q8_0.
  KvCacheRequest kv_cache;
  const auto passes = [&] {
    const Model model = load_model("llama-3-8b");
    const auto report = make_crossover_report(model, {}, nullptr, kv_cache);
    const auto explained = make_explain_report(model, {}, Subject::kv, kv_cache);
    CHECK(explained.cache_passes_weights == crossover_of(report, "KV-cache").at);
    return crossover_of(report, "KV-cache").at;
  };
  CHECK(passes() == Integer{16'060'522'496 / 131'072 + 1});
  set_type(kv_cache, KvType::float8);
  CHECK(passes() == Integer{16'060'522'496 / 65'536 + 1});
  set_type(kv_cache, KvType::q8_0);
  CHECK(passes() == Integer{16'060'522'496 / 69'632 + 1});
}

TEST_CASE("a window's cache stops growing, and never passes the weights") {
  const auto mistral = make_explain_report(load_model("mistral-7b-v0.1"), {}, Subject::kv);
  CHECK(mistral.cache_passes_weights == std::nullopt);
}

namespace {

/// Where a decode step of Llama 2 7B with one token in the cache becomes bound by FLOPs.
Crossover ridge_of_h100(WorkloadRequest request) {
  request.past_len = 1;
  const MachineProfile machine = find_machine("h100-80gb");
  const CrossoverReport report = make_crossover_report(load_model("llama-2-7b"), request, &machine);
  Crossover ridge = crossover_of(report, "time of the FLOPs");
  REQUIRE(ridge.at.has_value());
  return ridge;
}

}  // namespace

TEST_CASE("a decode step is bound by FLOPs from a batch above the device's ridge on") {
  // With a short cache, 2·N·b FLOP against 2·N bytes: b above peak / bandwidth, 989.4 TFLOP/s and
  // 3.35 TB/s for an H100 (datasheet), and later for the cache that each sequence reads.
  WorkloadRequest request;
  request.dtype = DType::bfloat16;
  const Crossover ridge = ridge_of_h100(request);
  CHECK(*ridge.at > 295);
  CHECK(*ridge.at < 2 * 295);
}

TEST_CASE("GEMMs in float8 need the batch that the device's float8 peak asks for") {
  // As above with 1,979 TFLOP/s in the layers, whose weights stay 16 bits wide.
  WorkloadRequest request;
  request.dtype = DType::bfloat16;
  request.arithmetic = DType::float8;
  const Crossover ridge = ridge_of_h100(request);
  CHECK(*ridge.at > 590);
  CHECK(*ridge.at < 3 * 590);
  CHECK(ridge.source.find("295 FLOP") != std::string::npos);
  CHECK(ridge.source.find("591 in the layers' GEMMs") != std::string::npos);
}

TEST_CASE("new tokens are refused for figures other than the cache") {
  CHECK(refusal_of([] {
          return make_explain_report(load_model("gpt2"), {}, Subject::flops, {}, 10);
        }).find("new tokens") != std::string::npos);
}
