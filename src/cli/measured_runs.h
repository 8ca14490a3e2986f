// Files of measured runs: `calibrate --from`.
#pragma once

#include <string>
#include <vector>

#include "headroom/rate_fit.h"

namespace headroom::cli {

/// The runs of a file of JSON lines, each {"command": ["fit", MODEL, …], "time_s": …} or
/// {"command": ["serve", MODEL, …], "output_tokens_per_s": …} with optional "memory_bytes" and
/// "name": the command whose prediction was measured, on `machine`. A serving run's time is that of
/// all its requests.
/// Throws Error{invalid_input} that names file and line.
[[nodiscard]] std::vector<MeasuredRun> read_measured_runs(const std::string& file,
                                                          const std::string& machine);

}  // namespace headroom::cli
