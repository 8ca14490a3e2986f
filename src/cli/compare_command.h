// What `headroom compare` was asked, and its three ways of comparing.
#pragma once

#include <string>
#include <vector>

#include "headroom/compare.h"
#include "measure.h"
#include "options.h"

namespace headroom::cli {

struct CompareCommand {
  std::vector<std::string> subjects;  ///< a model, or two files
  std::string import_file;
  std::string machine = "here";
  WorkloadRequest request;
  measured::MeasureOptions run;
  CompareOptions options;
  OutputOptions output;
};

/// Predicts, measures and compares in one go.
[[nodiscard]] Comparison compare_here(const CompareCommand& command);
/// A prediction and a measurement that headroom wrote.
[[nodiscard]] Comparison compare_files(const CompareCommand& command);
/// Another engine's measurements, each beside a prediction.
[[nodiscard]] std::vector<Comparison> compare_import(const CompareCommand& command);

/// What was asked and has to be said besides the workload: the machine's threads and backend.
[[nodiscard]] TimeRequest time_request(const measured::MeasureOptions& run);

}  // namespace headroom::cli
