// Norms over features that tensor parallelism divides. Internal to src/plan.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/op.h"

namespace headroom::detail {

/// The sums over the tensor-parallel ranks that a norm over divided features needs before it
/// divides: of each row's squares, and of its values as well for a layer norm, in float32. None for
/// other operators, and for a norm of groups that each fall on one of `ranks` ranks.
[[nodiscard]] std::optional<Collective> norm_sums(const Op& op, std::int64_t ranks);

/// A norm of groups with those of one rank, each with all of its features, or with the rank's part
/// of one group; other operators unchanged.
[[nodiscard]] Op with_groups_of_rank(Op op, std::int64_t ranks);

}  // namespace headroom::detail
