// Mixers with a state of constant size: short convolution, state-space scan and gated delta rule.
// All run position by position and continue from a state, which they update to the last position;
// zeros are the initial state.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/lightning_form.h"
#include "headroom/model_spec.h"

namespace headroom::measured {

/// Causal depthwise convolution, in place.
struct ShortConvolutionArguments {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t channels = 0;
  std::int64_t kernel = 0;
  const float* weight = nullptr;  ///< [channels, kernel], the last tap of the position itself
  const float* bias = nullptr;    ///< [channels]; null: none
  float* x = nullptr;             ///< [batch, seq_len, channels]
  float* state = nullptr;         ///< [batch, kernel, channels], the last inputs
};

/// Returns the FLOPs of the multiply-adds.
std::int64_t short_convolution(const ShortConvolutionArguments& args);

/// Rows of one operand of a scan, one per token: `data + token·stride`.
struct TokenRows {
  const float* data = nullptr;
  std::int64_t stride = 0;

  [[nodiscard]] const float* row(std::int64_t token) const { return data + token * stride; }
};

struct StateSpaceArguments {
  StateSpaceKind kind = StateSpaceKind::dual;
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 1;
  std::int64_t groups = 1;
  std::int64_t first_head = 0;  ///< of those that share the groups
  std::int64_t all_heads = 0;   ///< 0: heads
  std::int64_t state_size = 0;
  float least_time_step = 0;
  float greatest_time_step = 0;
  TokenRows x;                     ///< [heads·head_dim]
  TokenRows time_step;             ///< [heads], before softplus
  TokenRows b;                     ///< [groups·state_size]
  TokenRows c;                     ///< [groups·state_size]
  const float* dt_bias = nullptr;  ///< [heads], added to the time step; null: none
  const float* a_log = nullptr;    ///< log of the rate: [heads], selective [heads, state_size]
  const float* d = nullptr;        ///< [heads]
  const float* decay = nullptr;    ///< lightning: [heads]
  float* state = nullptr;          ///< [batch, heads, head_dim, state_size]
  float* out = nullptr;            ///< [batch, seq_len, heads·head_dim]
};

/// Decays of all heads of a lightning layer: exp(-s_h) with the slopes 2^(-8·h/heads), h from 1,
/// times 1 - layer/(layers - 1 + 1e-5) + 1e-5 (transformers, MiniMaxLightningAttention); or Ling's,
/// with ALiBi's slopes times 1 - (layer - 1)/(layers - 1) + 1e-5, more than 1 in the first layer
/// (inclusionAI, modeling_bailing_moe_v2_5.py, BailingMoeV2_5LinearAttention).
[[nodiscard]] std::vector<float> lightning_decays(std::int64_t heads, std::int64_t layer,
                                                  std::int64_t layers, LightningForm form);

/// FLOPs of an element of the state: a multiply-add into it, and one out of it.
inline constexpr std::int64_t kScanFlops = 4;

/// y_t = S_t·C_t + D·x_t with S_t = exp(Δ_t·A)·S_{t-1} + Δ_t·x_t·B_tᵀ, Δ = softplus(time step) and
/// A = -exp(a_log) (arXiv 2405.21060, section 2). Returns the FLOPs of the multiply-adds.
std::int64_t state_space_scan(const StateSpaceArguments& args);

/// state_space_scan() of a selective layer, whose heads are channels (arXiv 2312.00752, algorithm
/// 2).
std::int64_t selective_scan(const StateSpaceArguments& args);

struct GatedDeltaArguments {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t key_heads = 0;
  std::int64_t heads = 0;
  std::int64_t key_dim = 0;
  std::int64_t value_dim = 0;
  DeltaDecay decay = DeltaDecay::each_head;
  float strength = 1;              ///< multiplies β after its sigmoid
  float decay_bound = 0;           ///< least g; 0: none
  TokenRows query;                 ///< [key_heads·key_dim]
  TokenRows key;                   ///< [key_heads·key_dim]
  TokenRows value;                 ///< [heads·value_dim]
  TokenRows beta;                  ///< [heads], before its sigmoid
  TokenRows alpha;                 ///< [heads] or [heads·key_dim], before its softplus
  const float* dt_bias = nullptr;  ///< as alpha
  const float* a_log = nullptr;    ///< [heads]
  float* state = nullptr;          ///< [batch, heads, key_dim, value_dim]
  float* out = nullptr;            ///< [batch, seq_len, heads·value_dim]

  [[nodiscard]] std::int64_t scratch_floats() const {
    constexpr std::int64_t kMostLanes = 16;  // of a vector on any machine
    const std::int64_t values = (value_dim + kMostLanes - 1) / kMostLanes * kMostLanes;
    return batch * heads * (3 * key_dim + values);
  }
};

/// o_t = S_tᵀ·q_t with S = exp(g_t)·S_{t-1} and S_t = S + k_t·(β_t·(v_t - Sᵀ·k_t))ᵀ, where
/// g = -exp(a_log)·softplus(α + dt_bias), of a head or of each key dimension (arXiv 2412.06464, eq.
/// 10; arXiv 2510.26692, eq. 1), or with a bound g = bound·sigmoid(exp(a_log)·(α + dt_bias)).
/// Queries and keys are normalised to length 1, queries then divided by √key_dim. `scratch` has
/// scratch_floats(). Returns the FLOPs of the multiply-adds.
std::int64_t gated_delta(const GatedDeltaArguments& args, float* scratch);

}  // namespace headroom::measured
