// All rules that a plan breaks, where broken_rule() stops at the first.
#pragma once

#include <vector>

#include "headroom/plan.h"

namespace headroom::detail {

/// The first rule of each kind that `plan`, whose degrees are at least 1, breaks.
[[nodiscard]] std::vector<PlanRule> broken_rules(const ParallelPlan& plan,
                                                 const ShardingLimits& limits);
/// As above, with the rules about the load, whose numbers are at least 1.
[[nodiscard]] std::vector<PlanRule> broken_rules(const PlanChoice& choice, const Load& load,
                                                 const ShardingLimits& limits);

}  // namespace headroom::detail
