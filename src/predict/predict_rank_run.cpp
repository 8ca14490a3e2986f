// Counts of one rank's run, generation included.
#include <algorithm>

#include "headroom/error.h"
#include "headroom/predict.h"
#include "loaded_parts.h"

namespace headroom {
namespace {

/// One kind of pass of a rank: its graph, analysed once, at any length.
class RankPass {
 public:
  RankPass(const ModelSpec& spec, const Workload& workload, const RankPart& part)
      : part_(part),
        graph_(part.shard(build_graph(spec, graph_options(workload)))),
        analysis_(analyze(graph_)) {}

  [[nodiscard]] Integer parameters(const Workload& workload) const {
    return analysis_.parameters.total.evaluate(values(workload));
  }
  [[nodiscard]] Integer matrix_flops(const Workload& workload) const {
    return analysis_.total.forward.matrix_flops.evaluate(values(workload));
  }
  [[nodiscard]] Integer peak_bytes(const Workload& workload) const {
    const Bindings sizes = values(workload);
    Integer peak = 0;
    for (const LiveBytes& live : analysis_.live) {
      peak = std::max(peak, live.bytes.evaluate(sizes));
    }
    return peak;
  }
  /// Empty without a cache.
  [[nodiscard]] std::optional<Integer> cache_bytes(const Workload& workload) const {
    if (analysis_.kv_cache.empty()) return std::nullopt;
    return kv_cache_bytes(analysis_).evaluate(values(workload));
  }

 private:
  [[nodiscard]] Bindings values(const Workload& workload) const {
    return part_.bindings(workload, graph_);
  }

  const RankPart& part_;
  Graph graph_;
  Analysis analysis_;
};

/// Adds the decode steps of a generation. The arena and the cache are allocated for all keys before
/// the first pass.
void add_steps(const ModelSpec& spec, const Workload& prompt, const RankPass& prefill,
               const RankPart& part, RunFigures& run) {
  const RankPass decode(spec, decode_step(prompt, 1), part);
  for (std::int64_t token = 1; token < run.new_tokens; ++token) {
    const Workload step = decode_step(prompt, token);
    run.matrix_flops = checked_add(run.matrix_flops, decode.matrix_flops(step));
    run.peak_activation_bytes = std::max(run.peak_activation_bytes, decode.peak_bytes(step));
  }
  Workload roomy = prompt;
  roomy.past_len = checked_int64(Integer{prompt.past_len} + run.new_tokens - 1);
  run.peak_activation_bytes = std::max(run.peak_activation_bytes, prefill.peak_bytes(roomy));
  run.kv_cache_bytes = prefill.cache_bytes(roomy);
}

}  // namespace

RunFigures predict_rank_run(const ModelSpec& whole, const Workload& asked,
                            const TimeRequest& request, const RankPart& part) {
  if (!request.computes_in_float32) {
    throw Error(ErrorCode::internal, "ranks run headroom's kernels, which compute in float32");
  }
  const ModelSpec spec = detail::loaded_parts_of(whole);
  Workload workload = asked;
  workload.dtype = workload.kv_dtype = DType::float32;
  const RankPass pass(spec, workload, part);
  RunFigures run;
  run.phase = request.phase;
  run.parameters = pass.parameters(workload);
  run.matrix_flops = pass.matrix_flops(workload);
  run.weight_bytes = checked_multiply(
      run.parameters, bytes_of(has_narrow_weights(asked) ? DType::bfloat16 : DType::float32));
  run.peak_activation_bytes = pass.peak_bytes(workload);
  run.kv_cache_bytes = pass.cache_bytes(workload);
  if (request.phase == MeasuredPhase::generate) {
    run.new_tokens = request.new_tokens;
    add_steps(spec, workload, pass, part, run);
  }
  return run;
}

}  // namespace headroom
