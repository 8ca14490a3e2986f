// The time of one operator in one layer, and what it is spent on. Internal to src/predict.
#pragma once

#include "headroom/predict.h"
#include "kernel_calls.h"

namespace headroom::detail {

/// One operator's time with its limits.
struct StepTime {
  double time_s = 0;
  double spread_s = 0;                  ///< how far either way it may be
  double compute_s = 0;                 ///< at the machine's peak
  double memory_s = 0;                  ///< at the bandwidth of the level that the operands lie in
  double overhead_s = 0;                ///< of calling it at all
  Bound slowest_level = Bound::memory;  ///< which level that is
  double cached_s = 0;                  ///< the time if all that it reads were in a cache
};

/// What one operator does, as the analytic module counts it.
struct StepWork {
  double matrix_flops = 0;
  double elementwise_flops = 0;
  double bytes = 0;
};

/// How the machine stands to the model.
struct MachineState {
  double model_bytes = 0;  ///< weights: what does not fit the last cache is read from memory
  double last_level_cache_bytes = 0;
};

/// By measured curves.
[[nodiscard]] StepTime measured_time(const ThreadProfile& profile,
                                     const std::vector<KernelCall>& calls, const StepWork& work,
                                     const MachineState& state);

/// By a datasheet. `narrow` arithmetic is that of float16 and bfloat16.
/// Throws Error{invalid_input} where the datasheet has no rate of `dtype`.
[[nodiscard]] StepTime assumed_time(const DatasheetRates& rates, const StepWork& work, DType dtype);

[[nodiscard]] Bound bound_of(const StepTime& time) noexcept;

}  // namespace headroom::detail
