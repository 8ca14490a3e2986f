// Runs that another engine's file holds, with the command that predicts them: for `calibrate
// --from`.
#pragma once

#include <string>
#include <vector>

#include "headroom/compare.h"
#include "run_figures.h"

namespace headroom::cli {

/// Figures of one load.
struct ImportedRun {
  StatedLoad load;
  std::vector<MeasuredFigure> figures;
};

/// The runs of the file that a fit command predicts: passes over prompts, decode steps of a batch,
/// and generations of one sequence. Throws Error{invalid_input} for a file that `compare --import`
/// does not read, a start-up log, which prints no times, and a file without such runs.
[[nodiscard]] std::vector<ImportedRun> runs_for_fit(const std::string& file);

/// Likewise, those that a serve command predicts: whole requests.
[[nodiscard]] std::vector<ImportedRun> runs_for_serve(const std::string& file);

}  // namespace headroom::cli
