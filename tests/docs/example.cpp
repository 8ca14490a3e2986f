// The examples of docs/library.md, which quotes this file; a test runs them.
#include <fmt/format.h>

#include "headroom/headroom.h"

using namespace headroom;

namespace {

void count() {
  WorkloadRequest request;
  request.phase = Phase::decode;
  request.past_len = 8191;
  request.dtype = DType::bfloat16;
  const AnalyzeReport report = make_analyze_report(load_model("llama-3-8b"), request);
  fmt::print("{} parameters\n", with_separators(report.figures.parameters));
  fmt::print("{} FLOP\n", with_separators(report.figures.forward.matrix_flops));
  fmt::print("{} B of KV-cache\n", with_separators(report.figures.kv_cache_bytes));
}

void evaluate_many() {
  const Model model = load_model("bert-base");
  const Graph graph = build_graph(model.spec, {});
  const Analysis analysis = analyze(graph);
  const Evaluator evaluator(graph, analysis, Recompute::none);
  Workload workload;
  for (const std::int64_t length : {128, 256, 512}) {
    workload.seq_len = length;
    const Figures figures = evaluator.evaluate(workload);
    fmt::print("{} tokens: {} B of activations\n", length,
               with_separators(figures.peak_activation_bytes));
  }
}

void predict() {
  AnalyzeReport report = make_analyze_report(load_model("gpt2"), {});
  add_prediction(report, find_machine("a100-80gb"), {});
  fmt::print("{:.0f} µs\n", 1e6 * report.time->total_s);
}

void shard_it() {
  const Graph whole = build_graph(load_model("gpt2").spec, {});
  ParallelPlan plan;
  plan.tensor = 4;
  const Graph rank = shard(whole, plan);
  const Integer parameters = count_parameters(rank).total.evaluate(rank.sizes);
  fmt::print("{} parameters on each of 4 ranks\n", with_separators(parameters));
}

void refuse() {
  try {
    (void)load_model("bert-bsae");
  } catch (const Error& error) {
    fmt::print("{}\n{}\n", error.what(), error.hint());
  }
}

}  // namespace

int main() {
  count();
  evaluate_many();
  predict();
  shard_it();
  refuse();
}
