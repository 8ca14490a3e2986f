// The planner: memory and time of a parallel plan on its worst rank, and the plans that fit. Memory
// is counted from the sharded graph, the runtime's part of it modelled; times are modelled from
// datasheet peaks and the efficiencies of the architecture.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/bound_seconds.h"
#include "headroom/device_rates.h"
#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "headroom/model_source.h"
#include "headroom/model_spec.h"
#include "headroom/parallel_plan.h"
#include "headroom/recompute_modules.h"
#include "headroom/storage.h"
#include "headroom/workload.h"

namespace headroom {

/// Activation recomputation in the backward pass.
struct Recomputation {
  Recompute kind = Recompute::none;
  std::int64_t every = 1;  ///< full: saves the input of every n-th layer
  RecomputeModules modules{RecomputeModule::core_attn};  ///< selective
  bool operator==(const Recomputation&) const = default;
};

/// How attention of a decode step reads the keys of a head.
enum class DecodeAttention {
  split,  ///< in as many parts as keep all multiprocessors busy, as today's kernels do
  whole,  ///< all of them on one multiprocessor, as in TensorRT-LLM of 2024
};

/// Settings that every plan of a query shares.
struct PlanQuery {
  Purpose purpose = Purpose::serve;
  DType dtype = DType::bfloat16;    ///< of activations, and of messages between ranks
  std::optional<DType> arithmetic;  ///< of the layers' GEMMs; default: `dtype`
  AttentionImplementation attention = AttentionImplementation::fused;
  /// Of every sequence, whose `seq_len` includes their visual tokens; of all sequences, where they
  /// are compared with texts. A prompt's tower runs before the first chunk of its prefill.
  std::int64_t images = 0;
  std::optional<ImageSize> image_size;        ///< of each; default: that of the tower
  std::int64_t audio = 0;                     ///< clips of every sequence, as `images`
  std::optional<std::int64_t> audio_seconds;  ///< of each; default: 30
  /// Tokens of the expert-parallel rank with the most, over their mean; at most
  /// most_expert_imbalance() counts.
  double expert_imbalance = 1;
  /// Memory of the runtime on every device; empty: by DeviceRates::runtime.
  std::optional<Integer> overhead_bytes;
  // serve
  std::optional<WeightForm> weights;   ///< that they are converted to; default: as stored
  DType kv_dtype = DType::bfloat16;    ///< counted for traffic and time
  KvCacheRequest kv_cache;             ///< types and policy of the memory that it takes
  std::int64_t prefill_tokens = 2048;  ///< longest chunk of a prompt in one pass
  DecodeAttention decode_attention = DecodeAttention::split;
  // train
  StatePolicy states;
  Adapter adapter;
};

/// The most that `expert_imbalance` can be on `ranks` of experts: all tokens on one of them. 1
/// without routed experts.
[[nodiscard]] double most_expert_imbalance(const ModelSpec& spec, std::int64_t ranks);

/// Sequences and tokens. `batch_size` counts all replicas together; when serving, `seq_len` is the
/// context that the KV-cache has room for.
struct Load {
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 1;
};

/// Order of the forward and backward passes in a training pipeline.
enum class PipelineSchedule {
  one_forward_one_backward,  ///< interleaved if the plan says so (arXiv 2104.04473)
  zero_bubble,               ///< ZB-H1: weight gradients fill the bubble (arXiv 2401.10241)
  dual_pipe,                 ///< from both ends at once, weights twice (arXiv 2412.19437)
};

/// Training states in the host's memory.
enum class Offload {
  none,
  optimizer,  ///< master weights and optimizer states, updated on the host (arXiv 2101.06840)
};

/// Gradients and weights of data parallelism travel during the passes, or after and before them.
/// `by_zero`: during them, but for ZeRO 1: Megatron-LM's distributed optimizer overlaps only with
/// --overlap-grad-reduce and --overlap-param-gather.
enum class DataOverlap { by_zero, on, off };

/// Sequence parallelism's collectives in the layers run before and after their GEMMs, or beside
/// them in one chunk per tensor rank (Megatron-LM's --tp-comm-overlap, torchtitan's asynchronous
/// tensor parallelism).
enum class TensorOverlap { off, on };

/// How a step runs, under a plan of any degrees. A search does not vary these.
struct StepOptions {
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  std::int64_t zero_ranks = 0;  ///< that ZeRO shards over, the others are replicas (HSDP); 0: all
  Offload offload = Offload::none;
  DataOverlap overlap = DataOverlap::by_zero;
  TensorOverlap tensor_overlap = TensorOverlap::off;
  /// Layers whose saved activations are offloaded to the host's memory (Megatron-LM's
  /// cpu_offloading_num_layers).
  std::int64_t offload_layers = 0;
  /// Chunks of the tokens whose logits, one chunk at a time, are held; 1: all logits, and their
  /// gradient. With chunks, the loss makes its gradients in the forward pass (arXiv 2410.10989,
  /// section 3.2).
  std::int64_t loss_chunks = 1;
  bool operator==(const StepOptions&) const = default;
};

/// A complete plan.
struct PlanChoice {
  ParallelPlan parallel;
  std::int64_t micro_batch = 1;  ///< training: sequences per pass
  Recomputation recompute;
  Zero zero = Zero::none;
  StepOptions step;
  bool operator==(const PlanChoice&) const = default;
};

/// The first rule that plan and load break, if any.
[[nodiscard]] std::optional<PlanRule> broken_rule(const PlanChoice& choice, const Load& load,
                                                  const ShardingLimits& limits);

/// A broken rule and the values that it concerns.
struct PlanViolation {
  PlanRule rule;
  PlanChoice choice;
  Load load;
  ShardingLimits limits;
};

/// Thrown for a plan that breaks a rule. The message states the rule in the fields of PlanChoice; a
/// front end can word violation() in its own terms.
class IllegalPlan : public Error {
 public:
  explicit IllegalPlan(const PlanViolation& violation);

