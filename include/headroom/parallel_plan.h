// ParallelPlan: how the ranks of a machine share a model's work, and which plans a model allows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/graph.h"

namespace headroom {

/// Whether norms, residuals and dropouts between tensor-parallel products work on a share of the
/// sequence (arXiv 2205.05198, section 4.2.2), or on all of it in every rank.
enum class SequenceParallel { off, on };

/// Degrees of parallelism. Ranks are numbered tensor first, then context, data, and pipeline last,
/// so that those who exchange most are closest. Experts are spread over ranks of the data group.
struct ParallelPlan {
  std::int64_t tensor = 1;
  SequenceParallel sequence = SequenceParallel::off;
  std::int64_t pipeline = 1;
  std::int64_t interleave =
      1;  ///< model chunks of one pipeline rank (arXiv 2104.04473, section 2.2)
  std::int64_t data = 1;
  std::int64_t context = 1;
  std::int64_t expert = 1;
  bool operator==(const ParallelPlan&) const = default;

  [[nodiscard]] std::int64_t devices() const noexcept { return tensor * pipeline * data * context; }
  /// Ranks that hold the same weights, and so share their states.
  [[nodiscard]] std::int64_t replicas() const noexcept { return data * context; }
};

/// Layers of a model's stacks. A model of one stack has no encoder here.
struct StackLayers {
  std::int64_t encoder = 0;
  std::int64_t main = 1;
  [[nodiscard]] std::int64_t total() const noexcept { return encoder + main; }
};

/// What of a model and its workload a plan must divide.
struct ShardingLimits {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t inner_widths =
      0;  ///< a common divisor of all networks' inner widths; 0: there is none
  StackLayers layers;
  std::int64_t experts = 0;  ///< 0: no routed experts
  std::int64_t seq_len = 1;
  bool one_stack = true;        ///< not an encoder-decoder
  bool divides_all = true;      ///< tensor parallelism can divide every layer
  bool fused_attention = true;  ///< context parallelism never holds all pairs
  bool other_layers = false;    ///< some layers mix positions without attention
  bool training = true;
};

[[nodiscard]] ShardingLimits limits_of(const Graph& graph, std::int64_t seq_len);

/// Why a plan is illegal.
enum class Violation {
  none,
  below_one,
  tensor_heads,
  tensor_kv_heads,
  tensor_intermediate,
  tensor_layers,
  sequence_without_tensor,
  sequence_length,
  sequence_serving,
  pipeline_layers,
  pipeline_serving,
  interleave_layers,
  interleave_without_pipeline,
  context_length,
  context_attention,
  context_serving,
  expert_count,
  expert_ranks,
  interleave_two_stacks,
  context_two_stacks,
  layer_kind,
};

/// The first rule that `plan` breaks.
[[nodiscard]] Violation violation_of(const ParallelPlan& plan,
                                     const ShardingLimits& limits) noexcept;

/// Throws Error{invalid_input} that says which rule the plan breaks and how to mend it.
void require_legal(const ParallelPlan& plan, const ShardingLimits& limits);

/// Consecutive layers, from `begin` to before `end`, counted through both stacks: the encoder's
/// come first.
struct LayerRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// How many of a pipeline's stages an encoder-decoder's encoder has; its decoder has the others
/// (Megatron-LM calls it the split rank). Such that the largest stage has the fewest layers.
[[nodiscard]] std::int64_t encoder_stages(const StackLayers& layers, std::int64_t stages);

/// The layers of the stage at `place`, 0 the first: consecutive ones, or `interleave` pieces. Where
/// the degree does not divide them, stages have one more from the last but one backwards, since the
/// last has the head, and the first the embedding and most micro-batches: Llama 3 405B, 126 layers
/// on 16 stages, is 7, 14 times 8, 7 (arXiv 2407.21783, section 3.3.2); vLLM cuts the same.
[[nodiscard]] std::vector<LayerRange> layers_of_stage(const StackLayers& layers,
                                                      const ParallelPlan& plan, std::int64_t place);

/// "tp 8 · sp · pp 4 · dp 2": degrees above one.
[[nodiscard]] std::string describe(const ParallelPlan& plan);

}  // namespace headroom
