// Time mixing with a state matrix per head: RWKV-5 and RWKV-7. Both run position by position and
// continue from a state, which they update to the last position; zeros are the initial state.
#pragma once

#include <cstdint>

#include "headroom/op.h"

namespace headroom::measured {

struct TimeMixArguments {
  StateUpdate update = StateUpdate::two_vectors;  ///< or addition
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  const float* receptance = nullptr;  ///< [rows, heads·key_dim], as key, decay and rate
  const float* key = nullptr;
  const float* value = nullptr;   ///< [rows, heads·value_dim]
  const float* decay = nullptr;   ///< two_vectors: before its sigmoid
  const float* rate = nullptr;    ///< two_vectors: before its sigmoid
  const float* first = nullptr;   ///< [heads·key_dim]: removal, or log of the decay's rate
  const float* second = nullptr;  ///< [heads·key_dim]: replacement, or bonus of the position itself
  float* state = nullptr;         ///< [batch, heads, key_dim, value_dim]
  float* out = nullptr;           ///< [rows, heads·value_dim]

  [[nodiscard]] std::int64_t scratch_floats() const {
    return batch * heads * (4 * key_dim + value_dim);
  }
};

/// addition: o_t = rᵀ·(S_{t-1} + diag(u)·k·vᵀ) and S_t = diag(exp(-exp(w)))·S_{t-1} + k·vᵀ (arXiv
/// 2404.05892, eq. 5). two_vectors: o_t = rᵀ·S_t and S_t = diag(w_t)·S_{t-1} -
/// (a ⊙ κ̂)·(κ̂ᵀ·S_{t-1}) + k̃·vᵀ, where κ̂ is the key times the removal, of length 1, a and w_t =
/// exp(-e^(-1/2)·σ(decay)) are of the input, and k̃ = k·(1 + (a - 1)·replacement) (arXiv 2503.14456,
/// eq. 7 to 17). `scratch` has scratch_floats(). Returns the FLOPs of the multiply-adds.
std::int64_t time_mix(const TimeMixArguments& args, float* scratch);

struct ValueBonusArguments {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  const float* receptance = nullptr;  ///< [rows, heads·key_dim], as key and rate
  const float* key = nullptr;
  const float* value = nullptr;        ///< [rows, heads·value_dim]
  const float* rate = nullptr;         ///< before its sigmoid
  const float* replacement = nullptr;  ///< [heads·key_dim]
  const float* bonus = nullptr;        ///< [heads·key_dim]
  float* out = nullptr;                ///< [rows, heads·value_dim]
};

/// out += (Σ r·k̃·bonus)·v of every head (arXiv 2503.14456, eq. 18).
void add_value_bonus(const ValueBonusArguments& args);

}  // namespace headroom::measured