  [[nodiscard]] const PlanViolation& violation() const noexcept { return violation_; }

 private:
  PlanViolation violation_;
};

/// Thrown for a question that no legal plan answers. violations() has the rule that all plans
/// break, or, where no rule excludes all, some rules and the first plan that breaks each.
class NoLegalPlan : public Error {
 public:
  /// `question` is the message without the rules.
  NoLegalPlan(std::string question, std::vector<PlanViolation> violations);

  [[nodiscard]] const std::string& question() const noexcept { return question_; }
  [[nodiscard]] const std::vector<PlanViolation>& violations() const noexcept {
    return violations_;
  }

 private:
  std::string question_;
  std::vector<PlanViolation> violations_;
};

/// Throws IllegalPlan if plan and load break a rule.
void require_legal(const PlanChoice& choice, const Load& load, const ShardingLimits& limits);

/// Memory of a training step that is neither a state nor saved for the backward pass, by its use.
struct TrainingBuffers {
  /// The largest moment of a backward pass: logits in float32 with their gradient, or in chunks one
  /// chunk of them and the gradient of the head's weights; or the gradients of one operator's
  /// inputs and output, with what is recomputed for it.
  Integer backward = 0;
  /// Gradients of weights before they are added: Transformer Engine's dummy gradients, one per
  /// distinct shape, or the largest gradient.
  Integer weight_gradients = 0;
  Integer gathered_sequence = 0;  ///< sequence parallelism: hidden states of all ranks, twice
  Integer gathered_weights = 0;   ///< ZeRO-3: whole weights of two layers
  [[nodiscard]] Integer total() const;
};

/// Memory of one rank that holds no tensors.
struct RuntimeBytes {
  Integer driver = 0;         ///< of the device's memory, what no process gets
  Integer context = 0;        ///< the process's context and kernels
  Integer communication = 0;  ///< of the communication library, for all groups of the rank
  Integer fragmentation = 0;  ///< reserved by the allocator on top of activations and buffers
  Integer given = 0;          ///< PlanQuery::overhead_bytes, in place of the three before
  [[nodiscard]] Integer total() const;
};

/// Bytes on one rank, by purpose.
struct PlanMemory {
  Integer weights = 0;
  Integer gradients = 0;
  Integer optimizer = 0;  ///< master weights included
  /// Pipeline: states of the embeddings and head, which only the end stages hold.
  Integer embedding_states = 0;
  Integer activations = 0;  ///< training: saved by the layers; serving: the peak of a pass
  /// Training: saved outside the layers, by embeddings, final norm, logits and loss.
  Integer embedding_and_loss = 0;
  Integer kv_cache = 0;     ///< as PlanQuery::kv_cache reserves it
  TrainingBuffers buffers;  ///< training
  RuntimeBytes runtime;
  Stage stage = Stage::whole;
  std::int64_t stage_index = 0;  ///< in the pipeline, 0 the first

