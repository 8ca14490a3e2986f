// Options that ask for a remedy of a plan that does not fit.
#pragma once

#include <vector>

#include "command_line.h"
#include "headroom/plan_report.h"

namespace headroom::cli {

/// The options of `fit` that apply `remedy`.
[[nodiscard]] std::vector<OptionValue> options_of(const Remedy& remedy);

}  // namespace headroom::cli
