// Why a search has no legal plan.
#pragma once

#include "headroom/plan.h"

namespace headroom::detail {

/// Throws NoLegalPlan, or Error{invalid_input} for degrees that do not make the number of devices,
/// after a search of `space` without a legal plan.
[[noreturn]] void throw_no_legal_plan(const SearchSpace& space, const ShardingLimits& limits,
                                      const std::string& model);

}  // namespace headroom::detail
