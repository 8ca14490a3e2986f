// The rules of parallel plans.
#include <algorithm>

#include "broken_rules.h"
#include "enum_table.h"

namespace headroom {
namespace {

struct Requirement {
  PlanRule rule;
  std::string_view text;
};
constexpr Requirement kRequirements[] = {
    {PlanRule::degrees_positive, "every degree of parallelism must be at least 1"},
    {PlanRule::layers_with_attention,
     "tensor and context do not divide recurrent or convolutional layers, nor the state-space "
     "layers "
     "of a model without attention"},
    {PlanRule::layers_without_compression,
     "tensor and context do not divide attention over compressed keys"},
    {PlanRule::whole_denoiser,
     "tensor, pipeline and context do not divide a diffusion transformer"},
    {PlanRule::tensor_heads, "tensor must divide num_attention_heads"},
    {PlanRule::tensor_key_value_heads,
     "tensor must divide num_key_value_heads or be a multiple of it"},
    {PlanRule::tensor_state_groups,
     "tensor must divide the groups of state-space heads or be a multiple of them"},
    {PlanRule::tensor_delta_key_heads, "tensor must divide the key heads of gated delta layers"},
    {PlanRule::tensor_intermediate_size, "tensor must divide every FFN intermediate size"},
    {PlanRule::tensor_uniform_layers,
     "tensor requires the same heads and intermediate size in every layer, and output projections"},
    {PlanRule::sequence_needs_tensor, "sequence requires tensor > 1"},
    {PlanRule::sequence_trains, "sequence applies only to training"},
    {PlanRule::sequence_length, "with sequence, tensor · context must divide seq_len"},
    {PlanRule::pipeline_trains, "pipeline of an encoder-decoder applies only to training"},
    {PlanRule::pipeline_layers, "pipeline must not exceed the number of layers"},
    {PlanRule::pipeline_separable_layers,
     "pipeline does not divide layers that share weights, a table of per-layer embeddings or "
     "tensors of earlier layers"},
    {PlanRule::pipeline_joined_layers,
     "pipeline must not divide layers that share keys and values"},
    {PlanRule::interleave_needs_pipeline, "interleave requires pipeline > 1"},
    {PlanRule::interleave_one_stack, "interleave does not apply to an encoder-decoder"},
    {PlanRule::interleave_layers,
     "pipeline · interleave must not exceed the number of layers by more than 2"},
    {PlanRule::context_trains, "context applies only to training"},
    {PlanRule::context_one_stack, "context does not apply to an encoder-decoder"},
    {PlanRule::context_without_state,
     "context does not divide layers that carry a state from token to token, nor attention in "
     "local windows"},
    {PlanRule::context_fused_attention, "context requires fused attention"},
    {PlanRule::context_all_keys, "context does not apply to attention with an indexer"},
    {PlanRule::context_length, "2 · context must divide seq_len"},
    {PlanRule::expert_routed, "expert requires routed experts"},
    {PlanRule::expert_count, "expert must divide the number of experts"},
    {PlanRule::expert_replicas,
     "expert must divide data · context, times tensor if the experts are whole"},
    {PlanRule::expert_whole_sequence,
     "whole experts under tensor parallelism require sequence parallelism"},
    {PlanRule::exchange_experts, "an exchange by node requires routed experts"},
    {PlanRule::whole_experts, "whole experts require routed experts"},
    {PlanRule::overlap_experts, "two batches overlap only under expert parallelism"},
    {PlanRule::overlap_serves, "two batches overlap only when serving"},
    {PlanRule::batch_size_positive, "batch_size must be at least 1"},
    {PlanRule::seq_len_positive, "seq_len must be at least 1"},
    {PlanRule::micro_batch_positive, "micro_batch must be at least 1"},
    {PlanRule::micro_batch_replica, "micro_batch must not exceed the sequences of a replica"},
    {PlanRule::busy_replicas, "data times micro_batch must not exceed batch_size"},
    {PlanRule::recompute_interval_positive, "recompute.every must be at least 1"},
    {PlanRule::interleave_micro_batches,
     "an interleaved pipeline requires a multiple of pipeline micro-batches"},
    {PlanRule::schedule_pipeline,
     "zero_bubble and dual_pipe require pipeline > 1 without interleave, and training"},
    {PlanRule::dual_pipe_stages,
     "dual_pipe requires an even pipeline and at least 2 · pipeline micro-batches"},
    {PlanRule::zero_ranks_divide,
     "zero_ranks must divide data · context, in groups that hold whole copies of the experts"},
    {PlanRule::tensor_overlap_sequence, "tensor_overlap requires sequence"},
    {PlanRule::offload_layers_count,
     "offload_layers must be at least 0 and less than the number of layers, and 0 when serving"},
    {PlanRule::offload_layers_pipeline, "offload_layers requires pipeline = 1"},
    {PlanRule::offload_layers_recompute, "offload_layers does not apply to recomputed layers"},
    {PlanRule::loss_chunks_positive, "loss_chunks must be at least 1"},
    {PlanRule::loss_chunks_words, "loss_chunks > 1 requires a language model's head, and training"},
    {PlanRule::loss_chunks_tokens,
     "loss_chunks must not exceed the tokens of a rank's micro-batch"},
};
static_assert(detail::lists_every<kRequirements>(&Requirement::rule));

bool divides(std::int64_t divisor, std::int64_t value) noexcept { return value % divisor == 0; }

std::optional<PlanRule> broken_layer_rule(const ParallelPlan& plan,
                                          const ShardingLimits& limits) noexcept {
  const bool divides_layers = plan.tensor > 1 || plan.context > 1;
  if (divides_layers && !limits.all_attention) return PlanRule::layers_with_attention;
  if (divides_layers && limits.compressed_attention) return PlanRule::layers_without_compression;
  const bool divides_any = divides_layers || plan.pipeline > 1;
  if (divides_any && limits.denoises) return PlanRule::whole_denoiser;
  return std::nullopt;
}

std::optional<PlanRule> broken_sequence_rule(const ParallelPlan& plan,
                                             const ShardingLimits& limits) noexcept {
  if (plan.sequence == SequenceParallel::off) return std::nullopt;
  if (plan.tensor == 1) return PlanRule::sequence_needs_tensor;
  if (!limits.training) return PlanRule::sequence_trains;
  if (!divides(plan.tensor * plan.context, limits.seq_len)) return PlanRule::sequence_length;
  return std::nullopt;
}

std::optional<PlanRule> broken_tensor_rule(const ParallelPlan& plan,
                                           const ShardingLimits& limits) noexcept {
  if (!divides(plan.tensor, limits.heads)) return PlanRule::tensor_heads;
  const auto splits = [&](std::int64_t count) {
    return divides(plan.tensor, count) || divides(count, plan.tensor);
  };
  if (!splits(limits.kv_heads)) return PlanRule::tensor_key_value_heads;
  if (!splits(limits.state_groups)) return PlanRule::tensor_state_groups;
  if (!divides(plan.tensor, limits.delta_key_heads)) return PlanRule::tensor_delta_key_heads;
  if (!divides(plan.tensor, limits.intermediate_size)) return PlanRule::tensor_intermediate_size;
  if (plan.tensor > 1 && !limits.uniform_layers) return PlanRule::tensor_uniform_layers;
  return std::nullopt;
}

std::optional<PlanRule> broken_interleave_rule(const ParallelPlan& plan,
                                               const ShardingLimits& limits) noexcept {
  if (plan.interleave == 1) return std::nullopt;
  if (!limits.one_stack) return PlanRule::interleave_one_stack;
  // The first and the last chunk may hold no layer: the embedding and the head count as one each.
  constexpr std::int64_t kEnds = 2;
  const std::int64_t chunks = plan.pipeline * plan.interleave;
  if (chunks > limits.layers.main + kEnds) return PlanRule::interleave_layers;
  return std::nullopt;
}

std::optional<PlanRule> broken_pipeline_rule(const ParallelPlan& plan,
                                             const ShardingLimits& limits) {
  if (plan.pipeline == 1) {
    if (plan.interleave > 1) return PlanRule::interleave_needs_pipeline;
    return std::nullopt;
  }
  // An encoder's stages have nothing to do in a decode step.
  if (!limits.one_stack && !limits.training) return PlanRule::pipeline_trains;
  if (plan.pipeline > limits.layers.total()) return PlanRule::pipeline_layers;
  if (!limits.separable_layers) return PlanRule::pipeline_separable_layers;
  if (const auto rule = broken_interleave_rule(plan, limits)) return rule;
  if (first_divided_layer(plan, limits)) return PlanRule::pipeline_joined_layers;
  return std::nullopt;
}

std::optional<PlanRule> broken_context_rule(const ParallelPlan& plan,
                                            const ShardingLimits& limits) noexcept {
  if (plan.context == 1) return std::nullopt;
  if (!limits.training) return PlanRule::context_trains;
  if (!limits.one_stack) return PlanRule::context_one_stack;
  if (limits.running_state) return PlanRule::context_without_state;
  if (!limits.fused_attention) return PlanRule::context_fused_attention;
  if (limits.indexed_attention) return PlanRule::context_all_keys;
  // Each rank has two chunks, one from either end, so that a causal mask leaves all ranks the same
  // work.
  if (!divides(2 * plan.context, limits.seq_len)) return PlanRule::context_length;
  return std::nullopt;
}

std::optional<PlanRule> broken_expert_rule(const ParallelPlan& plan,
                                           const ShardingLimits& limits) noexcept {
  const bool by_node = plan.expert_exchange == ExpertExchange::by_node;
  if (by_node && limits.experts == 0) return PlanRule::exchange_experts;
  const bool whole = plan.expert_tensor == ExpertTensor::whole;
  if (whole && limits.experts == 0) return PlanRule::whole_experts;
  if (plan.expert == 1) return std::nullopt;
  if (limits.experts == 0) return PlanRule::expert_routed;
  if (!divides(plan.expert, limits.experts)) return PlanRule::expert_count;
  if (!divides(plan.expert, plan.expert_replicas())) return PlanRule::expert_replicas;
  const bool spreads = whole && plan.tensor > 1;
  if (spreads && plan.sequence == SequenceParallel::off) return PlanRule::expert_whole_sequence;
  return std::nullopt;
}

std::optional<PlanRule> broken_overlap_rule(const ParallelPlan& plan,
                                            const ShardingLimits& limits) noexcept {
  if (plan.batch_overlap == BatchOverlap::none) return std::nullopt;
  if (limits.training) return PlanRule::overlap_serves;
  if (plan.expert == 1) return PlanRule::overlap_experts;
  return std::nullopt;
}

using DegreeCheck = std::optional<PlanRule> (*)(const ParallelPlan&, const ShardingLimits&);
constexpr DegreeCheck kDegreeChecks[] = {
    broken_layer_rule,   broken_tensor_rule, broken_sequence_rule, broken_pipeline_rule,
    broken_context_rule, broken_expert_rule, broken_overlap_rule};

}  // namespace

std::string_view requirement_of(PlanRule rule) noexcept {
  return kRequirements[static_cast<std::size_t>(rule)].text;
}

std::optional<PlanRule> rule_against_tensor(const ShardingLimits& limits) noexcept {
  ParallelPlan plan;
  plan.tensor = 2;
  if (const auto rule = broken_layer_rule(plan, limits)) return rule;
  if (!limits.uniform_layers) return PlanRule::tensor_uniform_layers;
  return std::nullopt;
}

std::optional<PlanRule> broken_rule(const ParallelPlan& plan, const ShardingLimits& limits) {
  const std::int64_t least =
      std::min({plan.tensor, plan.pipeline, plan.interleave, plan.data, plan.context, plan.expert});
  if (least < 1) return PlanRule::degrees_positive;
  for (const DegreeCheck check : kDegreeChecks) {
    if (const auto rule = check(plan, limits)) return rule;
  }
  return std::nullopt;
}

std::vector<PlanRule> detail::broken_rules(const ParallelPlan& plan, const ShardingLimits& limits) {
  std::vector<PlanRule> rules;
  for (const DegreeCheck check : kDegreeChecks) {
    if (const auto rule = check(plan, limits)) rules.push_back(*rule);
  }
  return rules;
}

}  // namespace headroom
