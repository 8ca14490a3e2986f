// The planner: what a parallel plan holds in memory and how long it takes, on the worst rank; what
// fits, and which plan is best. Memory is counted exactly from the sharded graph; times are
// modelled from datasheet peaks at assumed shares.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/machine_profile.h"
#include "headroom/model_spec.h"
#include "headroom/parallel_plan.h"
#include "headroom/shard.h"
#include "headroom/training.h"
#include "headroom/workload.h"

namespace headroom {

/// Shares of the peaks that are reached. The defaults were chosen once, for all eight iteration
/// times of arXiv 2205.05198, Table 5, on A100s; elsewhere they are an assumption.
struct Efficiency {
  double matrix = 0.74;   ///< of the arithmetic, by large matrix products
  double memory = 0.80;   ///< of the memory's bandwidth, by all else
  double network = 0.65;  ///< of the interconnect's
};

/// What the planner needs to know of one device.
struct DeviceRates {
  std::string name;
  double flops_per_s = 0;
  double memory_bytes_per_s = 0;
  Integer memory_bytes = 0;
  Interconnect link;
  bool link_is_assumed = true;     ///< inside a node
  bool network_is_assumed = true;  ///< between nodes; `link` then has the assumed rate
  Efficiency efficiency;
  double exchange_latency_s = 10e-6;  ///< of one collective; assumed
};

/// The rates of `machine` for arithmetic in `dtype`. A measured machine's memory is not known here
/// and stays 0.
[[nodiscard]] DeviceRates device_rates(const MachineProfile& machine, DType dtype);

enum class Purpose { serve, train };

/// How weights are stored for serving. Below 16 bit only the layers' matrices are: embeddings,
/// norms and the head stay in 16 bit.
enum class WeightFormat { float32, bfloat16, float8, int8, int4 };

/// What is kept of the layers for the backward pass.
struct Recomputation {
  Recompute kind = Recompute::none;
  std::int64_t every = 1;  ///< full: the input of every so many layers is kept
  bool operator==(const Recomputation&) const = default;
};

/// What is to be planned for, whatever the plan.
struct PlanQuery {
  Purpose purpose = Purpose::serve;
  DType dtype = DType::bfloat16;  ///< of activations and arithmetic
  AttentionImplementation attention = AttentionImplementation::fused;
  Integer overhead_bytes = Integer{1} << 30U;  ///< runtime, on every device; assumed
  // serve
  WeightFormat weights = WeightFormat::bfloat16;
  DType kv_dtype = DType::bfloat16;
  std::int64_t prefill_tokens = 2048;  ///< that one pass over a prompt takes at most
  // train
  StatePolicy states;
  Adapter adapter;
};

/// Sequences and tokens: `batch_size` of all replicas together; when serving, `seq_len` is the
/// context that the KV-cache has room for.
struct Load {
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 1;
};

/// One plan in full.
struct PlanChoice {
  ParallelPlan parallel;
  std::int64_t micro_batch = 1;  ///< training: sequences of one pass
  Recomputation recompute;
  Zero zero = Zero::none;
  bool operator==(const PlanChoice&) const = default;
};

/// Bytes on one rank, by what they are for.
struct PlanMemory {
  Integer weights = 0;
  Integer gradients = 0;
  Integer optimizer = 0;  ///< master weights included
  /// In a pipeline, states of what only its ends hold: embeddings and head.
  Integer embedding_states = 0;
  Integer activations = 0;  ///< training: kept by the layers; serving: the peak of a pass
  /// Training: kept outside the layers, by embeddings, last norm, logits and loss.
  Integer embedding_and_loss = 0;
  Integer kv_cache = 0;
  /// Training: logits and their gradient, or layers that are computed again; weights that ZeRO-3
  /// has gathered.
  Integer buffers = 0;
  Integer overhead = 0;  ///< assumed
  Stage stage = Stage::whole;
  std::int64_t place = 0;  ///< the stage's, 0 the first

