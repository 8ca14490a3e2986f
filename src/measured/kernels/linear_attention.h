// Linear attention: a feature map replaces softmax (arXiv 2006.16236).
#pragma once

#include <cstdint>

#include "attention.h"

namespace headroom::measured {

/// Rows `[rows, heads·head_dim]` of queries or keys, `stride` floats apart.
struct MappedRows {
  float* x = nullptr;
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t stride = 0;
};

/// x = φ(x), in place.
void feature_map(FeatureMapKind kind, const MappedRows& features);

/// Floats of state: for each sequence and KV head S [head_dim, value_head_dim] = Σ φ(k)·vᵀ, then Z
/// [head_dim] = Σ φ(k).
[[nodiscard]] std::int64_t linear_attention_state_floats(const AttentionArguments& args);

/// out = φ(Q)·S / (φ(Q)·Z + eps). q and k already hold φ(Q) and φ(K). Scale, past and bias are
/// ignored; padding keys are left out of both sums.
///
/// Not causal: S and Z are the sums over all keys (eq. 5) and overwrite `state`. Causal: query i
/// sees the state after key i (eq. 9 - 12), so there must be as many queries as keys; the call
/// continues from `state` and updates it to the last key. Zeros are the initial state.
///
/// Returns the FLOPs of the matrix products: S, φ(Q)·S and φ(Q)·Z.
std::int64_t linear_attention(const AttentionArguments& args, float eps, float* state);

}  // namespace headroom::measured
