// ParallelPlan: degrees of parallelism, and the rules that a model and its workload set for them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/collective_rates.h"
#include "headroom/graph.h"

namespace headroom {

/// Sequence parallelism: norms, residuals and dropouts between tensor-parallel GEMMs run on a shard
/// of the sequence (on) or on all of it in every rank (off). arXiv 2205.05198, section 4.2.2.
enum class SequenceParallel { off, on };

/// Routed experts under tensor parallelism: each divided over the tensor-parallel ranks, or whole,
/// with expert parallelism across those ranks as well (Megatron-LM's
/// --expert-tensor-parallel-size 1).
enum class ExpertTensor { divided, whole };

/// The route of a token to its experts: a copy to each of them, or one to each node that holds some
/// of them, forwarded to each of their ranks inside the node (arXiv 2412.19437, section 3.2.2).
enum class ExpertExchange { direct, by_node };

/// Serving: a pass runs whole, or as two batches, each of which computes while the other's tokens
/// travel to the experts and back (arXiv 2412.19437, section 3.4).
enum class BatchOverlap { none, two_batches };

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
  ExpertTensor expert_tensor = ExpertTensor::divided;
  ExpertExchange expert_exchange = ExpertExchange::direct;
  BatchOverlap batch_overlap = BatchOverlap::none;
  bool operator==(const ParallelPlan&) const = default;

  [[nodiscard]] std::int64_t devices() const noexcept { return tensor * pipeline * data * context; }
  /// Ranks with the same weights, over which ZeRO shards their states.
  [[nodiscard]] std::int64_t replicas() const noexcept { return data * context; }
  /// Ranks over which experts are spread and replicated.
  [[nodiscard]] std::int64_t expert_replicas() const noexcept {
    return replicas() * (expert_tensor == ExpertTensor::whole ? tensor : 1);
  }
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
  std::int64_t state_groups = 1;     ///< of state-space heads
  std::int64_t delta_key_heads = 0;  ///< of gated delta layers; 0 without these
  /// Greatest common divisor of all FFN intermediate sizes; 0 without an FFN.
  std::int64_t intermediate_size = 0;
  StackLayers layers;
  std::int64_t experts = 0;  ///< 0: no routed experts
  std::int64_t seq_len = 1;
  bool one_stack = true;         ///< not an encoder-decoder
  bool uniform_layers = true;    ///< tensor parallelism can divide every layer
  bool separable_layers = true;  ///< no weights of several layers, such as per-layer embeddings
  /// Layers that run on the stage of the layer before, for they or later ones read keys and values
  /// of an earlier one; in order.
  std::vector<std::int64_t> joined_layers;
  bool fused_attention = true;  ///< no attention stores all pairs
  /// Some layers carry a state from token to token, or attend within windows alone.
  bool running_state = false;
  bool all_attention = true;  ///< no recurrent or convolutional layers, nor state spaces alone
  bool compressed_attention = false;  ///< some attention reads compressed keys
  bool indexed_attention = false;     ///< some attention reads the keys that an indexer chooses
  bool denoises = false;              ///< a diffusion transformer
  bool predicts_words = true;         ///< training: the loss is over the vocabulary
  bool training = true;
};

[[nodiscard]] ShardingLimits limits_of(const Graph& graph, std::int64_t seq_len);

/// A rule that a plan can break; requirement_of() states each.
enum class PlanRule {
  // Degrees and the model.
  degrees_positive,
  layers_with_attention,
  layers_without_compression,
  whole_denoiser,
  tensor_heads,
  tensor_key_value_heads,
  tensor_state_groups,
  tensor_delta_key_heads,
  tensor_intermediate_size,
  tensor_uniform_layers,
  sequence_needs_tensor,
  sequence_trains,
  sequence_length,
  pipeline_trains,
  pipeline_layers,
  pipeline_separable_layers,
  pipeline_joined_layers,
  interleave_needs_pipeline,
  interleave_one_stack,
  interleave_layers,
  context_trains,
  context_one_stack,
  context_without_state,
  context_fused_attention,
  context_all_keys,
  context_length,
  expert_routed,
  expert_count,
  expert_replicas,
  expert_whole_sequence,
  exchange_experts,
  whole_experts,
  overlap_experts,
  overlap_serves,
  // Degrees and the load.
  batch_size_positive,
  seq_len_positive,
  micro_batch_positive,
  micro_batch_replica,
  busy_replicas,  ///< of searches alone: a single plan may leave replicas idle
  recompute_interval_positive,
  interleave_micro_batches,
  schedule_pipeline,
  dual_pipe_stages,
  zero_ranks_divide,
  tensor_overlap_sequence,
  offload_layers_count,
  offload_layers_pipeline,
  offload_layers_recompute,
  loss_chunks_positive,
  loss_chunks_words,
  loss_chunks_tokens,
};

