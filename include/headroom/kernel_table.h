// KernelTable: times of a kernel over a grid of sizes, with interpolation between them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace headroom {

/// Kernels timed over a grid of sizes. `cold`: weights or KV-cache come from memory, as in a model
/// too large for any cache. `warm`: they come from the last-level cache, as in a small model.
enum class KernelKind {
  linear_cold,               ///< rows, in_features, out_features
  linear_warm,               ///< rows, in_features, out_features
  stream_float32_cold,       ///< as linear; few rows, weights read once
  stream_float32_warm,       ///< as stream_float32_cold
  stream_bfloat16_cold,      ///< as stream_float32_cold
  stream_bfloat16_warm,      ///< as stream_float32_cold
  attention_scores,          ///< batch · heads, queries, keys, head_dim
  attention_softmax,         ///< batch · heads, queries, keys
  attention_softmax_causal,  ///< as attention_softmax, with a causal mask
  attention_softmax_biased,  ///< as attention_softmax, with a bias for every pair
  attention_context,         ///< batch · heads, queries, keys, head_dim
  attention_fused,           ///< batch · heads, queries, keys, head_dim
  attention_fused_causal,    ///< batch · heads, heads per KV head, queries, keys, head_dim
  step_scores_cold,          ///< batch · KV heads, heads per KV head, keys, head_dim; one query
  step_scores_warm,          ///< as step_scores_cold
  step_context_cold,         ///< as step_scores_cold
  step_context_warm,         ///< as step_scores_cold
  step_fused_cold,           ///< as step_scores_cold
  step_fused_warm,           ///< as step_scores_cold
  linear_attention,          ///< batch · heads, queries, head_dim
  linear_attention_causal,   ///< batch · heads, queries, head_dim
  layer_norm,                ///< rows, width
  rms_norm,                  ///< rows, width
  relu,                      ///< elements
  gelu,                      ///< elements
  gelu_tanh,                 ///< elements
  silu,                      ///< elements
  tanh,                      ///< elements
  relu_gated,                ///< elements of the output
  gelu_gated,                ///< elements of the output
  gelu_tanh_gated,           ///< elements of the output
  silu_gated,                ///< elements of the output
  residual_add,              ///< elements
  scale,                     ///< elements
  feature_map,               ///< elements
  rotary,                    ///< elements of queries and keys
  relative_position_bias,    ///< heads · queries · keys
  embedding,                 ///< tokens, width
  copy,                      ///< elements
};

/// Name and axes of a kernel.
struct KernelInfo {
  KernelKind kind;
  std::string_view name;
  std::span<const std::string_view> axes;
};

/// All kinds, in order.
[[nodiscard]] std::span<const KernelInfo> kernel_kinds() noexcept;
[[nodiscard]] const KernelInfo& info_of(KernelKind kind) noexcept;

/// Sizes of one kernel call, one per axis.
using KernelSizes = std::vector<double>;

/// Work of a call, to which time is proportional once a kernel is saturated: multiply-adds (without
/// those under a causal mask), or elements.
[[nodiscard]] double work_of(KernelKind kind, const KernelSizes& sizes);

/// Ascending sizes along each axis of a kernel. Grid points are numbered row-major.
using KernelGrid = std::vector<std::vector<double>>;

[[nodiscard]] std::size_t point_count(const KernelGrid& grid);
/// Sizes at point `number`.
[[nodiscard]] KernelSizes point_of(const KernelGrid& grid, std::size_t number);
/// Number of the point with index `at[axis]` along each axis.
[[nodiscard]] std::size_t point_number(const KernelGrid& grid, std::span<const std::size_t> at);

/// Median time of a kernel over a grid of sizes, for one number of threads.
struct KernelTable {
  KernelKind kind = KernelKind::copy;
  KernelGrid axes;
  /// By point; empty for points that would take too long to measure.
  std::vector<std::optional<double>> seconds;
  std::vector<double> spread;  ///< by point: median absolute deviation / median
};

/// Table with no point measured.
[[nodiscard]] KernelTable unmeasured_table(KernelKind kind, KernelGrid axes);

/// A measured time with its spread.
struct KernelTime {
  double seconds = 0;
  double spread = 0;  ///< relative: median absolute deviation / median
};

/// Time of a call. Inside the grid: interpolated between the logarithms of sizes and times.
/// Outside: scaled by work from the nearest edge.
[[nodiscard]] KernelTime time_of(const KernelTable& table, const KernelSizes& sizes);

}  // namespace headroom
