// Seconds of one operator in a training step. Internal to src/plan.
#pragma once

#include "op_kind.h"

namespace headroom::detail {

/// Rates of one rank in training.
struct TrainingRates {
  double flops_per_s = 1;         ///< of large GEMMs
  double bytes_per_s = 1;         ///< of memory, by operators other than GEMMs
  double weight_bytes_per_s = 1;  ///< of memory, by the weights and weight gradients of GEMMs
  double gradient_bytes = 4;      ///< of a weight's gradient
  double kernel_s = 0;            ///< fixed time of a kernel
};

/// Work of one operator on one rank, in all layers of its section together.
struct TrainingWork {
  OpKind kind = OpKind::other;
  double layers = 1;
  double flops = 0;
  double backward_flops = 0;
  double bytes = 0;            ///< forward operands; of a GEMM, without its weights
  double weights = 0;          ///< elements of a GEMM's weights
  double trained_weights = 0;  ///< those of them that have a gradient
  double permuted_bytes = 0;   ///< one copy of the tokens that a dispatcher orders by expert
  double permutations = 0;     ///< reads and writes of that copy in one pass
};

struct PassSeconds {
  double forward_s = 0;
  double backward_s = 0;
};

/// A GEMM takes its arithmetic and the traffic of its weights, one after the other: kernels do not
/// hide weight gradients that are added in float32, which weighs most on experts with few tokens.
/// Other operators are bound by memory; each kernel has a fixed time besides. The constants were
/// read from measured kernels; see the source.
[[nodiscard]] PassSeconds training_seconds(const TrainingWork& work, const TrainingRates& rates);

/// Reads and writes of a token's copy that dispatcher and combiner need in one pass: ordering by
/// expert and back; with expert parallelism, ordering by rank and by local expert, and one of the
/// two ways back, since ExpertCombine counts the other.
[[nodiscard]] double permutations_of(bool expert_parallel) noexcept;

}  // namespace headroom::detail
