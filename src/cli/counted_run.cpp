#include "counted_run.h"

#include "measure.h"
#include "run_options.h"

namespace headroom::cli {

// Without a warm-up: the counts of every run are equal.
Measurement run_once(const Model& model, const Workload& workload) {
  measured::require_runnable(model.spec);
  measured::MeasureOptions options;
  options.phase = workload.phase == Phase::decode ? MeasuredPhase::decode : MeasuredPhase::prefill;
  options.warmup = 0;
  options.runs = 1;
  options.storage = storage_of(workload);
  const auto source = measured::random_weights(options.seed);
  return measured::measure(model, workload, *source, std::nullopt, options,
                           [](int, int) { return true; });
}

}  // namespace headroom::cli
