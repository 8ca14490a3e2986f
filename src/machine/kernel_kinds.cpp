// The kernels and their axes.
#include <algorithm>
#include <functional>
#include <numeric>

#include "enum_table.h"
#include "headroom/machine_profile.h"

namespace headroom {
namespace {

using Names = std::string_view;

constexpr Names kLinear[] = {"rows", "in_features", "out_features"};
constexpr Names kPairs[] = {"batch_heads", "queries", "keys"};
constexpr Names kAttention[] = {"batch_heads", "queries", "keys", "head_dim"};
constexpr Names kCausalAttention[] = {"batch_heads", "group", "queries", "keys", "head_dim"};
constexpr Names kStepAttention[] = {"batch_kv_heads", "group", "keys", "head_dim"};
constexpr Names kLinearAttention[] = {"batch_heads", "queries", "head_dim"};
constexpr Names kRows[] = {"rows", "width"};
constexpr Names kElements[] = {"elements"};

constexpr KernelInfo kKinds[] = {
    {KernelKind::linear_cold, "linear_cold", kLinear},
    {KernelKind::linear_warm, "linear_warm", kLinear},
    {KernelKind::stream_float32_cold, "stream_float32_cold", kLinear},
    {KernelKind::stream_float32_warm, "stream_float32_warm", kLinear},
    {KernelKind::linear_bfloat16_cold, "linear_bfloat16_cold", kLinear},
    {KernelKind::linear_bfloat16_warm, "linear_bfloat16_warm", kLinear},
    {KernelKind::attention_scores, "attention_scores", kAttention},
    {KernelKind::attention_softmax, "attention_softmax", kPairs},
    {KernelKind::attention_softmax_causal, "attention_softmax_causal", kPairs},
    {KernelKind::attention_softmax_biased, "attention_softmax_biased", kPairs},
    {KernelKind::attention_context, "attention_context", kAttention},
    {KernelKind::attention_fused, "attention_fused", kAttention},
    {KernelKind::attention_fused_causal, "attention_fused_causal", kCausalAttention},
    {KernelKind::step_scores_cold, "step_scores_cold", kStepAttention},
    {KernelKind::step_scores_warm, "step_scores_warm", kStepAttention},
    {KernelKind::step_context_cold, "step_context_cold", kStepAttention},
    {KernelKind::step_context_warm, "step_context_warm", kStepAttention},
    {KernelKind::step_fused_cold, "step_fused_cold", kStepAttention},
    {KernelKind::step_fused_warm, "step_fused_warm", kStepAttention},
    {KernelKind::linear_attention, "linear_attention", kLinearAttention},
    {KernelKind::linear_attention_causal, "linear_attention_causal", kLinearAttention},
    {KernelKind::layer_norm, "layer_norm", kRows},
    {KernelKind::rms_norm, "rms_norm", kRows},
    {KernelKind::relu, "relu", kElements},
    {KernelKind::gelu, "gelu", kElements},
    {KernelKind::gelu_tanh, "gelu_tanh", kElements},
    {KernelKind::silu, "silu", kElements},
    {KernelKind::tanh, "tanh", kElements},
    {KernelKind::relu_gated, "relu_gated", kElements},
    {KernelKind::gelu_gated, "gelu_gated", kElements},
    {KernelKind::gelu_tanh_gated, "gelu_tanh_gated", kElements},
    {KernelKind::silu_gated, "silu_gated", kElements},
    {KernelKind::residual_add, "residual_add", kElements},
    {KernelKind::scale, "scale", kElements},
    {KernelKind::feature_map, "feature_map", kElements},
    {KernelKind::rotary, "rotary", kElements},
    {KernelKind::relative_position_bias, "relative_position_bias", kElements},
    {KernelKind::embedding, "embedding", kRows},
    {KernelKind::copy, "copy", kElements},
};
static_assert(detail::lists_every<kKinds>(&KernelInfo::kind));

/// Unmasked causal pairs; the last query sees all keys.
double causal_pairs(double queries, double keys) {
  const double square = std::min(queries, keys);
  const double past = keys - square;
  return square * (square + 1) / 2 + (queries - square) * keys + queries * past;
}

constexpr Names kBlockFormats[] = {"Q8_0", "Q6_K", "Q5_K", "Q5_1",   "Q5_0",   "Q4_K", "Q4_1",
                                   "Q4_0", "Q3_K", "Q2_K", "IQ4_NL", "IQ4_XS", "MXFP4"};

}  // namespace

std::span<const std::string_view> block_formats() noexcept { return kBlockFormats; }

std::span<const KernelInfo> kernel_kinds() noexcept { return kKinds; }

const KernelInfo& info_of(KernelKind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)];
}

double work_of(KernelKind kind, const KernelSizes& sizes) {
  if (kind == KernelKind::attention_fused_causal) {
    // Grouped heads share keys, not work.
    return sizes[0] * causal_pairs(sizes[2], sizes[3]) * sizes[4];
  }
  const double product =
      std::accumulate(sizes.begin(), sizes.end(), 1.0, std::multiplies<double>());
  // Each token updates a state of head_dim × head_dim.
  const bool squares =
      kind == KernelKind::linear_attention || kind == KernelKind::linear_attention_causal;
  return squares ? product * sizes.back() : product;
}

}  // namespace headroom