  [[nodiscard]] Integer total() const;
  /// Tensors: without the runtime. PyTorch's max_memory_allocated.
  [[nodiscard]] Integer allocated() const;
};

struct PlanTime {
  double iteration_s = 0;  ///< one training step, decode step, or pass of an encoder
  double low_s = 0;        ///< of the iteration: nine of ten runs lie from low to high
  double high_s = 0;
  double compute_s = 0;        ///< operators
  double compute_bound_s = 0;  ///< serving: part of it that arithmetic bounds
  double roofline_s = 0;       ///< serving: the operators by the datasheet, no run takes less
  double communication_s = 0;  ///< not overlapped with computation
  double host_copies_s = 0;    ///< of offloaded activations, beyond computation and communication
  double bubble_s = 0;         ///< filling and draining the pipeline
  double optimizer_s = 0;
  double tokens_per_s = 0;
  std::optional<double> mfu;     ///< training: model FLOPs over the peak, without recomputation
  std::optional<double> ttft_s;  ///< serving: prefill of one prompt of seq_len tokens
};

/// Traffic of a rank in one iteration, by group and collective.
struct Communication {
  RankGroup group = RankGroup::tensor;
  CollectiveKind kind = CollectiveKind::none;
  double count = 0;
  double wire_bytes = 0;  ///< sent, of all `count` together
  double seconds = 0;     ///< before any overlap with computation
};

struct PlanFigures {
  PlanMemory memory;
  PlanTime time;
};
struct StepTimes;  // timeline.h

/// Seconds of a serving pass through all stages, by what they grow with. A step of continuous
/// batching runs the first and last once over all its tokens, the head over the sampled ones, and
/// the third once per sequence.
struct PassTime {
  BoundSeconds weights;        ///< operators that read weights, without the head
  BoundSeconds head;           ///< operators after the last layer, with their communication
  BoundSeconds sequences;      ///< all others: attention cores, running states, element-wise
  double communication_s = 0;  ///< collectives, and hidden states sent between stages

  /// Operators that run once over all tokens, with their communication.
  [[nodiscard]] BoundSeconds over_tokens() const {
    return weights + BoundSeconds{communication_s, 0, 0};
  }
};

/// Length of the second sequence that plans assume beside `tokens`: a text encoder reads as many,
/// sound is padded to the window that the model was trained on, and a diffusion transformer's text
/// to that of its pipeline. Empty for models that read one sequence.
[[nodiscard]] std::optional<std::int64_t> encoder_tokens(const ModelSpec& spec,
                                                         std::int64_t tokens);

/// Evaluates plans for one model, query and device. Compiles formulas once and caches the costs
/// that plans have in common. Not thread-safe: give each thread a fresh_copy().
class Planner {
 public:
  /// Throws Error{invalid_input} for training a model without a loss.
  Planner(const ModelSpec& spec, const PlanQuery& query, const DeviceRates& rates);
  ~Planner();
  Planner(Planner&&) noexcept;
  Planner& operator=(Planner&&) noexcept;
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// A planner with the same settings and empty caches, for another thread.
  [[nodiscard]] Planner fresh_copy() const;