  [[nodiscard]] Integer total() const;
};

struct PlanTime {
  double iteration_s = 0;      ///< a training step; a decode step, or a pass of an encoder
  double compute_s = 0;        ///< of which: operators
  double communication_s = 0;  ///< exchanges that nothing hides
  double bubble_s = 0;         ///< the pipeline filling and draining
  double optimizer_s = 0;
  double tokens_per_s = 0;
  std::optional<double> mfu;     ///< training: model FLOPs over the peak, recomputation left out
  std::optional<double> ttft_s;  ///< serving: one prompt of seq_len tokens
};

/// What a rank sends in one iteration, by exchange.
struct Communication {
  RankGroup group = RankGroup::tensor;
  CollectiveKind kind = CollectiveKind::none;
  double count = 0;
  double wire_bytes = 0;  ///< of all of them
  double seconds = 0;     ///< before anything is hidden behind computing
};

struct PlanFigures {
  PlanMemory memory;
  PlanTime time;
};

/// Evaluates plans for one model, query and device. Formulas are compiled once; what plans have in
/// common is evaluated once. Not for several threads at a time: each takes a copy.
class Planner {
 public:
  /// Throws Error{invalid_input} for a model that cannot do this: no training of one without loss.
  Planner(const ModelSpec& spec, const PlanQuery& query, const DeviceRates& rates);
  ~Planner();
  Planner(Planner&&) noexcept;
  Planner& operator=(Planner&&) noexcept;
  Planner(const Planner&) = delete;
  Planner& operator=(const Planner&) = delete;

  /// The same planner with nothing evaluated yet, for another thread.
  [[nodiscard]] Planner fresh_copy() const;

  /// The worst rank's memory, and the time. The plan must be legal. Throws Error{overflow}.
  [[nodiscard]] PlanFigures evaluate(const PlanChoice& choice, const Load& load);
  /// What the slowest rank sends.
  [[nodiscard]] std::vector<Communication> communication(const PlanChoice& choice,
                                                         const Load& load);
  [[nodiscard]] bool fits(const PlanFigures& figures) const;

  [[nodiscard]] ShardingLimits limits(std::int64_t seq_len) const;
  [[nodiscard]] const PlanQuery& query() const;
  [[nodiscard]] const DeviceRates& rates() const;
  [[nodiscard]] const ModelSpec& spec() const;
  /// Whether a KV-cache grows with the context.
  [[nodiscard]] bool decodes() const;

 private:
  class Implementation;
  explicit Planner(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

/// Throws Error{invalid_input} where the plan, its micro-batch or its load are not legal together.
void require_legal(const PlanChoice& choice, const Load& load, const Planner& planner);
/// The same as a question.
[[nodiscard]] bool is_legal(const PlanChoice& choice, const Load& load,
                            const ShardingLimits& limits) noexcept;

/// Micro-batches of each replica in one iteration.
[[nodiscard]] std::int64_t micro_batches(const PlanChoice& choice, const Load& load) noexcept;

/// What the command line asks of one plan; what is not said is chosen.
struct PlanRequest {
  PlanChoice choice;
  std::optional<std::int64_t> micro_batch;  ///< else 1 in a pipeline, or all that a replica gets
};
[[nodiscard]] PlanChoice resolve(const PlanRequest& request, const Load& load);

/// The largest batch that fits at `load.seq_len`, and the longest context at `load.batch_size`;
/// 0 when none does, empty when no limit was met (gradient accumulation takes any batch).
[[nodiscard]] std::optional<std::int64_t> largest_batch(Planner& planner,
                                                        const PlanRequest& request, Load load);
[[nodiscard]] std::optional<std::int64_t> largest_context(Planner& planner,
                                                          const PlanRequest& request, Load load);

/// The largest n in [1, limit] that `holds` is true of, 0 when it is true of none; `holds` must not
/// become true again once it is false.
[[nodiscard]] std::int64_t largest_that_holds(const std::function<bool(std::int64_t)>& holds,
                                              std::int64_t limit);

[[nodiscard]] std::string_view name_of(WeightFormat format) noexcept;
[[nodiscard]] std::string_view name_of(Purpose purpose) noexcept;
/// "none", "selective", "full" or "every=4".
[[nodiscard]] std::string name_of(const Recomputation& recompute);

}  // namespace headroom
