// Time and bottleneck of one operator in one layer. Internal to src/predict.
#pragma once

#include "gemm_tiles.h"
#include "headroom/predict.h"
#include "kernel_calls.h"
#include "reached_rates.h"

namespace headroom::detail {

/// Time of one operator with its roofline.
struct StepTime {
  double time_s = 0;
  double low_s = 0;  ///< range of time_s
  double high_s = 0;
  double compute_s = 0;                 ///< at the machine's peak FLOP/s
  double memory_s = 0;                  ///< at the bandwidth of the operands' memory level
  double overhead_s = 0;                ///< of the calls
  Bound slowest_level = Bound::memory;  ///< memory level of the operands
  double cached_s = 0;                  ///< with all operands in cache
};

/// Work of one operator, as counted by the analytic module.
struct StepWork {
  double matrix_flops = 0;
  double elementwise_flops = 0;
  double bytes = 0;
  std::optional<GemmSizes> gemm{};  ///< by a datasheet: of an operator with weights
  bool reads_weights = false;
  bool attends = false;  ///< reads keys or values
};

/// Sizes of the model and of the machine's cache.
struct MachineState {
  double model_bytes = 0;  ///< weights; those outside the last-level cache come from memory
  double last_level_cache_bytes = 0;
  /// Kernels queue up behind the host (MeasuredDevice).
  bool runs_behind_host = false;
};

/// Time by measured curves. `own_share` is the calibration's fraction of the machine: other
/// programs had the rest, without which a kernel takes as little as that fraction of its time.
[[nodiscard]] StepTime measured_time(const ThreadProfile& profile,
                                     const std::vector<KernelCall>& calls, const StepWork& work,
                                     const MachineState& state, double own_share);

/// Time by a datasheet, at the rates of the operator's type.
[[nodiscard]] StepTime assumed_time(const ReachedRates& rates, const StepWork& work);

/// Bottleneck of an operator.
[[nodiscard]] Bound bound_of(const StepTime& time) noexcept;

}  // namespace headroom::detail
