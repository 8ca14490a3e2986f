// Common approximations, each with its source. Internal to src/assemble.
#pragma once

#include <vector>

#include "headroom/report.h"

namespace headroom::detail {

/// The rules for `subject` that apply to this kind of model, each with the exact formula that it
/// estimates. Values are not filled in.
[[nodiscard]] std::vector<RuleOfThumb> rules_of_thumb(const AnalyzeReport& report, Subject subject);

}  // namespace headroom::detail
