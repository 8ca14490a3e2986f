// Measuring: warm-up, repeated runs until the median is steady, and everything that was counted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "headroom/measurement.h"
#include "inputs.h"
#include "session.h"

namespace headroom::measured {

struct MeasureOptions {
  MeasuredPhase phase = MeasuredPhase::prefill;
  Backend backend = Backend::eigen;
  WeightStorage storage = WeightStorage::float32;
  int threads = 0;               ///< 0: all processors
  int warmup = 2;                ///< runs before the first that counts
  std::optional<int> runs;       ///< else until the median is steady
  std::uint64_t seed = 1;        ///< of random weights and inputs
  std::int64_t new_tokens = 32;  ///< generate only
};

/// Told of every run that is done; returns false to stop, and keep what was measured.
using RunObserver = std::function<bool(int done, int at_most)>;

/// Runs the model. `inputs` are random where none are given. Throws Error{missing_resource} before
/// anything is allocated when it would not fit in the memory that is available.
[[nodiscard]] Measurement measure(Model model, const Workload& workload, WeightSource& source,
                                  std::optional<ModelInputs> inputs, const MeasureOptions& options,
                                  const RunObserver& observer);

}  // namespace headroom::measured
