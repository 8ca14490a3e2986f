// Program: a graph prepared to run. Every operator becomes a step bound to its kernel, weights and
// operands; a run only calls the steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headroom/graph.h"
#include "headroom/measurement.h"
#include "headroom/workload.h"
#include "inputs.h"
#include "memory_plan.h"
#include "rank_context.h"
#include "weights.h"

namespace headroom::measured {

/// Work of one kernel call, counted from its operands.
struct StepCount {
  std::int64_t matrix_flops = 0;
  std::int64_t bytes = 0;  ///< read and written, each operand once
};

/// Keys and values, or the running state of linear attention, of every layer. Outlives a run:
/// prefill fills it, decode appends.
class KvCache {
 public:
  /// Allocates every cache of `graph`, with room for `capacity` keys per sequence. The state of a
  /// compressor has room for a whole window, of which `bytes()` counts the tokens at the end.
  KvCache(const Graph& graph, const Bindings& sizes);

  /// Cache of one layer, [batch, keys, width]; null if the graph has no cache of that name.
  [[nodiscard]] float* data(const std::string& name, std::int64_t layer);
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  /// Resets to the state before the first token.
  void clear();
  /// Fills the cache with small random values, as if tokens had been processed.
  void fill(std::uint64_t seed);

 private:
  /// Offset of each cache by name and layer. One allocation holds them all, so small caches lie on
  /// huge pages too.
  std::map<std::pair<std::string, std::int64_t>, std::size_t> begins_;
  AlignedVector<float> memory_;
  std::int64_t bytes_ = 0;
};

/// Lengths of a run. A decode loop advances `past` between runs until the cache is full; where
/// `past` and `seq_len` fill it at once, there is only one run.
struct Lengths {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t enc_seq_len = 0;
  std::int64_t past = 0;
  std::int64_t capacity = 0;  ///< keys per sequence that the KV-cache can store
  ImageTotals images{};
  AudioTotals audio{};
  std::int64_t global_tokens = 0;  ///< per sequence
};

/// One operator, prepared to run in any layer of its block.
struct Step {
  const Node* node = nullptr;
  std::function<StepCount(std::int64_t layer)> run;
};

/// Steps of a block, and how often they run.
struct ProgramBlock {
  const Block* graph_block = nullptr;
  std::string path;
  std::int64_t repeat = 1;
  std::vector<Step> steps;
  std::vector<StepCount> counts;  ///< by step, summed over layers
  std::vector<std::chrono::nanoseconds> times;
  float* carried_in = nullptr;
  float* carried_out = nullptr;
  std::int64_t carried_floats = 0;

  /// Returns whether `step` is the last of its layer.
  [[nodiscard]] bool ends_layer(std::size_t step) const;
};

/// Called after each layer with its index in the stack and its output, [batch, seq, hidden].
using BlockObserver =
    std::function<void(const ProgramBlock& block, std::int64_t layer, const float* data)>;

class Program {
 public:
  /// Prepares `graph`, or the part of it that `rank` runs, for `lengths`; only `past` may change
  /// later. `weights`, `cache`, `inputs` and `rank` must outlive the program. With `arena_of`, a
  /// program of the same lengths, both use its arena: a run of one overwrites the other's outputs.
  Program(const ModelSpec& spec, Graph graph, const ModelWeights& weights, KvCache& cache,
          const ModelInputs& inputs, const Lengths& lengths, const RankContext* rank = nullptr,
          const Program* arena_of = nullptr);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Runs one pass. `blocks()` then has its times and counts. Throws Interrupted between steps.
  void run(const BlockObserver& observer = {});

  /// Sets the number of tokens in the KV-cache.
  void set_past(std::int64_t past) noexcept { lengths_.past = past; }

  /// Output of the operator named `name`, such as "logits"; null if this rank has none.
  [[nodiscard]] const float* output(const std::string& name) const;
  /// Values of the last operator's output that are NaN or infinite; 0 before a run.
  [[nodiscard]] std::int64_t non_finite_outputs() const;
  /// Tokens per sequence that "logits" has: all new ones, or the last.
  [[nodiscard]] std::int64_t logit_tokens() const noexcept;
  [[nodiscard]] std::int64_t arena_peak_bytes() const noexcept { return plan_.peak_bytes; }
  /// Memory allocated by now, without the scratchpad that all GEMMs share, and without the arena of
  /// another program.
  [[nodiscard]] AllocatedMemory allocated() const;
  [[nodiscard]] const std::vector<ProgramBlock>& blocks() const noexcept { return blocks_; }
  /// Time of the last run in collectives: transfer, and waiting for other ranks.
  [[nodiscard]] std::chrono::nanoseconds communication_time() const;

 private:
  friend class StepBuilder;
  [[nodiscard]] float* pointer(TensorId tensor);
  /// Layer of the stack that fills the cache `tensor`, if `node` of `block` reads another layer's.
  [[nodiscard]] std::optional<std::int64_t> source_layer(TensorId tensor, const Block& block,
                                                         const Node& node) const;
  void build_blocks();
  /// `other`'s arena if it is as large as this program's, else a new one.
  [[nodiscard]] std::shared_ptr<AlignedVector<float>> arena_beside(const Program* other) const;
  /// Memory of the graph's inputs: the caller's hidden states, or those of the previous stage.
  [[nodiscard]] AlignedVector<float> input_buffer(std::size_t index,
                                                  const std::vector<float>& given) const;
  /// Receives the graph's inputs from the previous stage, if there is one.
  void receive_inputs();

  const ModelSpec& spec_;
  std::optional<ModelSpec> tower_;        ///< the image encoder as a model
  std::optional<ModelSpec> audio_tower_;  ///< likewise
  const RankContext* rank_;
  Bindings whole_sizes_;  ///< of the whole model; a rank has its own in `graph_`
  Graph graph_;
  const ModelWeights& weights_;
  KvCache& cache_;
  const ModelInputs& inputs_;
  Lengths lengths_;
  Bindings sizes_;
  MemoryPlan plan_;
  std::shared_ptr<AlignedVector<float>> arena_;
  bool owns_arena_ = true;
  AlignedVector<float>
      hidden_input_;  ///< copy of the caller's hidden states, which layers may overwrite
  AlignedVector<float> encoder_input_;  ///< keys and values of a cross-attention layer
  using Scratch = std::vector<std::shared_ptr<const AlignedVector<float>>>;
  Scratch kernel_scratch_;
  Scratch strided_copies_;
  std::vector<ProgramBlock> blocks_;
  std::map<TensorId, AlignedVector<float>> gathered_outputs_;  ///< of all ranks' features
  std::chrono::nanoseconds receive_time_{0};
};

/// Steps that one program runs.
enum class PlannedSteps { one, several };

/// Binds all symbols of `graph` for every step up to `last`, which fills the cache.
[[nodiscard]] Bindings sizes_of_steps(const Graph& graph, const Workload& last, PlannedSteps steps,
                                      const RankContext* rank);

/// Binds all symbols of `graph` at these lengths. Attention sees `capacity` keys, so the plan
/// covers every step until the cache is full.
[[nodiscard]] Bindings sizes_at(const Graph& graph, const Lengths& lengths,
                                const RankContext* rank = nullptr);

}  // namespace headroom::measured
