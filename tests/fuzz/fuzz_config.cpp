// Arbitrary bytes as a config.json give an error, or a spec that can be counted in every phase,
// sharded and reported.
#include <string_view>

#include "fuzz_target.h"
#include "headroom/model_source.h"
#include "headroom/parallel_plan.h"
#include "headroom/report.h"

using namespace headroom;

namespace {

void count(const ModelSpec& spec, Phase phase) {
  Model model;
  model.spec = spec;
  WorkloadRequest request;
  request.phase = phase;
  const AnalyzeReport report = make_analyze_report(std::move(model), request);
  (void)render(report, {Format::json, Detail::summary, 0, Colour::off});
}

void shard_in_two(const ModelSpec& spec) {
  const Graph whole = build_graph(spec, {Phase::train, AttentionImplementation::fused});
  ParallelPlan plan;
  plan.tensor = 2;
  plan.pipeline = 2;
  if (broken_rule(plan, limits_of(whole, 128))) return;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    const Graph rank = shard_stage(whole, plan, stage);
    (void)count_parameters(rank).total.evaluate(rank.sizes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  (void)test::accepts([&] {
    const ModelSpec spec = read_model_spec(json, "config.json", "fuzz");
    for (const Phase phase : {Phase::prefill, Phase::decode, Phase::train}) {
      (void)test::accepts([&] { count(spec, phase); });
    }
    (void)test::accepts([&] { shard_in_two(spec); });
  });
  return 0;
}
