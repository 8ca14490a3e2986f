// Why a model's figure differs from the textbook's. Internal to src/assemble.
#pragma once

#include <string>
#include <vector>

#include "headroom/report.h"

namespace headroom::detail {

/// One sentence per feature of the model or workload that changes the figure of `subject`.
[[nodiscard]] std::vector<std::string> reasons_of(const AnalyzeReport& report, Subject subject);

}  // namespace headroom::detail
