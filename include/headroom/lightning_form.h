// Forms of lightning attention, which differ around the scan.
#pragma once

#include "headroom/attention_spec.h"

namespace headroom {

/// `minimax`: SiLU of queries, keys and values, a norm of all heads together, and decays that
/// weaken from the first layer on (arXiv 2501.08313). `ling`: query and key heads with norms and
/// RoPE, queries over √head_dim, a norm of groups of heads, and the decays of one layer before
/// (arXiv 2510.19338; inclusionAI, modeling_bailing_moe_v2_5.py).
enum class LightningForm { minimax, ling };

/// Ling's layers have norms of query and key heads, MiniMax's have none.
[[nodiscard]] inline LightningForm lightning_form(const AttentionSpec& attention) noexcept {
  return attention.query_key_norm ? LightningForm::ling : LightningForm::minimax;
}

}  // namespace headroom
