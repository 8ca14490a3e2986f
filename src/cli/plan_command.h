// The request of `headroom plan`, and its ways of searching.
#pragma once

#include <cstddef>

#include "headroom/plan_report.h"
#include "output.h"
#include "plan_options.h"

namespace headroom::cli {

/// Options of `headroom plan`.
struct PlanCommand {
  PlanOptions options;
  bool train = false;
  bool serve = false;
  std::size_t keep = 10;
  int threads = 0;  ///< 0: all processors, or this process's share of them
  bool lists_front = false;
};

/// Fills in the user's settings. Returns the space of the search. Throws Error{invalid_input}.
[[nodiscard]] SearchSpace prepare(PlanCommand& command);

/// Writes the report and its notes. Sets `status` to 1 if no plan fits.
void write_report(const PlanCommand& command, PlanReport report, ReportOutput& output, int& status);

/// Searches in this process and writes the report. Throws Error.
void plan_on_one_process(PlanCommand& command, int& status);
/// As plan_on_one_process, with the search divided over the processes that were started with this
/// one, each of which must call it.
void plan_on_ranks(PlanCommand& command, int& status);

}  // namespace headroom::cli
