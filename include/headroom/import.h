// Import: runs from JSON files, headroom's own and other engines'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/compare.h"

namespace headroom {

/// The prediction in the JSON of `headroom analyze` with a machine. Throws Error{invalid_input} if
/// a figure is missing or contradicts another, or if the file is a measurement.
[[nodiscard]] ComparedRun import_prediction(std::string_view text, const std::string& where);

/// The measurement in JSON as `headroom measure` writes it (reports/measure.schema.json). Throws
/// Error{invalid_input} as above.
[[nodiscard]] ComparedRun import_measurement(std::string_view text, const std::string& where);

/// The runs in a file of any engine: headroom, llama-bench, vLLM bench, optimum-benchmark. Throws
/// Error{invalid_input} if the format is unknown or the file is damaged.
[[nodiscard]] std::vector<ComparedRun> import_runs(std::string_view text, const std::string& where);

}  // namespace headroom