/// The rule as a sentence about the fields of ParallelPlan, PlanChoice and Load.
[[nodiscard]] std::string_view requirement_of(PlanRule rule) noexcept;

/// The first rule that `plan` breaks, if any.
[[nodiscard]] std::optional<PlanRule> broken_rule(const ParallelPlan& plan,
                                                  const ShardingLimits& limits);

/// The rule that every plan with tensor parallelism breaks, whatever its degree: how ranks divide
/// this model's layers is not modelled. Empty where some degree may be legal.
[[nodiscard]] std::optional<PlanRule> rule_against_tensor(const ShardingLimits& limits) noexcept;

/// Consecutive layers [begin, end), counted through both stacks: the encoder's come first.
struct LayerRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// Pipeline stages that hold an encoder-decoder's encoder; the decoder has the others (Megatron-LM
/// calls the number the split rank). Chosen so that the largest stage has the fewest layers.
[[nodiscard]] std::int64_t encoder_stages(const StackLayers& layers, std::int64_t stages);

/// The first layer of a stage or chunk of `plan` that shares keys and values with layers of the one
/// before, if any.
[[nodiscard]] std::optional<std::int64_t> first_divided_layer(const ParallelPlan& plan,
                                                              const ShardingLimits& limits);

/// The layers of one pipeline stage, 0 the first: one range, or `interleave` chunks; with chunks,
/// those at the ends have fewer layers where the degrees do not divide them. Where the
/// degree does not divide the layers, the stages before the last have one more each, since the last
/// also holds the head, and the first the embedding and most micro-batches. Llama 3 405B, 126
/// layers on 16 stages, is 7, 14 times 8, 7 (arXiv 2407.21783, section 3.3.2); vLLM cuts alike.
[[nodiscard]] std::vector<LayerRange> layers_of_stage(const StackLayers& layers,
                                                      const ParallelPlan& plan, std::int64_t stage);

/// "tp 8 · sp · pp 4 · dp 2": the degrees above one.
[[nodiscard]] std::string describe(const ParallelPlan& plan);

// Training state besides activations: weights, gradients, master weights and optimizer states, by
// recipe, optimizer, ZeRO stage and adapter.

enum class Optimizer {
  sgd,        ///< no state
  momentum,   ///< one state per parameter
  adam,       ///< two states per parameter; AdamW has the same
  adam_8bit,  ///< two states of one byte, with a float32 scale per block (arXiv 2110.02861)
  adafactor,  ///< a row and a column per matrix (arXiv 1804.04235); vectors in full
  muon,       ///< one state for the layers' matrices, Adam's two for all else
};

struct OptimizerInfo {
  Optimizer optimizer;
  std::string_view name;
  std::string_view source;
};
[[nodiscard]] const std::array<OptimizerInfo, 6>& optimizers() noexcept;

/// Number formats of a parameter's states.
enum class Recipe {
  float32,                 ///< all in float32
  bfloat16,                ///< all in 16 bit, optimizer states too
  mixed,                   ///< 16-bit weights and gradients; float32 master weights and states
  megatron,                ///< 16-bit weights; float32 gradients, master weights and states
  fp8_transformer_engine,  ///< megatron, with FP8 GEMMs and FP8 copies of the layers' matrices
  /// Likewise in MXFP8: FP8 values with a scale per 32 (OCP Microscaling Formats 1.0).
  mxfp8_transformer_engine,
  fp8_deepseek_v3,  ///< FP8 layers' matrices and GEMMs; float32 gradients, bfloat16 states
};