  /// Memory of the worst rank, and time. The plan must be legal. Throws Error{overflow}.
  [[nodiscard]] PlanFigures evaluate(const PlanChoice& choice, const Load& load);
  /// Serving a model with a KV-cache: a prefill of `tokens` tokens after `past_len` cached ones,
  /// with `adapters` of the served ones, and a decode step of `sequences`. The plan must be legal.
  [[nodiscard]] PassTime prefill_time(const PlanChoice& choice, std::int64_t tokens,
                                      std::int64_t past_len, std::int64_t adapters = 1);
  [[nodiscard]] PassTime decode_time(const PlanChoice& choice, std::int64_t sequences,
                                     std::int64_t past_len);
  /// The part that nine of ten runs' times lie within: 0.2 means between 1/1.2 and 1.2 of them.
  /// Arithmetic bounds `compute_share` of the time.
  [[nodiscard]] double time_range(const PlanChoice& choice, double compute_share) const;
  /// Bytes of weights that a rank of each pipeline stage stores.
  [[nodiscard]] std::vector<Integer> stage_weights(const PlanChoice& choice);
  /// Traffic of a rank of the first stage.
  [[nodiscard]] std::vector<Communication> communication(const PlanChoice& choice,
                                                         const Load& load);
  /// Durations of a training step, for timeline_of(). The plan must be legal, its schedule 1F1B.
  [[nodiscard]] StepTimes step_times(const PlanChoice& choice, const Load& load);
  [[nodiscard]] bool fits(const PlanFigures& figures) const;

  [[nodiscard]] ShardingLimits limits(std::int64_t seq_len) const;
  [[nodiscard]] const PlanQuery& query() const;
  [[nodiscard]] const DeviceRates& rates() const;
  /// Evaluates with other rates from here on; compiled formulas stay.
  void set_rates(const DeviceRates& rates);
  [[nodiscard]] const ModelSpec& spec() const;
  /// Tokens that the images and the sound of a sequence become.
  [[nodiscard]] std::int64_t tower_tokens() const;
  /// True when serving a model with a KV-cache.
  [[nodiscard]] bool decodes() const;

