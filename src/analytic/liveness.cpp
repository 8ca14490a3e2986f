#include "liveness.h"

#include <algorithm>
#include <optional>

namespace headroom::detail {
namespace {

constexpr std::size_t kNeverUsed = 0;

/// Positions of nodes in one run through the blocks, counted from 1.
struct Timeline {
  std::vector<std::size_t> last_use;  ///< by tensor
};

Timeline timeline(const Graph& graph) {
  Timeline result{std::vector<std::size_t>(graph.tensors.size(), kNeverUsed)};
  std::size_t position = 0;
  for (const Block& block : graph.blocks) {
    const std::size_t first = position + 1;
    const std::size_t end = position + block.nodes.size();
    std::vector<bool> made_here(graph.tensors.size(), false);
    for (const Node& node : block.nodes) {
      ++position;
      for (const TensorId input : node.inputs) {
        // Every layer needs a tensor from outside the block, except the carried one.
        const bool needed_throughout =
            block.is_layers() && position >= first && !made_here[input] && !block.carries_in(input);
        result.last_use[input] =
            std::max(result.last_use[input], needed_throughout ? end : position);
      }
      made_here[node.output] = true;
      result.last_use[node.output] = std::max(result.last_use[node.output], position);
    }
  }
  for (const TensorId output : graph.outputs) result.last_use[output] = position;
  return result;
}

class LiveSet {
 public:
  LiveSet(const Graph& graph, Timeline timeline) : graph_(graph), timeline_(std::move(timeline)) {}

  /// Returns the live bytes while `node` runs, then frees tensors that it used last.
  Expr run(const Node& node) {
    ++position_;
    const Expr output = bytes_of(node.output);
    const auto dying =
        node.placement == Placement::in_place ? dying_input(node, output) : std::nullopt;
    Expr during = bytes_;
    if (!dying) during += output;
    bytes_ += output;
    live_.push_back(node.output);
    std::erase_if(live_, [&](TensorId tensor) {
      if (timeline_.last_use[tensor] > position_) return false;
      bytes_ -= bytes_of(tensor);
      return true;
    });
    return during;
  }

 private:
  [[nodiscard]] Expr bytes_of(TensorId tensor) const {
    return graph_.tensors[tensor].elements() * Symbol::activation_bytes;
  }

  [[nodiscard]] std::optional<TensorId> dying_input(const Node& node, const Expr& output) const {
    const auto dies = [&](TensorId input) {
      return timeline_.last_use[input] == position_ && bytes_of(input) == output &&
             std::ranges::find(live_, input) != live_.end();
    };
    const auto found = std::ranges::find_if(node.inputs, dies);
    return found == node.inputs.end() ? std::nullopt : std::optional(*found);
  }

  const Graph& graph_;
  Timeline timeline_;
  std::size_t position_ = 0;
  std::vector<TensorId> live_;
  Expr bytes_;
};

}  // namespace

std::vector<LiveBytes> live_bytes(const Graph& graph) {
  LiveSet live(graph, timeline(graph));
  std::vector<LiveBytes> result;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      result.push_back({block.path + "." + node.path, live.run(node)});
    }
  }
  return result;
}

}  // namespace headroom::detail
