// A model's own weights, where it was named by its files.
#pragma once

#include <string>

#include "headroom/report.h"

namespace headroom::cli {

/// Gives the weights of `report` their real bytes where `model` names files that quantise them.
void apply_stored_weights(AnalyzeReport& report, const std::string& model);

}  // namespace headroom::cli