 private:
  class Implementation;
  explicit Planner(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

/// Micro-batches of each replica in one iteration.
[[nodiscard]] std::int64_t micro_batches(const PlanChoice& choice, const Load& load) noexcept;

/// Sequences whose time an iteration takes: more than the batch if it does not fill the
/// micro-batches of all replicas.
[[nodiscard]] std::int64_t sequences_run(const PlanChoice& choice, const Load& load) noexcept;

/// A plan whose micro-batch may be left open.
struct PlanRequest {
  PlanChoice choice;
  /// Default: 1 in a pipeline, otherwise all sequences of a replica.
  std::optional<std::int64_t> micro_batch;
};
[[nodiscard]] PlanChoice resolve(const PlanRequest& request, const Load& load);

/// Tokens that the model has learned positions for; empty for positions of any number.
[[nodiscard]] std::optional<std::int64_t> learned_positions(const ModelSpec& spec);

/// The largest batch that fits at `load.seq_len`, and the longest context, up to the learned
/// positions, that fits at `load.batch_size`. 0 if none fits; empty without a limit (gradient
/// accumulation fits any batch).
[[nodiscard]] std::optional<std::int64_t> largest_batch(Planner& planner,
                                                        const PlanRequest& request, Load load);
[[nodiscard]] std::optional<std::int64_t> largest_context(Planner& planner,
                                                          const PlanRequest& request, Load load);

/// The largest n in [1, limit] that satisfies `predicate`, 0 if none does. `predicate` must be
/// monotonic: once false, false for every larger n.
[[nodiscard]] std::int64_t largest_satisfying(const std::function<bool(std::int64_t)>& predicate,
                                              std::int64_t limit);

[[nodiscard]] std::string_view name_of(PipelineSchedule schedule) noexcept;
/// "none", "selective" (of the attention core), "layernorm,mlp", "full" or "every=4".
[[nodiscard]] std::string name_of(const Recomputation& recompute);

// Exhaustive search over all legal plans for a number of devices, and the neighbours of the best.

/// Degrees that are given; the search varies the others.
struct FixedDegrees {
  std::optional<std::int64_t> tensor;
  std::optional<SequenceParallel> sequence;
  std::optional<std::int64_t> pipeline;
  std::optional<std::int64_t> interleave;
  std::optional<std::int64_t> data;
  std::optional<std::int64_t> context;
  std::optional<std::int64_t> expert;
  std::optional<std::int64_t> micro_batch;
  std::optional<Recomputation> recompute;
  std::optional<Zero> zero;
  // Not varied by the search.
  StepOptions step;  ///< `tensor_overlap` of plans with sequence parallelism
  ExpertTensor expert_tensor = ExpertTensor::divided;
  ExpertExchange expert_exchange = ExpertExchange::direct;
  BatchOverlap batch_overlap = BatchOverlap::none;
};

/// Throws IllegalPlan if every plan with these degrees breaks a rule about the options of a step:
/// collectives beside GEMMs, activations on the host, a loss in chunks.
void require_legal(const FixedDegrees& fixed, const Load& load, const ShardingLimits& limits);

/// A note for a search over at most `devices` devices: its plans have no tensor parallelism, since
/// headroom does not model how ranks divide the model. Empty for one device or a given degree.
///
///   tensor parallelism is not modelled for this model: its attention reads compressed keys; …
[[nodiscard]] std::optional<std::string> note_on_tensor(const ShardingLimits& limits,
                                                        const FixedDegrees& fixed,
                                                        std::int64_t devices);

/// A part of a search: one of `parts` equal parts of the space.
struct SearchShare {
  std::int64_t part = 0;
  std::int64_t parts = 1;
};

struct SearchSpace {
  std::int64_t devices = 1;
  Load load;
  FixedDegrees fixed;
  std::size_t keep = 10;  ///< number of best plans to return
  int threads = 0;        ///< 0: as many as the machine has
  SearchShare share{};
  /// Told the fraction that is done, on the calling thread.
  std::function<void(double fraction)> progress{};
};

struct RankedPlan {
  PlanChoice choice;
  Integer memory_bytes = 0;
  double iteration_s = 0;
};

struct PlanSearch {
  std::uint64_t evaluated = 0;  ///< legal plans
  std::uint64_t fitting = 0;
  std::vector<RankedPlan> best;     ///< fastest first; equal times by memory
  std::vector<RankedPlan> pareto;   ///< no other plan is both smaller and faster; fastest first
  std::optional<RankedPlan> least;  ///< the plan with the least memory, if none fits
};

/// Evaluates all legal plans of `space`. The result does not depend on the number of threads.
/// Throws Error{overflow}.
[[nodiscard]] PlanSearch search_plans(const Planner& planner, const SearchSpace& space);
/// The search of a space from those of its shares, in any order.
[[nodiscard]] PlanSearch merged(const std::vector<PlanSearch>& shares, std::size_t keep);
/// As search_plans, on the calling thread and with the caches of `planner`: faster for many small
/// searches.
[[nodiscard]] PlanSearch search_plans_alone(Planner& planner, const SearchSpace& space);

/// A plan that differs from another in one decision.
struct Neighbour {
  std::string change;  ///< "tp 4, dp 2", "without sp", …
  RankedPlan plan;
  PlanFigures figures;
  bool fits = false;
};

/// All legal plans one decision away from `choice`.
[[nodiscard]] std::vector<Neighbour> neighbours_of(Planner& planner, const PlanChoice& choice,
                                                   const Load& load);

}  // namespace headroom
