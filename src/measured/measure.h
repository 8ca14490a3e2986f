// Measures a model: warm-up, runs repeated until the median is steady, and the counts of the run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "float_counters.h"
#include "headroom/measurement.h"
#include "inputs.h"
#include "run_memory.h"
#include "session.h"

namespace headroom::measured {

struct MeasureOptions {
  MeasuredPhase phase = MeasuredPhase::prefill;
  Backend backend = Backend::eigen;
  HeldType storage = HeldType::float32;
  ActivationPath activations = ActivationPath::int8;  ///< of weights in blocks, or bfloat16
  int threads = 0;                                    ///< 0: all processors
  int warmup = 2;                                     ///< untimed runs before the first sample
  std::optional<int> runs;                            ///< unset: repeat until the median is steady
  std::uint64_t seed = 1;                             ///< seed of random weights and inputs
  std::int64_t new_tokens = 32;                       ///< generate only
  KeptOutputs outputs = KeptOutputs::none;            ///< that are kept, besides
  const RankContext* rank = nullptr;                  ///< place in a sharded run; null: one process
  /// Sequences that go through a pipeline together; must divide those of a replica. Unset: all.
  std::optional<std::int64_t> micro_batch{};
  const FloatCounters* counters = nullptr;  ///< read around the timed runs; null: not asked for
};

/// Micro-batches that the sequences of one replica, `workload`, are divided into.
[[nodiscard]] std::int64_t micro_batches_of(const Workload& workload,
                                            const MeasureOptions& options) noexcept;

/// Why the model is counted but cannot be run; empty if it can.
[[nodiscard]] std::string reason_not_run(const ModelSpec& spec);

/// Called after every run. Returning false stops the measurement; finished runs are kept and
/// marked.
using RunObserver = std::function<bool(int done, int at_most)>;

/// Outputs of a run.
struct RunOutputs {
  /// Those of the pass under Hugging Face's names. Of a generation: those of its prompt, and
  /// generated_logits [batch, new tokens, vocab], which chose the tokens.
  std::vector<NamedTensor> tensors;
  std::vector<std::vector<std::int64_t>> generated_ids{};  ///< of each sequence
};

/// Called with the outputs of one more, untimed run on a new KV-cache, unless a signal ended the
/// measurement.
using OutputObserver = std::function<void(RunOutputs outputs)>;

/// Throws Error{invalid_input} with the reason if headroom counts the model but cannot run it.
void require_runnable(const ModelSpec& spec);

/// The run of one replica's sequences, `workload`, that `measure` makes, for `require_run_fits`.
[[nodiscard]] PlannedRun planned_run(const Workload& workload, const MeasureOptions& options);

/// Runs the model on `inputs`, or on random inputs if there are none. Throws
/// Error{missing_resource} before it allocates anything if the run does not fit in available
/// memory; Interrupted if a signal ends it before the first timed run was completed.
[[nodiscard]] Measurement measure(Model model, const Workload& workload, WeightSource& source,
                                  std::optional<ModelInputs> inputs, const MeasureOptions& options,
                                  const RunObserver& observer, const OutputObserver& outputs = {});

}  // namespace headroom::measured
