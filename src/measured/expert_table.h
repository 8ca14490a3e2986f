// Tables of the experts of each token id. Internal to src/measured.
#pragma once

#include "headroom/graph.h"

namespace headroom::measured {

/// Returns whether `weight` is one: whole numbers, not factors.
[[nodiscard]] inline bool is_expert_table(const Weight& weight) {
  return weight.path.ends_with(".token_experts");
}

}  // namespace headroom::measured
