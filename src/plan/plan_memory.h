// Sums of a plan's memory, and the runtime's part of it. Internal to src/plan.
#pragma once

#include "headroom/plan.h"

namespace headroom::detail {

/// Groups of ranks that a rank communicates with, each with buffers of its own.
[[nodiscard]] std::int64_t groups_of_rank(const ParallelPlan& plan) noexcept;

/// The runtime's memory beside `memory`'s activations and buffers.
[[nodiscard]] RuntimeBytes runtime_bytes(const PlanMemory& memory, const ParallelPlan& plan,
                                         const PlanQuery& query, const DeviceRates& rates);

}  // namespace headroom::detail
