#include "memory_plan.h"

#include <algorithm>
#include <numeric>

#include "kernels/cache_line.h"

namespace headroom::measured {
namespace {

/// A range of the arena, live from the node that writes it to its last reader. Tensors of in-place
/// operators share one.
struct ArenaBuffer {
  Integer floats = 0;
  std::size_t first = 0;
  std::size_t last = 0;
  Integer offset = 0;
};

/// Walks through the blocks once, layers folded, and assigns every tensor a buffer.
class ArenaPlanner {
 public:
  ArenaPlanner(const Graph& graph, const Bindings& sizes) : graph_(graph), sizes_(sizes) {
    buffer_of_.assign(graph.tensors.size(), kNoBuffer);
    last_use_.assign(graph.tensors.size(), 0);
  }

  MemoryPlan plan() && {
    const Integer floats = lay_out();
    (void)checked_int64(checked_multiply(floats, sizeof(float)));
    MemoryPlan plan;
    plan.arena_floats = checked_int64(floats);
    plan.peak_bytes = checked_int64(checked_multiply(peak_floats(), sizeof(float)));
    for (const std::size_t buffer : buffer_of_) {
      plan.offsets.push_back(buffer == kNoBuffer ? MemoryPlan::kNotInArena
                                                 : checked_int64(buffers_[buffer].offset));
    }
    return plan;
  }

  /// Places all buffers. Returns the size of the arena in floats.
  Integer lay_out() {
    find_last_uses();
    assign_buffers();
    return place();
  }

 private:
  static constexpr std::size_t kNoBuffer = static_cast<std::size_t>(-1);

  void find_last_uses() {
    std::size_t position = 0;
    for (const Block& block : graph_.blocks) {
      const std::size_t block_end = position + block.nodes.size();
      std::vector<bool> made_here(graph_.tensors.size(), false);
      for (const Node& node : block.nodes) {
        ++position;
        for (const TensorId input : node.inputs) {
          // Every layer reads tensors from outside the block, so they live to its end; a carried
          // tensor is replaced by each layer.
          const bool read_by_every_layer =
              block.is_layers() && !made_here[input] && !block.carries_in(input);
          last_use_[input] = std::max(last_use_[input], read_by_every_layer ? block_end : position);
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
    const Integer floats = graph_.tensors[node.output].elements().evaluate(sizes_);
    std::size_t buffer = kNoBuffer;
    if (node.placement == Placement::in_place) {
      for (const TensorId input : node.inputs) {
        const std::size_t candidate = buffer_of_[input];
        const bool dies = candidate != kNoBuffer && last_use_[input] == position &&
                          buffers_[candidate].floats == floats;
        if (dies && buffer == kNoBuffer) buffer = candidate;
      }
    }
    if (buffer == kNoBuffer) {
      buffer = buffers_.size();
      buffers_.push_back({floats, position, position, 0});
    }
    buffer_of_[node.output] = buffer;
    buffers_[buffer].last = std::max(buffers_[buffer].last, last_use_[node.output]);
  }

  [[nodiscard]] Integer peak_floats() const {
    Integer peak = 0;
    for (std::size_t position = 1; position <= end_; ++position) {
      Integer live = 0;
      for (const ArenaBuffer& buffer : buffers_) {
        if (buffer.first <= position && position <= buffer.last)
          live = checked_add(live, buffer.floats);
      }
      peak = std::max(peak, live);
    }
    return peak;
  }

  /// Places the largest buffers first, each at the lowest offset that is free during its lifetime.
  Integer place() {
    std::vector<std::size_t> order(buffers_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater<>{},
                             [&](std::size_t i) { return buffers_[i].floats; });
    std::vector<std::size_t> placed;
    Integer arena = 0;
    for (const std::size_t index : order) {
      buffers_[index].offset = lowest_gap(buffers_[index], placed);
      placed.push_back(index);
      std::ranges::sort(placed, {}, [&](std::size_t i) { return buffers_[i].offset; });
      arena = std::max(arena, end_of(buffers_[index], buffers_[index].offset));
    }
    return arena;
  }

  [[nodiscard]] Integer lowest_gap(const ArenaBuffer& buffer,
                                   const std::vector<std::size_t>& placed) const {
    Integer offset = 0;
    for (const std::size_t index : placed) {
      const ArenaBuffer& other = buffers_[index];
      const bool overlaps = other.first <= buffer.last && buffer.first <= other.last;
      if (!overlaps) continue;
      if (end_of(buffer, offset) <= other.offset) break;
      offset = std::max(offset, end_of(other, other.offset));
    }
    return offset;
  }

  /// End of `buffer` at `offset`, aligned to cache lines.
  static Integer end_of(const ArenaBuffer& buffer, Integer offset) {
    return checked_add(offset, round_up(buffer.floats, Integer{kCacheLineFloats}));
  }

  const Graph& graph_;
  const Bindings& sizes_;
  std::vector<std::size_t> buffer_of_;
  std::vector<std::size_t> last_use_;
  std::vector<ArenaBuffer> buffers_;
  std::size_t end_ = 0;
};

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const Bindings& sizes) {
  return ArenaPlanner(graph, sizes).plan();
}

Integer arena_floats(const Graph& graph, const Bindings& sizes) {
  return ArenaPlanner(graph, sizes).lay_out();
}

}  // namespace headroom::measured
