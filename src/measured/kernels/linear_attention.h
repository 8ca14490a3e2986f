// Attention with a feature map in the place of softmax (arXiv 2006.16236).
#pragma once

#include <cstdint>

#include "attention.h"

namespace headroom::measured {

/// x = elu(x) + 1 over rows [rows, width] that begin `stride` floats apart (eq. 7).
void feature_map(float* x, std::int64_t rows, std::int64_t width, std::int64_t stride);

/// Floats of state, for each sequence and key-value head S [head_dim, value_head_dim] = Σ φ(k)·vᵀ,
/// then Z [head_dim] = Σ φ(k).
[[nodiscard]] std::int64_t linear_attention_state_floats(const AttentionArguments& args);

/// out = φ(Q)·S / (φ(Q)·Z + eps). q and k hold φ(Q) and φ(K) already; scale, past and bias have no
/// part in it, and padding keys are left out of both sums.
///
/// Not causal: S and Z are the sums over all keys (eq. 5) and overwrite `state`. Causal: query i
/// sees the state after key i (eq. 9 - 12), so that queries must be as many as keys; `state` is
/// gone on from and left as it is after the last key. Zeros are the state before any key.
///
/// Returns the operations of the products: those that make S, φ(Q)·S and φ(Q)·Z.
std::int64_t linear_attention(const AttentionArguments& args, float eps, float* state);

}  // namespace headroom::measured
