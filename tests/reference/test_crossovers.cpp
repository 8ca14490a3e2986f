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

TEST_CASE("explain and its crossovers agree on the length where attention passes the FFN") {
  // Lengths of hybrids with Mamba, gated delta rules, convolutions, and an indexer.
  const auto length = [](const char* name, const std::string& costs) {
    const Model model = load_model(name);
    const CrossoverReport report = make_crossover_report(model, {});
    const auto explained = make_explain_report(model, {}, Subject::flops);
    REQUIRE(explained.ffn_crossover.has_value());
    CHECK_MESSAGE(explained.ffn_crossover->seq_len == crossover_of(report, costs).at, name);
    return explained.ffn_crossover->seq_len;
  };
  const std::string both = "scores and context, with convolutions and recurrences";
  CHECK(length("jamba-1.5-mini", both) == Integer{254'021});
  CHECK(length("granite-4.0-h-small", both) == Integer{136'259});
  CHECK(length("falcon-h1-0.5b", both) == Integer{5'754});
  CHECK(length("qwen3-next-80b-a3b", both) == Integer{16'822});
  CHECK(length("deepseek-v3.2", "scores and context, with the indexer") == Integer{7'806});
  CHECK(length("lfm2-350m", "scores and context, with convolutions") == Integer{18'430});
  CHECK(length("gpt2", "scores and context") == Integer{4 * 768 + 1});
}

TEST_CASE("saved scores of a training step have the logits of every token") {
  WorkloadRequest request;
  request.logits = Logits::last;
  for (const Phase phase : {Phase::prefill, Phase::decode}) {
    request.phase = phase;
    const CrossoverReport last = make_crossover_report(load_model("gpt2"), request);
    const CrossoverReport all = make_crossover_report(load_model("gpt2"), {});
    CHECK(crossover_of(last, "saved scores and probabilities").at ==
          crossover_of(all, "saved scores and probabilities").at);
  }
}

TEST_CASE("an inequality without its symbol keeps its sides") {
  // 4·d·k + 2·d per token of linear attention against 16·d²: never, since k < 4·d.
  const CrossoverReport linear = make_crossover_report(load_model("linear-transformer"), {});
  const Crossover& attention = crossover_of(linear, "linear attention");
  CHECK(attention.at == std::nullopt);
  CHECK(format(attention.left) == "2·k + 1");
  CHECK(format(attention.right) == "8·d");
  const MachineProfile machine = find_machine("h100-80gb");
  const CrossoverReport mamba = make_crossover_report(load_model("mamba-130m"), {}, &machine);
  CHECK(format(crossover_of(mamba, "KV-cache").left) == "8·l·b");
  // A state has no tokens.
  CHECK(crossover_of(mamba, "time of the FLOPs").source.find("tokens") == std::string::npos);
}

TEST_CASE("a model without costs to compare says so") {
  const auto text = [](const char* model) {
    return render(make_crossover_report(load_model(model), {}),
                  {Format::table, Detail::summary, 0, Colour::off});
  };
  CHECK(text("layer-rnn").find("no attention beside an FFN") != std::string::npos);
  CHECK(text("flux.1-dev").find("grow with two lengths") != std::string::npos);
}

TEST_CASE("new tokens beyond the model's positions are noted") {
  const auto report = make_explain_report(load_model("gpt2"), {}, Subject::kv, {}, 2'000);
  const auto exceeds = [](const std::string& note) {
    return note.find("2127 tokens exceed the 1024 positions") != std::string::npos;
  };
  CHECK(std::ranges::any_of(report.notes, exceeds));
}

TEST_CASE("a cache with scales names its layers, and has new tokens, too") {
  KvCacheRequest kv_cache;
  set_type(kv_cache, KvType::int4);
  kv_cache.scales = KvScales::group;
  const auto report = make_explain_report(load_model("gemma-3-1b"), {}, Subject::kv, kv_cache, 10);
  REQUIRE(report.parts.size() == 9);
  CHECK(report.parts[0].name == "decoder.layers.attention.kv_cache[0:24:6]");
  CHECK(report.parts[6].name == "decoder.layers.attention.kv_cache[24:26]");
  // 320 B a token and layer: 2·256 values of 4 bits, and 4 B for each group of 32.
  CHECK(report.parts[7].value == Integer{26} * 320);
  CHECK(report.parts[8].value == Integer{26} * 320 * (128 + 10 - 1));
}

TEST_CASE("states of Adam have no other type of weights") {
  WorkloadRequest request;
  request.phase = Phase::train;
  request.weights = WeightForm{WeightType::int8};
  const auto explain = [&] {
    return make_explain_report(load_model("gpt2"), request, Subject::states);
  };
  CHECK(refusal_of(explain).find("weights in int8 have no effect") != std::string::npos);
  request.dtype = DType::bfloat16;
  request.weights = WeightForm{WeightType::bfloat16};
  CHECK(explain().whole.value == Integer{18} * 124'439'808);
}

TEST_CASE("new tokens are refused for figures other than the cache") {
  CHECK(refusal_of([] {
          return make_explain_report(load_model("gpt2"), {}, Subject::flops, {}, 10);
        }).find("new tokens") != std::string::npos);
}
