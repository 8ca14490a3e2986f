// Residual streams of hyper-connections (DeepSeek-V4, transformers' models/deepseek_v4) and of
// attention residuals (Kimi K3).
#pragma once

#include <cstdint>
#include <vector>

namespace headroom::measured {

/// Residual streams [rows, streams, width].
struct Streams {
  std::int64_t rows = 0;
  std::int64_t streams = 0;
  std::int64_t width = 0;
};

/// Weights of `rows` tokens, in place of their logits: [rows, stride] with those of the sum, and in
/// a layer of the additions and the matrix [streams, streams] behind them.
struct StreamWeightArguments {
  std::int64_t rows = 0;
  std::int64_t streams = 0;
  std::int64_t stride = 0;
  std::int64_t iterations = 0;  ///< of Sinkhorn's algorithm; 0: no matrix
  float eps = 0;
  const float* base = nullptr;   ///< [stride]
  const float* scale = nullptr;  ///< of the sum, the additions and the matrix
  float addition_scale = 2;
  float addition_eps = 0;
};

/// sum = sigmoid + eps, additions = addition_scale · sigmoid + addition_eps, and the matrix =
/// softmax of its rows, which `iterations` normalisations make doubly stochastic.
void stream_weights(const StreamWeightArguments& args, float* logits);

/// out [rows, streams, width] = copies of x [rows, width].
void expand_streams(const Streams& sizes, const float* x, float* out);

/// out [rows, width] = Σ over the streams of x, each times its weight.
void sum_streams(const Streams& sizes, const float* weights, std::int64_t stride, const float* x,
                 float* out);

/// out [rows, width] = the mean of the streams of x.
void mean_of_streams(const Streams& sizes, const float* x, float* out);

/// Stream k becomes addition_k · branch + Σ_j matrix_jk · stream_j. Returns the FLOPs of the
/// product with the matrix.
std::int64_t update_streams(const Streams& sizes, const float* weights, std::int64_t stride,
                            const float* branch, float* x);

/// Stream k becomes addition_k · branch + stream_k.
void add_to_streams(const Streams& sizes, const float* weights, std::int64_t stride,
                    const float* branch, float* x);

/// Attention of each row over tensors [rows, width].
struct AttendArguments {
  std::int64_t rows = 0;
  std::int64_t width = 0;
  float eps = 0;
  std::vector<const float*> streams{};
  const float* norm = nullptr;        ///< [width]
  const float* projection = nullptr;  ///< [width]
};

/// out [rows, width] = Σ p_i · stream_i, where p is the softmax of the scores Σ norm · projection ·
/// stream_i / √(mean(stream_i²) + eps). Returns the FLOPs of the sum.
std::int64_t attend_streams(const AttendArguments& args, float* out);

}  // namespace headroom::measured
