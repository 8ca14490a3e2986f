#include "memory_plan.h"

#include <algorithm>
#include <numeric>

namespace headroom::measured {
namespace {

constexpr std::int64_t kCacheLineFloats = 16;

/// One piece of the arena, held from the node that makes it to the last that reads it. Several
/// tensors share one where operators work in place.
struct Buffer {
  std::int64_t floats = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  std::int64_t offset = 0;
};

/// Follows one pass through the blocks, layers folded, and gives every tensor its buffer.
class Planner {
 public:
  Planner(const Graph& graph, const Bindings& sizes) : graph_(graph), sizes_(sizes) {
    buffer_of_.assign(graph.tensors.size(), kNone);
    last_use_.assign(graph.tensors.size(), 0);
  }

  MemoryPlan plan() && {
    find_last_uses();
    assign_buffers();
    MemoryPlan plan;
    plan.peak_bytes = peak_floats() * static_cast<std::int64_t>(sizeof(float));
    plan.arena_floats = place();
    for (const std::size_t buffer : buffer_of_) {
      plan.offsets.push_back(buffer == kNone ? MemoryPlan::kNotInArena : buffers_[buffer].offset);
    }
    return plan;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void find_last_uses() {
    std::size_t position = 0;
    for (const Block& block : graph_.blocks) {
      const std::size_t block_end = position + block.nodes.size();
      std::vector<bool> made_here(graph_.tensors.size(), false);
      for (const Node& node : block.nodes) {
        ++position;
        for (const TensorId input : node.inputs) {
          // Every layer reads what comes from outside, except what layers hand on.
          const bool throughout =
              block.is_layers() && !made_here[input] && input != block.carried_in;
          last_use_[input] = std::max(last_use_[input], throughout ? block_end : position);
        }
        made_here[node.output] = true;
        last_use_[node.output] = std::max(last_use_[node.output], position);
      }
    }
    for (const TensorId output : graph_.outputs) last_use_[output] = position;
    end_ = position;
  }

  void assign_buffers() {
    std::size_t position = 0;
    for (const Block& block : graph_.blocks) {
      for (const Node& node : block.nodes) assign(node, ++position);
    }
  }

  void assign(const Node& node, std::size_t position) {
    const std::int64_t floats = floats_of(node.output);
    std::size_t buffer = kNone;
    if (node.placement == Placement::in_place) {
      for (const TensorId input : node.inputs) {
        const std::size_t candidate = buffer_of_[input];
        const bool dies = candidate != kNone && last_use_[input] == position &&
                          buffers_[candidate].floats == floats;
        if (dies && buffer == kNone) buffer = candidate;
      }
    }
    if (buffer == kNone) {
      buffer = buffers_.size();
      buffers_.push_back({floats, position, position, 0});
    }
    buffer_of_[node.output] = buffer;
    buffers_[buffer].last = std::max(buffers_[buffer].last, last_use_[node.output]);
  }

  [[nodiscard]] std::int64_t floats_of(TensorId tensor) const {
    return static_cast<std::int64_t>(graph_.tensors[tensor].elements().evaluate(sizes_));
  }

  [[nodiscard]] std::int64_t peak_floats() const {
    std::int64_t peak = 0;
    for (std::size_t position = 1; position <= end_; ++position) {
      std::int64_t live = 0;
      for (const Buffer& buffer : buffers_) {
        if (buffer.first <= position && position <= buffer.last) live += buffer.floats;
      }
      peak = std::max(peak, live);
    }
    return peak;
  }

  /// Largest first, each at the lowest offset where no buffer of the same time lies.
  std::int64_t place() {
    std::vector<std::size_t> order(buffers_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>{},
                             [&](std::size_t i) { return buffers_[i].floats; });
    std::vector<std::size_t> placed;
    std::int64_t arena = 0;
    for (const std::size_t index : order) {
      buffers_[index].offset = lowest_gap(buffers_[index], placed);
      placed.push_back(index);
      std::ranges::sort(placed, {}, [&](std::size_t i) { return buffers_[i].offset; });
      arena = std::max(arena, buffers_[index].offset + padded(buffers_[index].floats));
    }
    return arena;
  }

  [[nodiscard]] std::int64_t lowest_gap(const Buffer& buffer,
                                        const std::vector<std::size_t>& placed) const {
    std::int64_t offset = 0;
    for (const std::size_t index : placed) {
      const Buffer& other = buffers_[index];
      const bool same_time = other.first <= buffer.last && buffer.first <= other.last;
      if (!same_time) continue;
      if (offset + padded(buffer.floats) <= other.offset) break;
      offset = std::max(offset, other.offset + padded(other.floats));
    }
    return offset;
  }

  static std::int64_t padded(std::int64_t floats) {
    return (floats + kCacheLineFloats - 1) / kCacheLineFloats * kCacheLineFloats;
  }

  const Graph& graph_;
  const Bindings& sizes_;
  std::vector<std::size_t> buffer_of_;
  std::vector<std::size_t> last_use_;
  std::vector<Buffer> buffers_;
  std::size_t end_ = 0;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const Bindings& sizes) {
  return Planner(graph, sizes).plan();
}

}  // namespace headroom::measured
