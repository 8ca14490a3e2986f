#include "plan_violations.h"

#include <fmt/format.h>

#include <numeric>

#include "with_noun.h"

namespace headroom::cli {
namespace {

struct Wording {
  std::string message;
  std::string hint;
};

Wording below_one(const char* option, std::int64_t value) {
  return {fmt::format("{} must be at least 1, not {}", option, value), {}};
}

Wording training_only(const char* option) {
  return {fmt::format("{} applies only to training", option),
          fmt::format("leave out {}, or use --phase train", option)};
}

Wording zero_groups(const PlanViolation& violation) {
  const ParallelPlan& plan = violation.choice.parallel;
  const std::int64_t ranks = violation.choice.step.zero_ranks;
  if (ranks > 0 && plan.replicas() % ranks == 0) {
    // Whole experts are spread over tensor-parallel ranks, too.
    const bool whole = plan.expert_tensor == ExpertTensor::whole;
    const std::int64_t unit = plan.expert / std::gcd(plan.expert, whole ? plan.tensor : 1);
    return {fmt::format("groups of --zero-ranks {} hold no whole copies of the experts, which --ep "
                        "{} spreads further",
                        ranks, plan.expert),
            fmt::format("choose --zero-ranks as a multiple of {}", unit)};
  }
  return {fmt::format("--zero-ranks {} does not divide {}", ranks,
                      detail::with_noun(plan.replicas(), "replica")),
          "choose a divisor of --dp × --cp"};
}

Wording busy_replicas(const PlanViolation& violation) {
  const std::int64_t replicas = violation.choice.parallel.data;
  const std::int64_t batch = violation.load.batch_size;
  const std::int64_t micro_batch = violation.limits.training ? violation.choice.micro_batch : 1;
  if (micro_batch == 1) {
    return {fmt::format("{} need at least as many sequences, and --batch is {}",
                        detail::with_noun(replicas, "replica"), batch),
            "choose a larger --batch, or fewer replicas (--dp)"};
  }
  return {fmt::format("--micro-batch {} in {} needs at least {} sequences, and --batch is {}",
                      micro_batch, detail::with_noun(replicas, "replica"), replicas * micro_batch,
                      batch),
          "choose a larger --batch, or a smaller --micro-batch"};
}

Wording wording_of(const PlanViolation& violation) {
  const ParallelPlan& plan = violation.choice.parallel;
  const ShardingLimits& limits = violation.limits;
  switch (violation.rule) {
    case PlanRule::degrees_positive:
      return {"every degree of parallelism must be at least 1", {}};
    case PlanRule::layers_with_attention:
      return {
          "--tp and --cp do not divide recurrent or convolutional layers, nor the state-space "
          "layers of a model without attention",
          limits.separable_layers ? "use --dp or --pp, which leave layers whole"
                                  : "use --dp, which leaves layers whole"};
    case PlanRule::layers_without_compression:
      return {"--tp and --cp do not divide attention over compressed keys",
              "use --dp, --ep or --pp, which leave attention whole"};
    case PlanRule::whole_denoiser:
      return {"--tp, --pp and --cp do not divide a diffusion transformer",
              "use --dp, which leaves the model whole"};
    case PlanRule::tensor_heads:
      return {fmt::format("--tp {} does not divide {} attention heads", plan.tensor, limits.heads),
              "choose a divisor of the number of heads"};
    case PlanRule::tensor_key_value_heads:
      return {fmt::format("--tp {} neither divides {} key-value heads nor is a multiple of them",
                          plan.tensor, limits.kv_heads),
              "choose a divisor or a multiple of the number of key-value heads"};
    case PlanRule::tensor_state_groups:
      return {
          fmt::format("--tp {} neither divides {} groups of state-space heads nor is a multiple "
                      "of them",
                      plan.tensor, limits.state_groups),
          "choose a divisor or a multiple of the number of groups"};
    case PlanRule::tensor_delta_key_heads:
      return {fmt::format("--tp {} does not divide {} key heads of gated delta layers", plan.tensor,
                          limits.delta_key_heads),
              "choose a divisor of the number of key heads"};
    case PlanRule::tensor_intermediate_size:
      return {fmt::format("--tp {} does not divide every FFN intermediate size", plan.tensor),
              fmt::format("choose a divisor of {}", limits.intermediate_size)};
    case PlanRule::tensor_uniform_layers:
      return {
          "--tp does not divide layers with heads or intermediate sizes of their own, nor those "
          "without an output projection",
          "leave out --tp"};
    case PlanRule::sequence_needs_tensor:
      return {"--sp requires --tp > 1", "add --tp, or leave out --sp"};
    case PlanRule::sequence_trains:
      return training_only("--sp");
    case PlanRule::sequence_length:
      return {fmt::format("--tp {} × --cp {} does not divide a sequence of {}", plan.tensor,
                          plan.context, detail::with_noun(limits.seq_len, "token")),
              fmt::format("choose --seq as a multiple of {}, or leave out --sp",
                          plan.tensor * plan.context)};
    case PlanRule::pipeline_trains:
      return {
          "--pp of an encoder-decoder applies only to training: the encoder's stages would be idle "
          "in a decode step",
          "leave out --pp, or use --phase train"};
    case PlanRule::pipeline_layers:
      return {fmt::format("--pp {} needs {} layers, and the model has {}", plan.pipeline,
                          plan.pipeline, limits.layers.total()),
              "choose fewer stages"};
    case PlanRule::pipeline_separable_layers:
      return {
          "--pp does not divide layers that share weights, a table of per-layer embeddings or "
          "tensors of earlier layers",
          "leave out --pp"};
    case PlanRule::pipeline_joined_layers:
      return {fmt::format("--pp {} divides layers that share keys and values: a stage would begin "
                          "at layer {}, and need those of the stage before",
                          plan.pipeline, first_divided_layer(plan, limits).value_or(0)),
              "choose another --pp, or leave it out"};
    case PlanRule::interleave_needs_pipeline:
      return {"--interleave requires --pp > 1", "add --pp, or leave out --interleave"};
    case PlanRule::interleave_one_stack:
      return {
          "--interleave does not apply to an encoder-decoder: its pipeline runs the encoder's "
          "stages, then the decoder's",
          "leave out --interleave"};
    case PlanRule::interleave_layers:
      return {fmt::format("--pp {} × --interleave {} is more chunks than {} layers, the embedding "
                          "and the head",
                          plan.pipeline, plan.interleave, limits.layers.main),
              "choose a smaller --interleave"};
    case PlanRule::context_trains:
      return training_only("--cp");
    case PlanRule::context_one_stack:
      return {"--cp shards one sequence, and an encoder-decoder has two", "leave out --cp"};
    case PlanRule::context_without_state:
      return {
          "--cp does not divide layers that carry a state from token to token, nor attention in "
          "local windows",
          "leave out --cp"};
    case PlanRule::context_fused_attention:
      return {"--cp requires fused attention in every layer",
              "add --attention fused, or leave out --cp"};
    case PlanRule::context_all_keys:
      return {
          "--cp does not apply to attention with an indexer, which scores the keys of all ranks",
          "leave out --cp"};
    case PlanRule::context_length:
      return {fmt::format("2 × --cp {} does not divide a sequence of {} tokens", plan.context,
                          limits.seq_len),
              fmt::format("choose --seq as a multiple of {}", 2 * plan.context)};
    case PlanRule::expert_routed:
      return {"--ep requires routed experts, and this model has none", "leave out --ep"};
    case PlanRule::expert_count:
      return {fmt::format("--ep {} does not divide {} routed experts", plan.expert, limits.experts),
              "choose a divisor of the number of experts"};
    case PlanRule::expert_replicas:
      return {fmt::format("--ep {} does not divide --dp {} × --cp {}{}", plan.expert, plan.data,
                          plan.context,
                          plan.expert_tensor == ExpertTensor::whole
                              ? fmt::format(" × --tp {}", plan.tensor)
                              : std::string()),
              plan.expert_tensor == ExpertTensor::whole || plan.tensor == 1
                  ? "choose a divisor of the product: experts are spread over these ranks"
                  : "choose a divisor of the product: experts are spread over these ranks; --etp 1 "
                    "spreads them over the tensor-parallel ranks, too"};
    case PlanRule::expert_whole_sequence:
      return {"--etp 1 with --tp requires --sp: each tensor-parallel rank sends its own tokens",
              "add --sp, or leave out --etp: without --sp, as in serving, it does not apply"};
    case PlanRule::exchange_experts:
      return {"--expert-exchange requires routed experts, and this model has none",
              "leave out --expert-exchange"};
    case PlanRule::whole_experts:
      return {"--etp 1 requires routed experts, and this model has none", "leave out --etp"};
    case PlanRule::overlap_experts:
      if (limits.experts == 0) {
        return {"--two-batch-overlap hides the exchange with experts, and this model has none",
                "leave out --two-batch-overlap"};
      }
      return {"--two-batch-overlap hides the exchange with experts, and this plan has none",
              "add --ep, or leave out --two-batch-overlap"};
    case PlanRule::overlap_serves:
      return {"--two-batch-overlap applies only to serving",
              "in training, --schedule dual-pipe hides the exchange with experts"};
    case PlanRule::schedule_pipeline:
      return {
          "--schedule zero-bubble and dual-pipe require --pp > 1 without --interleave, in "
          "training",
          "leave out --schedule, or change --pp and --interleave"};
    case PlanRule::dual_pipe_stages:
      return {fmt::format("--schedule dual-pipe requires an even --pp, and at least 2 × --pp "
                          "micro-batches, not {} in {} stages",
                          micro_batches(violation.choice, violation.load), plan.pipeline),
              "change --pp, --batch or --micro-batch"};
    case PlanRule::zero_ranks_divide:
      return zero_groups(violation);
    case PlanRule::tensor_overlap_sequence:
      return {
          "--tp-comm-overlap hides the collectives of sequence parallelism, and this plan has "
          "none",
          "add --tp and --sp, or leave out --tp-comm-overlap"};
    case PlanRule::offload_layers_count:
      return {fmt::format("--cpu-offloading-num-layers {} must be less than {}",
                          violation.choice.step.offload_layers,
                          detail::with_noun(limits.layers.total(), "layer")),
              "choose fewer layers: the last one's activations stay on the device"};
    case PlanRule::offload_layers_pipeline:
      return {"--cpu-offloading-num-layers does not apply to a pipeline",
              "leave out --pp, or keep the activations on the device"};
    case PlanRule::offload_layers_recompute:
      return {"--cpu-offloading-num-layers does not apply to recomputed layers",
              "leave out --recompute, or keep the activations on the device"};
    case PlanRule::loss_chunks_positive:
      return below_one("--loss-chunks", violation.choice.step.loss_chunks);
    case PlanRule::loss_chunks_words:
      return {"--loss-chunks requires a language model's head", "leave out --loss-chunks"};
    case PlanRule::loss_chunks_tokens:
      return {fmt::format("--loss-chunks {} is more than {} tokens of a micro-batch{}",
                          violation.choice.step.loss_chunks,
                          with_separators(Integer{violation.choice.micro_batch} * limits.seq_len /
                                          plan.context),
                          plan.context > 1 ? " on a rank" : ""),
              "choose fewer chunks, or a larger --micro-batch"};
    case PlanRule::batch_size_positive:
      return below_one("--batch", violation.load.batch_size);
    case PlanRule::seq_len_positive:
      return below_one("--seq", violation.load.seq_len);
    case PlanRule::micro_batch_positive:
      return below_one("--micro-batch", violation.choice.micro_batch);
    case PlanRule::micro_batch_replica:
      return {
          fmt::format("--micro-batch {} exceeds the sequences of a replica: --batch {} / --dp {}",
                      violation.choice.micro_batch, violation.load.batch_size, plan.data),
          "choose a smaller --micro-batch, or a larger --batch"};
    case PlanRule::busy_replicas:
      return busy_replicas(violation);
    case PlanRule::recompute_interval_positive:
      return below_one("--recompute every", violation.choice.recompute.every);
    case PlanRule::interleave_micro_batches:
      break;
  }
  return {fmt::format("--interleave requires a multiple of {} micro-batches, not {}", plan.pipeline,
                      micro_batches(violation.choice, violation.load)),
          "change --batch or --micro-batch, or use --interleave 1"};
}

}  // namespace

Error with_options(const IllegalPlan& error) {
  const Wording wording = wording_of(error.violation());
  return {error.code(), wording.message, error.where(), wording.hint};
}

Error with_options(const NoLegalPlan& error) {
  std::string rules;
  for (const PlanViolation& violation : error.violations()) {
    rules += fmt::format("{}{}", rules.empty() ? ": " : "; ", wording_of(violation).message);
  }
  const bool one = error.violations().size() == 1;
  const std::string hint = one ? wording_of(error.violations().front()).hint : error.hint();
  return {error.code(), error.question() + rules, error.where(), hint};
}

}  // namespace headroom::cli
