// Options of the commands that run models, and what follows from them.
#pragma once

#include "measure.h"
#include "options.h"

namespace headroom::cli {

/// The most threads, and tokens to generate, that can be asked for.
inline constexpr CountRange kThreads{1, 4096};
inline constexpr CountRange kNewTokens{1, 1'000'000};

/// `backend` becomes the best that this build has.
CLI::Option* add_backend_option(CLI::App& app, measured::Backend& backend);
void add_measured_phase_option(CLI::App& app, MeasuredPhase& phase);
/// --threads, --runs, --new-tokens and --backend.
void add_run_options(CLI::App& app, measured::MeasureOptions& options);

/// What a run in `phase` works out: the workload of its first pass. Throws Error{invalid_input}
/// where the model cannot generate, or kernels cannot compute in the type that is asked for.
[[nodiscard]] Workload workload_of_run(WorkloadRequest request, MeasuredPhase phase,
                                       const ModelSpec& spec);
/// How weights are stored for such a workload.
[[nodiscard]] measured::WeightStorage storage_of(const Workload& workload);

/// A bar for the runs of a measurement; false once Ctrl-C was pressed.
bool show_run(int done, int at_most);

}  // namespace headroom::cli
