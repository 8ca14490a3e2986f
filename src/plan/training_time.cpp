// Constants from kernels that SimuMax measured on B200 with PyTorch and Transformer Engine
// (github.com/MooreThreads/SimuMax, configs/system/b200_bf16_ceperm.json): GEMMs, grouped GEMMs and
// attention by shape, memory-bound operators with a fixed time of 30 µs each.
#include "training_time.h"

#include <algorithm>

namespace headroom::detail {
namespace {

/// Backward rate of fused attention over that of large GEMMs: 0.36 to 0.42 of peak beside 0.48.
/// The forward reaches about the GEMMs' rate. FlashAttention-3 has 0.75 and 0.57 of peak on H100
/// (arXiv 2407.08608, Figures 5 and 6).
constexpr double kAttentionBackward = 0.8;
/// Bytes that the loss moves over one read of the logits in 16 bit: maximum, exponentials, sum and
/// division in float32 forward, gradient and conversion backward (Megatron-LM's
/// fused_cross_entropy.py).
constexpr double kLossForward = 3;
constexpr double kLossBackward = 5;
constexpr double kWeightBytes = 2;
/// Fraction of the weights' traffic that adds to a GEMM's time. Gradients added in float32 take a
/// GEMM of 4096 rows from 0.49 to 0.455 of peak on B200 and from 0.75 to 0.71 on A100, half of
/// their traffic; those of experts with 512 to 1232 rows all of it.
constexpr double kExposedOfLinear = 0.5;
constexpr double kExposedOfExperts = 1;

/// Kernels of an operator's backward pass: the gradients of its inputs, and of its weights.
constexpr double kBackwardKernels = 2;

PassSeconds gemm_seconds(const TrainingWork& work, const TrainingRates& rates) {
  const auto arithmetic = [&](double flops, double bytes) {
    return std::max(flops / rates.flops_per_s, bytes / rates.weight_bytes_per_s);
  };
  const bool experts = work.kind == OpKind::expert_linear;
  const double exposed =
      (experts ? kExposedOfExperts : kExposedOfLinear) / rates.weight_bytes_per_s;
  const double read = kWeightBytes * work.weights * exposed;
  // Adds to the gradients in place: reads and writes them.
  const double accumulated = 2 * rates.gradient_bytes * work.trained_weights * exposed;
  return {arithmetic(work.flops, work.bytes) + read,
          arithmetic(work.backward_flops, 2 * work.bytes) + read + accumulated};
}

PassSeconds attention_seconds(const TrainingWork& work, const TrainingRates& rates) {
  return {std::max(work.flops / rates.flops_per_s, work.bytes / rates.bytes_per_s),
          std::max(work.backward_flops / (kAttentionBackward * rates.flops_per_s),
                   2 * work.bytes / rates.bytes_per_s)};
}

PassSeconds loss_seconds(const TrainingWork& work, const TrainingRates& rates) {
  return {kLossForward * work.bytes / rates.bytes_per_s,
          kLossBackward * work.bytes / rates.bytes_per_s};
}

/// The backward pass reads and writes gradients as well as activations: twice the forward's bytes.
PassSeconds other_seconds(const TrainingWork& work, const TrainingRates& rates) {
  return {std::max(work.flops / rates.flops_per_s, work.bytes / rates.bytes_per_s),
          std::max(work.backward_flops / rates.flops_per_s, 2 * work.bytes / rates.bytes_per_s)};
}

PassSeconds kernel_seconds(const TrainingWork& work, const TrainingRates& rates) {
  switch (work.kind) {
    case OpKind::linear:
    case OpKind::expert_linear:
      return gemm_seconds(work, rates);
    case OpKind::fused_attention:
      return attention_seconds(work, rates);
    case OpKind::loss:
      return loss_seconds(work, rates);
    case OpKind::word_embedding:
    case OpKind::relative_position_bias:
    case OpKind::expert_combine:
    case OpKind::eager_attention:
    case OpKind::indexer:
    case OpKind::linear_attention:
    case OpKind::activation:
    case OpKind::collective:
    case OpKind::other:
      break;
  }
  return other_seconds(work, rates);
}

}  // namespace

double permutations_of(bool expert_parallel) noexcept { return expert_parallel ? 6 : 3; }

PassSeconds training_seconds(const TrainingWork& work, const TrainingRates& rates) {
  PassSeconds seconds = kernel_seconds(work, rates);
  const double permuted = work.permutations * work.permuted_bytes / rates.bytes_per_s;
  seconds.forward_s += permuted + work.layers * rates.kernel_s;
  seconds.backward_s += permuted + work.layers * kBackwardKernels * rates.kernel_s;
  return seconds;
}

}  // namespace headroom::detail
