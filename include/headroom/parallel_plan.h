// ParallelPlan: degrees of parallelism, and the rules that a model and its workload set for them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/graph.h"

namespace headroom {

/// Sequence parallelism: norms, residuals and dropouts between tensor-parallel GEMMs run on a shard
/// of the sequence (on) or on all of it in every rank (off). arXiv 2205.05198, section 4.2.2.
enum class SequenceParallel { off, on };

/// Degrees of parallelism. Ranks are numbered tensor first, then context, data, and pipeline last,
/// so that the ranks that communicate most are closest. Experts are spread over the replicas.
struct ParallelPlan {
  std::int64_t tensor = 1;
  SequenceParallel sequence = SequenceParallel::off;
  std::int64_t pipeline = 1;
  std::int64_t interleave = 1;  ///< model chunks per pipeline rank (arXiv 2104.04473, section 2.2)
  std::int64_t data = 1;
  std::int64_t context = 1;
  std::int64_t expert = 1;
  bool operator==(const ParallelPlan&) const = default;

  [[nodiscard]] std::int64_t devices() const noexcept { return tensor * pipeline * data * context; }
  /// Ranks with the same weights, over which ZeRO shards their states.
  [[nodiscard]] std::int64_t replicas() const noexcept { return data * context; }
};

/// Layers of a model's stacks. A model with one stack has no encoder here.
struct StackLayers {
  std::int64_t encoder = 0;
  std::int64_t main = 1;
  [[nodiscard]] std::int64_t total() const noexcept { return encoder + main; }
};

/// Properties of a model and its workload that the rules of a plan depend on.
struct ShardingLimits {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  /// Greatest common divisor of all FFN intermediate sizes; 0 without an FFN.
  std::int64_t intermediate_size = 0;
  StackLayers layers;
  std::int64_t experts = 0;  ///< 0: no routed experts
  std::int64_t seq_len = 1;
  bool one_stack = true;        ///< not an encoder-decoder
  bool uniform_layers = true;   ///< tensor parallelism can divide every layer
  bool fused_attention = true;  ///< no attention stores all pairs or a running state
  bool all_attention = true;    ///< no recurrent or convolutional layers
  bool training = true;
};

[[nodiscard]] ShardingLimits limits_of(const Graph& graph, std::int64_t seq_len);

/// A rule that a plan can break; requirement_of() states each.
enum class PlanRule {
  // Degrees and the model.
  degrees_positive,
  layers_with_attention,
  tensor_heads,
  tensor_key_value_heads,
  tensor_intermediate_size,
  tensor_uniform_layers,
  sequence_needs_tensor,
  sequence_trains,
  sequence_length,
  pipeline_trains,
  pipeline_layers,
  interleave_needs_pipeline,
  interleave_one_stack,
  interleave_layers,
  context_trains,
  context_one_stack,
  context_fused_attention,
  context_length,
  expert_routed,
  expert_count,
  expert_replicas,
  // Degrees and the load.
  batch_size_positive,
  seq_len_positive,
  micro_batch_positive,
  recompute_interval_positive,
  interleave_micro_batches,
};

/// The rule as a sentence about the fields of ParallelPlan, PlanChoice and Load.
[[nodiscard]] std::string_view requirement_of(PlanRule rule) noexcept;

/// The first rule that `plan` breaks, if any.
[[nodiscard]] std::optional<PlanRule> broken_rule(const ParallelPlan& plan,
                                                  const ShardingLimits& limits) noexcept;

/// Consecutive layers [begin, end), counted through both stacks: the encoder's come first.
struct LayerRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// Pipeline stages that hold an encoder-decoder's encoder; the decoder has the others (Megatron-LM
/// calls the number the split rank). Chosen so that the largest stage has the fewest layers.
[[nodiscard]] std::int64_t encoder_stages(const StackLayers& layers, std::int64_t stages);

/// The layers of one pipeline stage, 0 the first: one range, or `interleave` chunks. Where the
/// degree does not divide the layers, the stages before the last have one more each, since the last
/// also holds the head, and the first the embedding and most micro-batches. Llama 3 405B, 126
/// layers on 16 stages, is 7, 14 times 8, 7 (arXiv 2407.21783, section 3.3.2); vLLM cuts alike.
[[nodiscard]] std::vector<LayerRange> layers_of_stage(const StackLayers& layers,
                                                      const ParallelPlan& plan, std::int64_t stage);

/// "tp 8 · sp · pp 4 · dp 2": the degrees above one.
[[nodiscard]] std::string describe(const ParallelPlan& plan);

}  // namespace headroom
