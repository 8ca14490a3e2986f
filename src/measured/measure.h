// Measures a model: warm-up, runs repeated until the median is steady, and the counts of the run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "headroom/measurement.h"
#include "inputs.h"
#include "run_memory.h"
#include "session.h"

namespace headroom::measured {

struct MeasureOptions {
  MeasuredPhase phase = MeasuredPhase::prefill;
  Backend backend = Backend::eigen;
  HeldType storage = HeldType::float32;
  ActivationPath activations = ActivationPath::int8;  ///< of weights held as stored
  int threads = 0;                                    ///< 0: all processors
  int warmup = 2;                                     ///< untimed runs before the first sample
  std::optional<int> runs;                            ///< unset: repeat until the median is steady
  std::uint64_t seed = 1;                             ///< seed of random weights and inputs
  std::int64_t new_tokens = 32;                       ///< generate only
};

/// Why the model is counted but cannot be run; empty if it can.
[[nodiscard]] std::string reason_not_run(const ModelSpec& spec);

/// Called after every run. Returning false stops the measurement; finished runs are kept and
/// marked.
using RunObserver = std::function<bool(int done, int at_most)>;

/// Throws Error{invalid_input} with the reason if headroom counts the model but cannot run it.
void require_runnable(const ModelSpec& spec);

/// The run that `measure` makes, for `require_run_fits`.
[[nodiscard]] PlannedRun planned_run(const Workload& workload, const MeasureOptions& options);

/// Runs the model on `inputs`, or on random inputs if there are none. Throws
/// Error{missing_resource} before it allocates anything if the run does not fit in available
/// memory; Interrupted if a signal ends it before the first timed run was completed.
[[nodiscard]] Measurement measure(Model model, const Workload& workload, WeightSource& source,
                                  std::optional<ModelInputs> inputs, const MeasureOptions& options,
                                  const RunObserver& observer);

}  // namespace headroom::measured
