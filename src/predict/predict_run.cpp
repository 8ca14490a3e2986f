// Counts of a run, generation included.
#include <algorithm>

#include "headroom/predict.h"
#include "headroom/storage.h"
#include "loaded_parts.h"
#include "quantization/group_format.h"
#include "rank_graph.h"
#include "stored_reading.h"
#include "working_memory.h"

namespace headroom {
namespace {

Figures figures_at(const ModelSpec& spec, const Workload& workload) {
  const Graph graph = build_graph(spec, graph_options(workload));
  return Evaluator(graph, analyze(graph), workload.recompute).evaluate(workload);
}

/// Adds the decode steps of a generation. The KV-cache is allocated for all keys before the first
/// pass, so memory is that of the last step.
void add_steps(const ModelSpec& spec, const Workload& prompt, RunFigures& run) {
  const Graph graph = build_graph(spec, graph_options(decode_step(prompt, 1)));
  const Evaluator evaluator(graph, analyze(graph), prompt.recompute);
  for (std::int64_t token = 1; token < run.new_tokens; ++token) {
    const Workload step = decode_step(prompt, token);
    const Figures figures = evaluator.evaluate(step);
    run.matrix_flops = checked_add(run.matrix_flops, figures.forward.matrix_flops);
    run.peak_activation_bytes = std::max(run.peak_activation_bytes, figures.peak_activation_bytes);
  }
  Workload roomy = prompt;
  roomy.past_len = checked_int64(Integer{prompt.past_len} + run.new_tokens - 1);
  const Figures whole = figures_at(spec, roomy);
  run.peak_activation_bytes = std::max(run.peak_activation_bytes, whole.peak_activation_bytes);
  if (run.kv_cache_bytes) run.kv_cache_bytes = whole.kv_cache_bytes;
}

/// Bytes of the parameters in the types that headroom's kernels read them in.
Integer run_weight_bytes(const ModelSpec& spec, const Workload& workload, Integer parameters) {
  const Graph graph = build_graph(spec, all_parts());
  const auto stored = detail::stored_reading(spec, graph, workload);
  const DType type = has_narrow_weights(workload) ? DType::bfloat16 : DType::float32;
  if (!stored) return checked_multiply(parameters, bytes_of(type));
  // Quantised safetensors count as in their files, vectors included.
  if (detail::runs_in_groups(spec)) return stored_weights(spec, graph).bytes;
  const auto [weight, elements, bytes] = stored->all_copies();
  return checked_add(bytes, checked_multiply(parameters - elements, bytes_of(type)));
}

}  // namespace

RunFigures predict_run(const ModelSpec& whole, const Workload& asked, const TimeRequest& request) {
  const ModelSpec spec = detail::loaded_parts_of(whole);
  Workload workload = asked;
  if (request.computes_in_float32) workload.dtype = workload.kv_dtype = DType::float32;
  const Graph graph = build_stored_graph(spec, graph_options(workload));
  const Analysis analysis = analyze(graph);
  const Figures figures = Evaluator(graph, analysis, workload.recompute).evaluate(workload);
  RunFigures run;
  run.phase = request.phase;
  run.parameters = figures.parameters;
  run.matrix_flops = figures.forward.matrix_flops;
  run.weight_bytes = request.computes_in_float32 ? run_weight_bytes(spec, asked, figures.parameters)
                                                 : figures.weight_bytes;
  run.peak_activation_bytes = figures.peak_activation_bytes;
  if (!analysis.kv_cache.empty()) run.kv_cache_bytes = figures.kv_cache_bytes;
  if (request.phase == MeasuredPhase::generate) {
    run.new_tokens = request.new_tokens;
    add_steps(spec, workload, run);
  }
  const Integer beside = checked_add(run.peak_activation_bytes, run.kv_cache_bytes.value_or(0));
  const Integer running = checked_add(
      checked_add(predict_held_weight_bytes(spec, asked, request), beside),
      checked_multiply(detail::kFloat32Bytes, detail::working_floats(graph, spec, workload)));
  run.rss_growth_bytes = std::max(running, detail::load_peak_bytes(spec, asked, request));
  return run;
}

}  // namespace headroom
