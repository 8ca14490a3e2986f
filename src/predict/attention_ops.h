// Operators that read keys and values. Internal to src/predict and src/plan.
#pragma once

#include <variant>

#include "headroom/op.h"

namespace headroom::detail {

/// True for the products of attention, which read keys or values, perhaps from a KV-cache.
[[nodiscard]] inline bool attends(const Op& op) noexcept {
  return std::holds_alternative<FusedAttention>(op) ||
         std::holds_alternative<AttentionScores>(op) ||
         std::holds_alternative<AttentionContext>(op);
}

}  // namespace headroom::detail
