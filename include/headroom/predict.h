// Predicts how long a pass takes on a machine, operator by operator. Modelled from measured curves,
// or assumed from a datasheet; either way with a range.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/figures.h"
#include "headroom/graph.h"
#include "headroom/machine_profile.h"

namespace headroom {

/// What an operator spends its time on.
enum class Bound { compute, cache, memory, overhead };

[[nodiscard]] std::string_view name_of(Bound bound) noexcept;

/// Whether a time comes from curves measured on the machine, or from its datasheet.
enum class TimeBasis { modelled, assumed };

[[nodiscard]] std::string_view name_of(TimeBasis basis) noexcept;

/// One operator, all its layers together.
struct OperatorTime {
  std::string path;
  double time_s = 0;
  double low_s = 0;
  double high_s = 0;
  Bound bound = Bound::compute;
  double cached_s = 0;  ///< the time if it read from a cache: the memory's pace moves the rest
  /// The least time that peak arithmetic or memory bandwidth leave, over the predicted one.
  double roofline_share = 0;
};

/// What a device reaches: its datasheet's peaks at the shares that are assumed.
struct EffectiveRates {
  double flops_per_s = 0;  ///< of matrix products
  double bytes_per_s = 0;  ///< of memory
};
/// Throws Error{invalid_input} where the datasheet has no rate of `dtype`.
[[nodiscard]] EffectiveRates effective_rates(const DatasheetRates& rates, DType dtype);

/// What is to be timed, and how it is run.
struct TimeRequest {
  int threads = 0;  ///< 0: the most that the machine was measured with
  MeasuredPhase phase = MeasuredPhase::prefill;
  std::int64_t new_tokens = 0;  ///< generate only
  /// Whether products of many rows keep their weights in a layout that cannot be read otherwise.
  bool opaque_layout = true;
  /// Whether activations and KV-cache are float32 whatever weights are stored in, as in headroom's
  /// own kernels.
  bool computes_in_float32 = false;
};

struct TimePrediction {
  std::string machine;
  TimeBasis basis = TimeBasis::modelled;
  int threads = 0;  ///< 0 where the machine is not measured by threads
  double total_s = 0;
  double low_s = 0;
  double high_s = 0;
  Bound bound = Bound::compute;
  double roofline_share = 0;
  double tokens_per_s = 0;              ///< new tokens of all sequences
  std::optional<double> ttft_s;         ///< generate: time to first token
  std::optional<double> tpot_s;         ///< generate: (total − TTFT)/(new tokens − 1)
  std::vector<OperatorTime> operators;  ///< of the pass; of prefill and all steps in generate
};

/// The phase of a run's first pass: a generation begins with a prefill.
[[nodiscard]] Phase first_pass(MeasuredPhase phase) noexcept;

/// Throws Error{invalid_input} unless the model is a decoder with a language-model head.
void require_generates(const ModelSpec& spec);

/// How long `workload` takes. Throws Error{invalid_input} where the machine was not measured with
/// so many threads or its datasheet has no rate of the type, the model cannot generate and is asked
/// to, or the phase is training, which is not predicted.
[[nodiscard]] TimePrediction predict_time(const ModelSpec& spec, const Workload& workload,
                                          const MachineProfile& machine,
                                          const TimeRequest& request);

/// The prediction's total on a machine that has drifted.
[[nodiscard]] double total_with(const TimePrediction& prediction, const Drift& drift);

/// The prediction on such a machine, its operators scaled to sum to `total_s`.
[[nodiscard]] TimePrediction with_drift(TimePrediction prediction, const Drift& drift,
                                        double total_s);

/// What `headroom measure` will count: exact, but for the resident memory.
struct RunFigures {
  MeasuredPhase phase = MeasuredPhase::prefill;
  std::int64_t new_tokens = 0;  ///< generate only
  Integer parameters = 0;
  Integer matrix_flops = 0;  ///< of all passes
  Integer weight_bytes = 0;
  std::optional<Integer> kv_cache_bytes;  ///< none where there is no cache
  Integer peak_activation_bytes = 0;
  Integer rss_growth_bytes = 0;  ///< modelled: weights as laid out, cache, activations, inputs
};

/// Throws Error{overflow}.
[[nodiscard]] RunFigures predict_run(const ModelSpec& spec, const Workload& workload,
                                     const TimeRequest& request);

/// Bytes that the weights take as the measured module lays them out, but for padding: products for
/// few rows in their type, for many in float32, for generation both; a table that is tied to a
/// product once more where no layout of that tells its rows.
[[nodiscard]] Integer predict_held_weight_bytes(const ModelSpec& spec, const Workload& workload,
                                                const TimeRequest& request);

}  // namespace headroom
