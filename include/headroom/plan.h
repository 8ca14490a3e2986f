// The planner: memory and time of a parallel plan on its worst rank, and the plans that fit. Memory
// is counted exactly from the sharded graph; times are modelled from datasheet peaks at assumed
// efficiencies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "headroom/model_source.h"
#include "headroom/model_spec.h"
#include "headroom/parallel_plan.h"
#include "headroom/workload.h"

namespace headroom {

/// Fractions of peak rates that are reached. The defaults were fitted once, to all eight iteration
/// times of arXiv 2205.05198, Table 5, on A100s; elsewhere they are an assumption.
struct Efficiency {
  double matrix = 0.74;   ///< of peak FLOP/s, by large GEMMs
  double memory = 0.80;   ///< of memory bandwidth, by all other operators
  double network = 0.65;  ///< of interconnect bandwidth
};

/// Rates and memory of one device.
struct DeviceRates {
  std::string name;
  double flops_per_s = 0;
  double memory_bytes_per_s = 0;
  Integer memory_bytes = 0;
  Interconnect link;
  bool link_is_assumed = true;     ///< inside a node
  bool network_is_assumed = true;  ///< between nodes; `link` then has the assumed rate
  Efficiency efficiency;
  double collective_latency_s = 10e-6;  ///< of one collective; assumed
};

/// The rates of `machine` for arithmetic in `dtype`. A measured machine's memory is unknown here
/// and stays 0.
[[nodiscard]] DeviceRates device_rates(const MachineProfile& machine, DType dtype);

enum class Purpose { serve, train };

/// Storage format of weights when serving. Formats below 16 bit apply to the layers' matrices only;
/// embeddings, norms and the head stay in 16 bit.
enum class WeightFormat { float32, bfloat16, float8, int8, int4 };

/// Activation recomputation in the backward pass.
struct Recomputation {
  Recompute kind = Recompute::none;
  std::int64_t every = 1;  ///< full: saves the input of every n-th layer
  bool operator==(const Recomputation&) const = default;
};

/// Settings that every plan of a query shares.
struct PlanQuery {
  Purpose purpose = Purpose::serve;
  DType dtype = DType::bfloat16;  ///< of activations and arithmetic
  AttentionImplementation attention = AttentionImplementation::fused;
  Integer overhead_bytes = Integer{1} << 30U;  ///< runtime, on every device; assumed
  // serve
  WeightFormat weights = WeightFormat::bfloat16;
  DType kv_dtype = DType::bfloat16;
  std::int64_t prefill_tokens = 2048;  ///< longest chunk of a prompt in one pass
  // train
  StatePolicy states;
  Adapter adapter;
};

/// Sequences and tokens. `batch_size` counts all replicas together; when serving, `seq_len` is the
/// context that the KV-cache has room for.
struct Load {
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 1;
};

/// A complete plan.
struct PlanChoice {
  ParallelPlan parallel;
  std::int64_t micro_batch = 1;  ///< training: sequences per pass
  Recomputation recompute;
  Zero zero = Zero::none;
  bool operator==(const PlanChoice&) const = default;
};

/// The first rule that plan and load break, if any.
[[nodiscard]] std::optional<PlanRule> broken_rule(const PlanChoice& choice, const Load& load,
                                                  const ShardingLimits& limits) noexcept;

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

/// Throws IllegalPlan if plan and load break a rule.
void require_legal(const PlanChoice& choice, const Load& load, const ShardingLimits& limits);

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
  Integer kv_cache = 0;
  /// Training: logits and their gradient, or recomputed layers; weights gathered by ZeRO-3.
  Integer buffers = 0;
  Integer overhead = 0;  ///< assumed
  Stage stage = Stage::whole;
  std::int64_t stage_index = 0;  ///< in the pipeline, 0 the first

  [[nodiscard]] Integer total() const;
};

struct PlanTime {
  double iteration_s = 0;      ///< one training step, decode step, or pass of an encoder
  double compute_s = 0;        ///< operators
  double communication_s = 0;  ///< not overlapped with computation
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
  /// Traffic of a rank of the first stage.
  [[nodiscard]] std::vector<Communication> communication(const PlanChoice& choice,
                                                         const Load& load);
  [[nodiscard]] bool fits(const PlanFigures& figures) const;

