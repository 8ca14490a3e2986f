#include "layer_ties.h"

#include <map>
#include <set>
#include <utility>
#include <variant>

#include "stage_layout.h"

namespace headroom::detail {
namespace {

class TieFinder {
 public:
  explicit TieFinder(const Graph& graph) : graph_(graph) {
    for (const Block& block : graph.blocks) handed_on_.insert(block.carried_out);
  }

  std::vector<LayerTie> run() && {
    const std::vector<LayerKind> kinds = layer_kinds(graph_);
    std::size_t first_kind = 0;
    for (const Block& block : graph_.blocks) {
      if (!is_stage_layers(block)) continue;
      add(block, kinds[first_kind]);
      first_kind += static_cast<std::size_t>(block.layers_per_run);
    }
    return std::move(ties_);
  }

 private:
  void add(const Block& block, const LayerKind& first) {
    std::map<TensorId, std::int64_t> owners;        // layers of a run
    std::map<TensorId, std::int64_t> last_readers;  // of those that an earlier layer of it made
    TensorId hidden = block.carried_in;             // in front of the node's layer
    TensorId output = hidden;
    std::int64_t layer = 0;
    for (const Node& node : block.nodes) {
      if (std::exchange(layer, node.layer) != node.layer) hidden = output;
      for (const TensorId input : node.inputs) {
        if (input == hidden || handed_on_.contains(input)) continue;
        const auto earlier = last_owner_.find(input);
        if (earlier != last_owner_.end()) {
          tie(input, earlier->second, last_layer(first, layer));
          continue;
        }
        if (is_cached(graph_.tensors[input].type)) owners.try_emplace(input, layer);
        const auto owner = owners.find(input);
        if (owner != owners.end() && owner->second < layer) last_readers[input] = layer;
      }
      const bool chooses =
          std::holds_alternative<KeySelect>(node.op) || std::holds_alternative<PoolTokens>(node.op);
      if (chooses) choices_.insert(node.output);
      output = node.output;
      owners.insert_or_assign(output, layer);
    }
    for (const auto& [tensor, reader] : last_readers) {
      for (std::int64_t run = 0; run < first.count; ++run) {
        const std::int64_t begin = first.first_layer + run * first.stride;
        tie(tensor, begin + owners.at(tensor), begin + reader);
      }
    }
    for (const auto& [tensor, owner] : owners) last_owner_[tensor] = last_layer(first, owner);
  }

  void tie(TensorId tensor, std::int64_t owner, std::int64_t reader) {
    if (reader <= owner) return;
    const bool chosen = choices_.contains(tensor);
    ties_.push_back(
        {tensor, chosen ? TiedValue::key_choice : TiedValue::key_values, {owner + 1, reader + 1}});
  }

  /// The layer of the last run that is layer `layer` of it.
  static std::int64_t last_layer(const LayerKind& first, std::int64_t layer) {
    return first.first_layer + (first.count - 1) * first.stride + layer;
  }

  const Graph& graph_;
  std::set<TensorId> handed_on_;  ///< hidden states behind a block
  std::set<TensorId> choices_;    ///< of indexers
  std::map<TensorId, std::int64_t> last_owner_;
  std::vector<LayerTie> ties_;
};

}  // namespace

std::vector<LayerTie> layer_ties(const Graph& graph) { return TieFinder(graph).run(); }

std::vector<std::int64_t> tied_layers(const Graph& graph, TiedValue value) {
  std::set<std::int64_t> layers;
  for (const LayerTie& tie : layer_ties(graph)) {
    if (tie.value != value) continue;
    for (std::int64_t layer = tie.readers.begin; layer < tie.readers.end; ++layer) {
      layers.insert(layer);
    }
  }
  return {layers.begin(), layers.end()};
}

}  // namespace headroom::detail
