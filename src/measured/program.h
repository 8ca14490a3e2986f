// Program: a graph made ready to run. Every operator becomes a step that knows its kernel, its
// weights and where its operands lie; a run only calls the steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "headroom/graph.h"
#include "inputs.h"
#include "memory_plan.h"
#include "weights.h"

namespace headroom::measured {

/// What a kernel call really did.
struct StepCount {
  std::int64_t matrix_flops = 0;
  std::int64_t bytes = 0;  ///< read and written, each operand once
};

/// Keys and values, or the running state of linear attention, of every layer. Lives longer than a
/// run: prefill fills it, decode appends.
class KvCache {
 public:
  /// Makes room for every cache of `graph`, for `capacity` keys of each sequence.
  KvCache(const Graph& graph, const Bindings& sizes);

  /// [batch, keys, width] of one layer; null where the graph has no such cache.
  [[nodiscard]] float* data(const std::string& name, std::int64_t layer);
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  /// As before any token.
  void clear();
  /// Fills all of it with small values, as if tokens had come before.
  void fill(std::uint64_t seed);

 private:
  /// Where each one begins, by name and layer. They lie in one memory, so that even small ones are
  /// on large pages.
  std::map<std::pair<std::string, std::int64_t>, std::size_t> begins_;
  AlignedVector<float> memory_;
  std::int64_t bytes_ = 0;
};

/// The lengths of the run at hand. A decode loop counts `past` up between runs.
struct Lengths {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t enc_seq_len = 0;
  std::int64_t past = 0;
  std::int64_t capacity = 0;  ///< keys of a sequence that the KV-cache has room for
};

/// One operator, ready to run in any layer.
struct Step {
  const Node* node = nullptr;
  std::function<StepCount(std::int64_t layer)> run;
};

/// A block's steps and how often they run.
struct ProgramBlock {
  const Block* graph_block = nullptr;
  std::string path;
  std::int64_t repeat = 1;
  std::vector<Step> steps;
  std::vector<StepCount> counts;  ///< of all layers together, by step
  std::vector<std::chrono::nanoseconds> times;
  float* carried_in = nullptr;
  float* carried_out = nullptr;
  std::int64_t carried_floats = 0;

  /// Whether the step is a layer's last.
  [[nodiscard]] bool ends_layer(std::size_t step) const;
};

/// Called after each layer with its number in the stack and what it hands on, [batch, seq, hidden].
using BlockObserver =
    std::function<void(const ProgramBlock& block, std::int64_t layer, const float* data)>;

class Program {
 public:
  /// Prepares `graph` for the lengths; those of tokens must stay as they are. `weights`, `cache`
  /// and `inputs` must outlive the program.
  Program(const ModelSpec& spec, Graph graph, const ModelWeights& weights, KvCache& cache,
          const ModelInputs& inputs, const Lengths& lengths);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// One pass. Times and counts of the last one stay in `blocks()`.
  void run(const BlockObserver& observer = {});

  /// Sets how many tokens the KV-cache holds.
  void set_past(std::int64_t past) noexcept { lengths_.past = past; }

  /// The tensor of an operator's output, such as "logits"; null when there is none.
  [[nodiscard]] const float* output(const std::string& name) const;
  [[nodiscard]] std::int64_t arena_peak_bytes() const noexcept { return plan_.peak_bytes; }
  [[nodiscard]] const std::vector<ProgramBlock>& blocks() const noexcept { return blocks_; }

 private:
  friend class StepBuilder;
  [[nodiscard]] float* pointer(TensorId tensor);
  void build_blocks();

  const ModelSpec& spec_;
  Graph graph_;
  const ModelWeights& weights_;
  KvCache& cache_;
  const ModelInputs& inputs_;
  Lengths lengths_;
  Bindings sizes_;
  MemoryPlan plan_;
  AlignedVector<float> arena_;
  AlignedVector<float> hidden_input_;   ///< a copy of the caller's, which layers may write on
  AlignedVector<float> encoder_input_;  ///< what a layer of cross-attention attends to
  std::vector<ProgramBlock> blocks_;
};

/// The sizes that all of a graph's symbols have at these lengths; attention sees `capacity` keys,
/// so that what is planned suffices until the cache is full.
[[nodiscard]] Bindings sizes_at(const Graph& graph, const Lengths& lengths);

}  // namespace headroom::measured