/// How a recipe saves the inputs of layers' GEMMs (`is_layer_gemm`) for the backward pass: in
/// float8.
struct SavedInputs {
  std::int64_t block = 0;  ///< values per scale; 0: one scale a tensor, which is not counted
  Integer scale_bytes = 0;
  /// Inputs that another operator saves in 16 bits, such as the attention's output.
  enum class Shared {
    read,   ///< GEMMs read them again
    copied  ///< GEMMs save a copy in float8
  } shared = Shared::read;

  /// Bytes of `values` saved by GEMMs.
  [[nodiscard]] Integer bytes(Integer values) const;
};

/// A recipe's bytes per element.
struct RecipeInfo {
  Recipe recipe;
  std::string_view name;
  Integer weight_bytes;
  Integer layer_matrix_bytes;  ///< of weights that is_layer_matrix
  Integer scaled_copies = 0;   ///< of those, with a scale of one byte per 32 values
  Integer gradient_bytes;
  Integer master_bytes = 0;
  Integer state_bytes;
  std::optional<DType> arithmetic{};  ///< of the layers' GEMMs; empty: that of the activations
  std::optional<DType> dispatch{};    ///< of tokens sent to experts; empty: that of the activations
  std::optional<SavedInputs> saved_inputs{};  ///< empty: in the activations' type
  std::string_view source;
};
[[nodiscard]] const std::array<RecipeInfo, 7>& recipes() noexcept;

[[nodiscard]] const OptimizerInfo& info(Optimizer optimizer) noexcept;
[[nodiscard]] const RecipeInfo& info(Recipe recipe) noexcept;

/// States that ZeRO shards over the ranks with the same weights (arXiv 1910.02054).
enum class Zero {
  none,
  optimizer,  ///< stage 1: master weights and optimizer states; Megatron's distributed optimizer
  gradients,  ///< stage 2: gradients as well
  weights,    ///< stage 3: weights as well; FSDP
};

/// Parameter-efficient fine-tuning method.
enum class AdapterKind {
  none,
  lora,   ///< two low-rank matrices per target layer, all else frozen (arXiv 2106.09685)
  qlora,  ///< LoRA on layers whose frozen matrices are stored in 4 bit (arXiv 2305.14314)
};
enum class AdapterTargets {
  query_value,  ///< query and value projections (arXiv 2106.09685, section 7.1)
  attention,    ///< key and output projections as well
  all,          ///< the feed-forward network's projections as well
};
struct Adapter {
  AdapterKind kind = AdapterKind::none;
  std::int64_t rank = 16;
  AdapterTargets targets = AdapterTargets::all;
  /// Serving: adapters in the device's memory, of which each request uses one (arXiv 2310.18547).
  std::int64_t held = 1;
  bool operator==(const Adapter&) const = default;
};

[[nodiscard]] std::string_view name_of(AdapterTargets targets) noexcept;

/// graph -> graph: adds two low-rank matrices to every target layer and freezes all else. Unchanged
/// without an adapter. Throws Error{invalid_input} if no layer is a target.
[[nodiscard]] Graph with_adapter(const Graph& graph, const Adapter& adapter);

/// graph -> graph: adds the low-rank products of every target layer beside its unmerged weights. A
/// token runs those of its request's adapter, and memory holds `adapter.held` of them in `dtype`,
/// as vLLM's --max-loras of --max-lora-rank reserves them. `graph` has stored bytes. Unchanged
/// without an adapter; throws as with_adapter does.
[[nodiscard]] Graph with_served_adapters(const Graph& graph, const Adapter& adapter, DType dtype);

/// True for matrices of the layers, which Muon updates and quantised formats store in few bits.
[[nodiscard]] bool is_layer_matrix(const Weight& weight) noexcept;

struct StatePolicy {
  Recipe recipe = Recipe::megatron;
  Optimizer optimizer = Optimizer::adam;
  AdapterKind adapter = AdapterKind::none;
};

/// Bytes of weights and their training states.
struct StateBytes {
  Integer weights = 0;
  Integer gradients = 0;
  Integer optimizer = 0;  ///< master weights included
  Integer copies = 0;     ///< part of the weights: in float8, which each rank makes of the others

  /// Bytes of the weights that ranks send each other.
  [[nodiscard]] Integer sent_weights() const { return weights - copies; }
  StateBytes& operator+=(const StateBytes& other);
  [[nodiscard]] Integer total() const { return weights + gradients + optimizer; }
};

