// Predicts the time of a pass on a machine, operator by operator: modelled from measured curves or
// assumed from a datasheet, with a range either way.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/engine_info.h"
#include "headroom/graph.h"
#include "headroom/machine_profile.h"

namespace headroom {

/// Bottleneck of an operator.
enum class Bound { compute, cache, memory, overhead };

[[nodiscard]] std::string_view name_of(Bound bound) noexcept;

/// Basis of a predicted time: `modelled` from curves measured on the machine, or `assumed` from its
/// datasheet.
enum class TimeBasis { modelled, assumed };

[[nodiscard]] std::string_view name_of(TimeBasis basis) noexcept;

/// Predicted time of one operator, all layers together.
struct OperatorTime {
  std::string path;
  double time_s = 0;
  double low_s = 0;
  double high_s = 0;
  Bound bound = Bound::compute;         ///< of a generation: in its prefill
  std::optional<Bound> decode_bound{};  ///< of a generation: in its decode steps
  double cached_s = 0;  ///< with operands in cache; the rest of time_s scales with memory drift
  /// Roofline time (peak compute or memory bandwidth) divided by the predicted time, of all passes.
  double roofline_share = 0;
};

/// Achievable rates of a device: datasheet peaks times efficiencies.
struct EffectiveRates {
  double peak_flops_per_s = 0;
  double flops_per_s = 0;        ///< of GEMMs
  double bytes_per_s = 0;        ///< of memory
  std::int64_t processors = 0;   ///< between which the tiles of GEMMs divide; 0: as if any number
  double kernel_s = 0;           ///< serving: serving_kernel_seconds
  double cache_bytes_per_s = 0;  ///< of memory, by attention over a KV-cache
};

/// Seconds that an operator with weights takes besides its work when serving: starts and ends of
/// its kernels and of those between it and the next, with arithmetic in `dtype`
/// (docs/device-time.md).
[[nodiscard]] double serving_kernel_seconds(Architecture architecture, DType dtype) noexcept;

/// Processors whose waves of tiles count in GEMMs of `dtype` for `purpose`; 0: none. Training's
/// GEMMs have thousands of rows, so many tiles that the last wave hardly counts, and float32
/// without tensor cores has tiles down to 32 × 32 (docs/device-time.md).
[[nodiscard]] std::int64_t tiling_processors(const DatasheetRates& rates, Purpose purpose,
                                             DType dtype) noexcept;

/// Throws Error{invalid_input} if the datasheet has no rate for `dtype`.
[[nodiscard]] EffectiveRates effective_rates(const DatasheetRates& rates, Purpose purpose,
                                             DType dtype);

/// Run to predict.
struct TimeRequest {
  int threads = 0;  ///< 0: the largest measured number
  MeasuredPhase phase = MeasuredPhase::prefill;
  std::int64_t new_tokens = 0;  ///< generate only
  /// GEMMs of many rows keep repacked weights; no other kernel can share them.
  bool opaque_layout = true;
  /// Activations, KV-cache and weights are float32, as in headroom's kernels; weights that the
  /// workload converts to bfloat16 stay in that type.
  bool computes_in_float32 = false;
  /// Whose kernels run on a datasheet's device; empty: llama.cpp's for weights in ggml's blocks,
  /// else those of serving engines.
  std::optional<Engine> engine{};
};

/// Predicted time of a run.
struct TimePrediction {
  std::string machine;
  TimeBasis basis = TimeBasis::modelled;
  int threads = 0;                              ///< 0 for a datasheet
  std::optional<SourcedEfficiency> efficiency;  ///< of a datasheet
  std::string efficiency_source{};              ///< likewise, as efficiency_source_of()
  double kernel_s = 0;                          ///< of a datasheet: serving_kernel_seconds
  double layer_gemm_kernel_s = 0;          ///< likewise of the layers' GEMMs, in `layer_gemm_type`
  std::optional<DType> layer_gemm_type{};  ///< where it is not the activations'
  double total_s = 0;
  double low_s = 0;
  double high_s = 0;
  Bound bound = Bound::compute;         ///< of most of the time
  Bound first_bound = Bound::compute;   ///< likewise of the first pass
  std::optional<Bound> decode_bound{};  ///< likewise of a generation's decode steps
  double roofline_share = 0;
  double tokens_per_s = 0;              ///< new tokens, all sequences
  std::optional<double> ttft_s;         ///< generate: time to first token
  std::optional<double> tpot_s;         ///< generate: (total − TTFT)/(new tokens − 1)
  std::vector<OperatorTime> operators;  ///< generate: prefill and all decode steps
};

/// Phase of the first pass; generate begins with a prefill.
[[nodiscard]] Phase first_pass(MeasuredPhase phase) noexcept;

/// Throws Error{invalid_input} unless `spec` is a decoder with a language-model head.
void require_generates(const ModelSpec& spec);

/// Predicts the time of `workload`. Throws Error{invalid_input} if the machine was not measured
/// with that number of threads, its datasheet has no rate for the type, the model cannot generate,
/// or the phase is training, which is not predicted.
[[nodiscard]] TimePrediction predict_time(const ModelSpec& spec, const Workload& workload,
                                          const MachineProfile& machine,
                                          const TimeRequest& request);

/// Total time on a machine that has drifted.
[[nodiscard]] double total_with(const TimePrediction& prediction, const Drift& drift);

/// The prediction on a drifted machine, with operators scaled to sum to `total_s`.
[[nodiscard]] TimePrediction with_drift(TimePrediction prediction, const Drift& drift,
                                        double total_s);

/// Counts that `headroom measure` reports: exact, except the resident memory.
struct RunFigures {
  MeasuredPhase phase = MeasuredPhase::prefill;
  std::int64_t new_tokens = 0;  ///< generate only
  Integer parameters = 0;
  Integer matrix_flops = 0;  ///< all passes
  Integer weight_bytes = 0;
  std::optional<Integer> kv_cache_bytes;  ///< empty without a cache
  Integer peak_activation_bytes = 0;
  Integer rss_growth_bytes = 0;  ///< modelled: resident weights, cache, activations and inputs
};

/// Predicts the counts of a run. Throws Error{overflow}.
[[nodiscard]] RunFigures predict_run(const ModelSpec& spec, const Workload& workload,
                                     const TimeRequest& request);

/// True if headroom's kernels store the weights in 16 bits.
[[nodiscard]] bool has_narrow_weights(const Workload& workload) noexcept;

/// Bytes of the weights as the measured module stores them, without padding: those of GEMMs in
/// their type, a tied embedding table once more if the layout of its GEMM gives no access to single
/// rows.
[[nodiscard]] Integer predict_held_weight_bytes(const ModelSpec& spec, const Workload& workload,
                                                const TimeRequest& request);

/// Formats of the weights that GEMMs of headroom's kernels read as they are stored ("Q4_K"), in
/// order: none if only tables are stored so; empty where all weights run as plain numbers. Throws
/// Error{invalid_input} for a format that no kernel reads.
[[nodiscard]] std::optional<std::vector<std::string>> stored_gemm_formats(const ModelSpec& spec,
                                                                          const Workload& workload);

// One rank of a sharded model. The predictor does not link the planner, so that its part is given.

struct RankPart {
  /// The graph of this rank from that of the whole model.
  std::function<Graph(const Graph& whole)> shard;
  /// All symbols of a sharded graph under a workload.
  std::function<Bindings(const Workload& workload, const Graph& sharded)> bindings;
  /// Seconds of one call of a collective whose buffer has `bytes`.
  std::function<double(const Collective& op, double bytes)> collective_s;
};

/// Predicted time of one rank: what it computes, and what its collectives take if no rank waits.
struct RankTime {
  TimePrediction computation;
  double communication_s = 0;
  double ttft_communication_s = 0;  ///< of it, in a generation's prefill
};

/// As predict_time, on a calibrated machine. Throws Error{invalid_input}; also for a datasheet.
[[nodiscard]] RankTime predict_rank_time(const ModelSpec& spec, const Workload& workload,
                                         const MachineProfile& machine, const TimeRequest& request,
                                         const RankPart& part);

/// As predict_run; resident memory is not modelled, and 0. `request.computes_in_float32` must be
/// set.
[[nodiscard]] RunFigures predict_rank_run(const ModelSpec& spec, const Workload& workload,
                                          const TimeRequest& request, const RankPart& part);

}  // namespace headroom
