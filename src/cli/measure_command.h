// A `headroom measure` command whose options are read, and its runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/measurement.h"
#include "headroom/parallel_plan.h"
#include "measure.h"
#include "model_reading.h"
#include "options.h"
#include "rank_runs.h"
#include "run_options.h"
#include "variations.h"

namespace headroom::cli {

struct MeasureCommand {
  std::vector<std::string> models;
  std::string model;  ///< of them, the one that runs
  Variations variations;
  ModelReading reading;
  WorkloadRequest request;
  measured::MeasureOptions options;
  std::string checkpoint;
  std::string input;
  std::vector<std::int64_t> tokens;
  std::string save_output;
  bool show_tokens = false;
  bool counters = false;
  std::optional<measured::ActivationPath> activations;
  OutputOptions output;
  RunOptions run;
  std::vector<Option> sizes;
  ParallelPlan plan;
};

/// A measurement and its notes.
struct Measured {
  Measurement measurement;
  std::vector<std::string> notes;
};

/// Measures `command.model` in this process. Throws Error.
[[nodiscard]] Measured measure_one(MeasureCommand command);

/// Measures it over the processes of the plan, as each of them; throws as above.
[[nodiscard]] Measured measure_on_ranks(MeasureCommand command, RankRun& ranks);

}  // namespace headroom::cli
