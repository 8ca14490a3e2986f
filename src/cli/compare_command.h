// The request of `headroom compare`, and its ways of comparing.
#pragma once

#include <string>
#include <vector>

#include "headroom/compare.h"
#include "headroom/parallel_plan.h"
#include "measure.h"
#include "model_reading.h"
#include "run_options.h"

namespace headroom::cli {

struct CompareCommand {
  std::vector<std::string> subjects;  ///< models, or two files
  std::string model;                  ///< of the models, the one that runs
  Variations variations;
  ModelReading reading;
  std::string import_file;
  std::string machine = "here";
  WorkloadRequest request;
  measured::MeasureOptions run;
  CompareOptions options;
  bool detail = false;
  std::vector<Option> operators_only;  ///< of a run whose operators are timed
  OutputOptions output;
  RunOptions run_options;
  std::vector<Option> workload;
  ParallelPlan plan;
};

class RankRun;

/// Predicts and measures on this machine, then compares.
[[nodiscard]] Comparison compare_here(const CompareCommand& command);
/// Likewise, of the plan on the processes of `ranks`, all of which must call it; the comparison is
/// that of rank 0, and empty on the others. Throws Error{invalid_input} if this machine or one of
/// the plan's collectives is not calibrated.
[[nodiscard]] Comparison compare_ranks(const CompareCommand& command, RankRun& ranks);
/// Compares two JSON files of headroom: a prediction and a measurement.
[[nodiscard]] Comparison compare_files(const CompareCommand& command);
/// Compares each run of another engine's file with a prediction.
[[nodiscard]] std::vector<Comparison> compare_import(const CompareCommand& command);

/// The prediction's request for a run: threads, phase, new tokens and backend.
[[nodiscard]] TimeRequest time_request(const measured::MeasureOptions& run);

}  // namespace headroom::cli