  [[nodiscard]] ShardingLimits limits(std::int64_t seq_len) const;
  [[nodiscard]] const PlanQuery& query() const;
  [[nodiscard]] const DeviceRates& rates() const;
  [[nodiscard]] const ModelSpec& spec() const;
  /// True when serving a model with a KV-cache.
  [[nodiscard]] bool decodes() const;

 private:
  class Implementation;
  explicit Planner(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

/// Micro-batches of each replica in one iteration.
[[nodiscard]] std::int64_t micro_batches(const PlanChoice& choice, const Load& load) noexcept;

/// A plan whose micro-batch may be left open.
struct PlanRequest {
  PlanChoice choice;
  /// Default: 1 in a pipeline, otherwise all sequences of a replica.
  std::optional<std::int64_t> micro_batch;
};
[[nodiscard]] PlanChoice resolve(const PlanRequest& request, const Load& load);

/// The largest batch that fits at `load.seq_len`, and the longest context that fits at
/// `load.batch_size`. 0 if none fits; empty without a limit (gradient accumulation fits any batch).
[[nodiscard]] std::optional<std::int64_t> largest_batch(Planner& planner,
                                                        const PlanRequest& request, Load load);
[[nodiscard]] std::optional<std::int64_t> largest_context(Planner& planner,
                                                          const PlanRequest& request, Load load);

/// The largest n in [1, limit] that satisfies `predicate`, 0 if none does. `predicate` must be
/// monotonic: once false, false for every larger n.
[[nodiscard]] std::int64_t largest_satisfying(const std::function<bool(std::int64_t)>& predicate,
                                              std::int64_t limit);

[[nodiscard]] std::string_view name_of(WeightFormat format) noexcept;
[[nodiscard]] std::string_view name_of(Purpose purpose) noexcept;
/// "none", "selective", "full" or "every=4".
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
};

struct SearchSpace {
  std::int64_t devices = 1;
  Load load;
  FixedDegrees fixed;
  std::size_t keep = 10;  ///< number of best plans to return
  int threads = 0;        ///< 0: as many as the machine has
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

// Reports of the planner: one plan with its limits (fit), and the best plans (plan).

/// One plan with all its figures.
struct PlanResult {
  PlanChoice choice;
  PlanFigures figures;
  bool fits = false;
  std::optional<std::int64_t> largest_batch;    ///< 0: none fits; empty: no limit
  std::optional<std::int64_t> largest_context;  ///< likewise
};

/// Serving with other storage formats of weights and KV-cache.
struct FormatFit {
  WeightFormat weights = WeightFormat::bfloat16;
  DType kv_dtype = DType::bfloat16;
  Integer total_bytes = 0;
  bool fits = false;
  std::optional<std::int64_t> largest_batch;
};

/// The number of sequences of one context length that fit at once.
struct ConcurrencyPoint {
  std::int64_t seq_len = 0;
  std::optional<std::int64_t> largest_batch;
};

/// A planner's input, except the plan.
struct PlanQuestion {
  Model model;
  PlanQuery query;
  DeviceRates rates;
  std::int64_t devices = 1;
  Load load;
};

/// `headroom fit`: one plan.
struct FitReport {
  PlanQuestion question;
  PlanResult result;
  std::vector<Communication> communication;
  std::vector<FormatFit> formats;             ///< serving only
  std::vector<ConcurrencyPoint> concurrency;  ///< serving a model with a KV-cache only
  std::vector<std::string> notes;
};

/// Throws IllegalPlan.
[[nodiscard]] FitReport make_fit_report(PlanQuestion question, const PlanRequest& request);

/// `headroom plan`: the best of all legal plans.
struct PlanReport {
  PlanQuestion question;
  PlanSearch search;
  std::vector<PlanResult> plans;      ///< that fit, fastest first
  std::vector<Neighbour> neighbours;  ///< of the first
  std::optional<PlanResult> least;    ///< the plan with the least memory, if none fits
  double search_s = 0;
  std::vector<std::string> notes;
};

/// Throws Error{invalid_input} if no plan is legal.
[[nodiscard]] PlanReport make_plan_report(PlanQuestion question, SearchSpace space);

}  // namespace headroom
