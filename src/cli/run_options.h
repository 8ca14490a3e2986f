// Options of the commands that run models on this machine.
#pragma once

#include <memory>

#include "backend_option.h"
#include "measure.h"
#include "options.h"
#include "variations.h"
#include "weights.h"

namespace headroom::cli {

Option add_measured_phase_option(Command command, MeasuredPhase& phase);
/// Options of a run on this machine.
struct RunOptions {
  std::vector<Option> generate_only;
  std::vector<Option> others;
};

/// Adds --phase, --threads, --runs, --new-tokens and --backend.
RunOptions add_run_options(Command command, measured::MeasureOptions& options,
                           Variations& variations);
/// Throws Error{invalid_input} for an option that `phase` does not read.
void refuse_ignored_options(const RunOptions& options, MeasuredPhase phase);

/// Throws Error{invalid_input} for weights that the kernels cannot run.
void require_runs(const std::optional<WeightForm>& weights);
/// Throws Error{invalid_input} for weights in fewer bits, which one process compares.
void require_plain(const std::optional<WeightForm>& weights);
/// The workload of the run's first pass. Throws Error{invalid_input} if the model cannot generate,
/// or if the kernels do not support the types.
[[nodiscard]] Workload workload_of_run(WorkloadRequest request, MeasuredPhase phase,
                                       const ModelSpec& spec);
[[nodiscard]] measured::HeldType storage_of(const Workload& workload);

/// `source`, with a bar while the weights of a model of `spec` are read or drawn, and until the
/// first timed run ends.
[[nodiscard]] std::unique_ptr<measured::WeightSource> with_progress(
    std::unique_ptr<measured::WeightSource> source, const ModelSpec& spec);

/// Draws the progress of a measurement. Returns false once a signal asked for the end.
bool show_run(int done, int at_most);

}  // namespace headroom::cli
