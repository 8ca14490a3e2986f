// Where kernels are measured. Sizes are multiples of 64 where models' sizes are, since that decides
// how kernels cut them up, but pairs of sizes that no preset has.
#include "calibrate.h"

namespace headroom::measured {
namespace {

using Axes = std::vector<std::vector<double>>;

const std::vector<double> kFeatures{160, 704, 1664, 3392};
const std::vector<double> kOutFeatures{160, 704, 1664, 3392, 12352};
const std::vector<double> kElements{64, 1024, 6000, 24000, 96000, 384000, 1.5e6, 6e6, 24e6};
const std::vector<double> kStreamFeatures{448, 1088, 3392};
const std::vector<double> kStreamOutFeatures{448, 1088, 3392, 12352};
const std::vector<double> kBatchHeads{5, 36};
const std::vector<double> kQueries{1, 14, 56, 150, 400, 1100};
const std::vector<double> kKeys{14, 56, 150, 400, 1100};
const std::vector<double> kHeadDims{32, 64, 128};

}  // namespace

Axes calibration_axes(KernelKind kind) {
  switch (kind) {
    case KernelKind::linear_cold:
    case KernelKind::linear_warm:
      return {{1, 6, 14, 40, 112, 224, 448, 896}, kFeatures, kOutFeatures};
    case KernelKind::stream_float32_cold:
    case KernelKind::stream_float32_warm:
    case KernelKind::stream_bfloat16_cold:
    case KernelKind::stream_bfloat16_warm:
      return {{1, 3, 8}, kStreamFeatures, kStreamOutFeatures};
    case KernelKind::attention_scores:
    case KernelKind::attention_context:
    case KernelKind::attention_fused:
    case KernelKind::attention_fused_causal:
      return {kBatchHeads, kQueries, kKeys, kHeadDims};
    case KernelKind::attention_softmax:
    case KernelKind::attention_softmax_biased:
      return {kBatchHeads, kQueries, kKeys};
    case KernelKind::linear_attention:
    case KernelKind::linear_attention_causal:
      return {kBatchHeads, kQueries, kHeadDims};
    case KernelKind::layer_norm:
    case KernelKind::rms_norm:
    case KernelKind::embedding:
      return {{1, 14, 112, 896, 7168}, {112, 448, 1088, 3392}};
    case KernelKind::relu:
    case KernelKind::gelu:
    case KernelKind::gelu_tanh:
    case KernelKind::silu:
    case KernelKind::tanh:
    case KernelKind::relu_gated:
    case KernelKind::gelu_gated:
    case KernelKind::gelu_tanh_gated:
    case KernelKind::silu_gated:
    case KernelKind::residual_add:
    case KernelKind::scale:
    case KernelKind::feature_map:
    case KernelKind::rotary:
    case KernelKind::relative_position_bias:
    case KernelKind::copy:
      break;
  }
  return {kElements};
}

}  // namespace headroom::measured