/// States of all layers' copies of `weight` at these sizes, before ZeRO.
[[nodiscard]] StateBytes state_bytes(const Weight& weight, const StatePolicy& policy,
                                     const Bindings& sizes);

/// The bytes that one of `replicas` ranks stores under ZeRO.
[[nodiscard]] StateBytes zero_sharded(const StateBytes& states, Zero zero, std::int64_t replicas);

// shard: graph -> graph. The graph of one rank under a parallel plan: sizes divided, communication
// between ranks inserted as collective operators. Every analysis then applies unchanged, per rank.
//
//   tensor    divides heads, intermediate sizes and the vocabulary; column-parallel GEMMs read the
//             whole input, row-parallel GEMMs give partial sums that are reduced
//   sequence  shards the tokens between those GEMMs
//   context   shards every sequence; attention gathers keys and values
//   expert    spreads the routed experts; tokens travel to them and back
//   pipeline  gives each rank some of the layers and sends hidden states on; an encoder's stages
//             come before its decoder's, and its output goes through all of those

/// Position of a rank in the pipeline; `whole` without one.
enum class Stage { whole, first, middle, last };

/// The graph of one rank of `stage`; `middle` is stage 1. Its `sizes` are the rank's own: heads,
/// intermediate size and vocabulary of a rank, layers of a stage. `plan` must be legal. Sources:
/// arXiv 1909.08053 (tensor), 2205.05198 (sequence), 2104.04473 (pipeline), 2310.01889 (context).
[[nodiscard]] Graph shard(const Graph& graph, const ParallelPlan& plan, Stage stage = Stage::whole);

/// shard() for the stage with this index, 0 the first.
[[nodiscard]] Graph shard_stage(const Graph& graph, const ParallelPlan& plan, std::int64_t stage);

/// The sizes of one rank. Key-value heads are repeated where there are more ranks than heads; the
/// vocabulary is padded to a multiple of the ranks.
[[nodiscard]] Bindings rank_sizes(const Bindings& sizes, const ParallelPlan& plan);

/// The workload's symbols for one rank: its shard of every sequence, all visible keys.
/// `workload.batch_size` counts the sequences of one pass of the rank. With sequence parallelism
/// an encoder-decoder's two lengths must be equal.
[[nodiscard]] Bindings rank_bindings(const Workload& workload, const LayerTraits& traits,
                                     const ParallelPlan& plan);

/// A rank's formula in the whole model's sizes: a rank's h becomes h·τ⁻¹, and so on. Related sizes
/// are collapsed.
[[nodiscard]] Expr in_whole_sizes(const Expr& formula, const Graph& whole);

/// True if tensor parallelism divides this weight; otherwise every rank of the group stores all of
/// it.
[[nodiscard]] bool is_divided(const Weight& weight);

/// graph -> graph: the head computes only the last token of each sequence, as serving engines do.
[[nodiscard]] Graph with_last_token_head(const Graph& graph);

/// One direction of a collective operator in a sharded graph, for all its layers together.
struct CollectiveCall {
  std::string path;
  RankGroup group = RankGroup::tensor;
  CollectiveKind kind = CollectiveKind::none;
  Expr bytes;  ///< as Collective::bytes, of one layer
  Expr repeat;
  bool backward = false;
};

/// All collectives of a sharded graph, forward and backward.
[[nodiscard]] std::vector<CollectiveCall> collectives_of(const Graph& sharded);

/// Bytes that one rank sends for one collective among `ranks`, by ring algorithms: all-reduce
/// 2·(n − 1)/n of the buffer, all-gather and reduce-scatter (n − 1) shards, all-to-all (n − 1)/n of
/// the buffer.
[[nodiscard]] double wire_bytes(CollectiveKind kind, double bytes, std::int64_t ranks) noexcept;

/// Steps from rank to rank of one collective among `ranks`: n − 1 on a ring, 2·log2(n) on a tree,
/// whichever is fewer. NCCL chooses alike.
[[nodiscard]] double collective_steps(std::int64_t ranks) noexcept;

[[nodiscard]] std::string_view name_of(RankGroup group) noexcept;
[[nodiscard]] std::string_view name_of(Stage stage) noexcept;

}  // namespace headroom
