// Formulas that people use in the place of a count, each with where it comes from. Internal.
#pragma once

#include <vector>

#include "headroom/report.h"

namespace headroom::detail {

/// The rules about `subject` that are meant for models of this kind, beside the exact formula that
/// each stands for. Values are not filled in.
[[nodiscard]] std::vector<RuleOfThumb> rules_of_thumb(const ModelSpec& spec,
                                                      const Workload& workload, Subject subject,
                                                      const Analysis& analysis);

}  // namespace headroom::detail
