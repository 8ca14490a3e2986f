// The examples of docs/library.md, which quotes this file; a test runs them.
#include <fmt/format.h>

#include <optional>
#include <string>

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

void explain_it() {
  const ExplainReport report = make_explain_report(load_model("gpt2"), {}, Subject::kv);
  fmt::print("{} = {} B\n", format(report.whole.formula), with_separators(report.whole.value));
}

void sweep_it() {
  SweepGrid grid;
  grid.seq_len = {1024, 2048};
  grid.batch_size = {1, 16};
  sweep(load_model("gpt2-xl").spec, grid, std::nullopt, [](const SweepRow& row) {
    fmt::print("batch {}, {} tokens: {} FLOP\n", row.workload.batch_size, row.workload.seq_len,
               with_separators(row.matrix_flops));
    return true;  // false ends the sweep
  });
}

void judge() {
  AnalyzeReport report = make_analyze_report(load_model("tinyllama-1.1b"), {});
  add_prediction(report, find_machine("rtx-4090"), {});
  ComparedRun measured = predicted_run(report);
  measured.amounts[Quantity::time_s] = 1.3 * report.time->total_s;  // a run 30 % slower
  CompareOptions options;
  options.tolerances[Quantity::time_s] = 0.2;
  const Comparison comparison = compare(predicted_run(report), measured, options);
  fmt::print("{}\n", comparison.verdict);
}

PlanQuestion question() {
  PlanQuestion question;
  question.model = load_model("llama-3-8b");
  question.devices = 2;
  question.load = {16, 8192};  // sequences, and the context of each
  question.rates = device_rates(find_machine("rtx-4090"), Purpose::serve, question.query.dtype);
  return question;
}

void plan_it() {
  PlanRequest request;
  request.choice.parallel.tensor = 2;
  const FitReport fit = make_fit_report(question(), request);
  fmt::print("{} of {} B on each of 2 devices\n",
             with_separators(fit.result.figures.memory.total()),
             with_separators(fit.question.rates.memory_bytes));
  SearchSpace space;
  space.devices = 2;
  space.load = question().load;
  const PlanReport plan = make_plan_report(question(), space);
  fmt::print("{} plans, {} fit\n", plan.search.evaluated, plan.search.fitting);
}

void grow() {
  const LayerComplexity layer =
      layer_complexity(load_model("layer-self-attention"), AttentionImplementation::eager);
  fmt::print("{}\n", format(layer.flops.growth));
}

void inspect_it() {
  const Inspection files = inspect("tests/data/golden/models/gpt2");
  fmt::print("{} tensors, {} explained\n", files.all.tensors,
             files.is_explained() ? "all" : "not all");
}

void write_it() {
  const AnalyzeReport report = make_analyze_report(load_model("bert-tiny"), {});
  RenderOptions options;
  options.format = Format::json;
  const std::string json = render(report, options);
  fmt::print("{}\n", json.substr(0, json.find(',')));
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
  explain_it();
  predict();
  sweep_it();
  judge();
  plan_it();
  grow();
  inspect_it();
  write_it();
  shard_it();
  refuse();
}
