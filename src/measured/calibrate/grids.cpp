// Grids of calibration. Sizes are multiples of 128 where models' sizes are, since that decides how
// kernels block them, but no pair of sizes is that of a preset that runs.
#include <algorithm>

#include "calibrate.h"

namespace headroom::measured {
namespace {

const std::vector<double> kFeatures{160, 640, 1664, 3328};
const std::vector<double> kOutFeatures{160, 640, 1664, 3328, 12544};
const std::vector<double> kElements{64, 1024, 8000, 48000, 300'000, 2e6, 6e6};
// Streams are cut into slices of 1024 inputs; models' sizes have no short last slice.
const std::vector<double> kStreamFeatures{448, 960, 3008};
const std::vector<double> kStreamOutFeatures{448, 1472, 12352};
// Stored weights have one kernel for any number of rows, which passes over them for every 64. The
// largest blocks have 256 values.
const std::vector<double> kBlockRows{1, 3, 8, 64};
// bfloat16 has one kernel for any number of rows; the time of more than the last grows with them.
const std::vector<double> kNarrowRows{1, 4, 8, 72};
const std::vector<double> kBlockFeatures{512, 1280, 3328};
// Even numbers of heads, so that threads get equal numbers, as in most models.
const std::vector<double> kBatchHeads{10, 38};
// Keys that are not a multiple of a kernel's block cost up to a fifth more; most prompts are
// multiples.
const std::vector<double> kQueries{1, 16, 64, 320, 960};
// Lengths between these change no prediction of the accuracy report by more than 0.2 points.
const std::vector<double> kPromptQueries{4, 64, 320, 960};
const std::vector<double> kKeys{64, 320, 960};
const std::vector<double> kSoftmaxLengths{1, 64, 320, 960};
// Decode steps: KV heads, query heads per KV head, and keys.
const std::vector<double> kStepHeads{6, 38};
const std::vector<double> kGroups{1, 3, 8};
const std::vector<double> kCachedKeys{64, 320, 1088, 4160};
const std::vector<double> kStepHeadDims{32, 128};
const std::vector<double> kHeadDims{32, 64, 128};

KernelGrid full_grid(KernelKind kind) {
  switch (kind) {
    case KernelKind::linear_cold:
    case KernelKind::linear_warm:
      return {{1, 16, 64, 192, 448, 896}, kFeatures, kOutFeatures};
    case KernelKind::stream_float32_cold:
    case KernelKind::stream_float32_warm:
      return {{1, 3, 8}, kStreamFeatures, kStreamOutFeatures};
    case KernelKind::linear_bfloat16_cold:
    case KernelKind::linear_bfloat16_warm:
      return {kNarrowRows, kStreamFeatures, kStreamOutFeatures};
    case KernelKind::attention_scores:
    case KernelKind::attention_context:
    case KernelKind::attention_fused:
      return {kBatchHeads, kPromptQueries, kKeys, kHeadDims};
    case KernelKind::step_scores_cold:
    case KernelKind::step_scores_warm:
    case KernelKind::step_context_cold:
    case KernelKind::step_context_warm:
    case KernelKind::step_fused_cold:
    case KernelKind::step_fused_warm:
      return {kStepHeads, kGroups, kCachedKeys, kStepHeadDims};
    case KernelKind::attention_softmax:
      return {kBatchHeads, kSoftmaxLengths, kSoftmaxLengths};
    case KernelKind::linear_attention:
    case KernelKind::linear_attention_causal:
      return {kBatchHeads, kQueries, kHeadDims};
    case KernelKind::layer_norm:
    case KernelKind::rms_norm:
    case KernelKind::embedding:
      return {{1, 14, 112, 896, 3584}, {112, 448, 1088, 3392}};
    case KernelKind::residual_add:
    case KernelKind::copy:
      return {kElements};
    case KernelKind::attention_softmax_causal:
    case KernelKind::attention_softmax_biased:
    case KernelKind::attention_fused_causal:
    case KernelKind::relu:
    case KernelKind::gelu:
    case KernelKind::gelu_tanh:
    case KernelKind::silu:
    case KernelKind::tanh:
    case KernelKind::relu_gated:
    case KernelKind::gelu_gated:
    case KernelKind::gelu_tanh_gated:
    case KernelKind::silu_gated:
    case KernelKind::scale:
    case KernelKind::feature_map:
    case KernelKind::rotary:
    case KernelKind::relative_position_bias:
      break;  // composed
  }
  return {};
}

/// Every second size, and the last.
std::vector<double> thinned(const std::vector<double>& axis) {
  std::vector<double> sizes;
  for (std::size_t i = 0; i < axis.size(); i += 2) sizes.push_back(axis[i]);
  if (sizes.back() != axis.back()) sizes.push_back(axis.back());
  return sizes;
}

KernelGrid at_effort(KernelGrid axes, Effort effort) {
  switch (effort) {
    case Effort::full:
      break;
    case Effort::quick:
      std::ranges::transform(axes, axes.begin(), thinned);
      break;
  }
  return axes;
}

}  // namespace

KernelGrid calibration_axes(KernelKind kind, Effort effort) {
  return at_effort(full_grid(kind), effort);
}

KernelGrid stored_gemm_axes(Effort effort) {
  return at_effort({kBlockRows, kBlockFeatures, kStreamOutFeatures}, effort);
}

}  // namespace headroom::measured
