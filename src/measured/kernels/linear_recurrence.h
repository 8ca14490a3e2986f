// Element-wise recurrences: RG-LRU of Griffin, token shift and WKV of RWKV-4. All run position by
// position and continue from a state, which they update to the last position; zeros are the initial
// state.
#pragma once

#include <algorithm>
#include <cstdint>

namespace headroom::measured {

struct GatedRecurrenceArguments {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t first_position = 0;             ///< of the first row
  const float* x = nullptr;                    ///< [batch, seq_len, heads·head_dim]
  const float* input_gate = nullptr;           ///< [heads, in, out]
  const float* input_gate_bias = nullptr;      ///< [heads, out]
  const float* recurrent_gate = nullptr;       ///< [heads, in, out]
  const float* recurrent_gate_bias = nullptr;  ///< [heads, out]
  const float* decay = nullptr;                ///< Λ, [heads·head_dim]
  float* state = nullptr;                      ///< [batch, heads·head_dim]
  float* out = nullptr;                        ///< [batch, seq_len, heads·head_dim]

  [[nodiscard]] std::int64_t width() const { return heads * head_dim; }
  /// Tokens whose gates are projected together, so that a block's weights are read once for them.
  [[nodiscard]] std::int64_t gate_rows() const { return std::min<std::int64_t>(seq_len, 16); }
  [[nodiscard]] std::int64_t scratch_floats() const { return 2 * gate_rows() * batch * width(); }
};

/// RG-LRU (arXiv 2402.19427, eq. 1 to 4); position 0 has no decay and no factor of its input
/// (transformers, RecurrentGemmaRglru). `scratch` has scratch_floats(). Returns the FLOPs of the
/// gates' multiply-adds.
std::int64_t gated_linear_recurrence(const GatedRecurrenceArguments& args, float* scratch);

struct TokenShiftArguments {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t width = 0;
  const float* x = nullptr;  ///< [batch, seq_len, width]
  float* state = nullptr;    ///< [batch, width], the last row
  float* out = nullptr;      ///< [batch, seq_len, width]
};

/// out_t = x_{t-1}.
void token_shift(const TokenShiftArguments& args);

/// out = μ·x + (1 - μ)·y over `rows` rows of `width`, with μ `[width]`. `out` may be x or y.
void token_mix(const float* x, const float* y, const float* mu, float* out, std::int64_t rows,
               std::int64_t width);

/// out = σ(share)·x + (1 - σ(share))·y, element by element. `out` may be x or y.
void gate_mix(const float* x, const float* y, const float* share, float* out, std::int64_t count);

struct WeightedKeyValueArguments {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t width = 0;
  const float* key = nullptr;    ///< [batch, seq_len, width]
  const float* value = nullptr;  ///< [batch, seq_len, width]
  const float* decay = nullptr;  ///< w, [width]; the state decays by exp(-exp(w))
  const float* bonus = nullptr;  ///< u, [width], of the position itself
  float* state = nullptr;        ///< [batch, 3, width]: numerator, denominator, largest exponent
  float* out = nullptr;          ///< [batch, seq_len, width]
};

/// WKV (arXiv 2305.13048, eq. 16), with numerator and denominator divided by the largest
/// exponential so far (its appendix D). A denominator of 0 marks the initial state.
void weighted_key_value(const WeightedKeyValueArguments& args);

/// out = rows of `first` floats of x, each followed by one of `second` floats of y.
void concatenate_rows(const float* x, std::int64_t first, const float* y, std::int64_t second,
                      float* out, std::int64_t rows);

}  // namespace headroom::measured
