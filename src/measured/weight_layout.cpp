#include "weight_layout.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace headroom::measured {
namespace {

constexpr Integer kBfloat16Bytes = 2;

/// Ways in which the operators of a graph read a weight.
struct Reads {
  bool packed = false;
  bool in_steps = false;  ///< packed for few rows only
  bool in_head = false;   ///< packed for the rows of the head
  bool as_table = false;
  bool unpacked = false;
};

/// By weight.
std::vector<Reads> reads_of(const ModelSpec& spec, const Graph& graph) {
  std::vector<Reads> reads(graph.weights.size());
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      const auto projection = projection_of(node, graph.sizes);
      const bool looks_up = std::holds_alternative<TokenEmbedding>(node.op);
      for (std::size_t i = 0; i < node.weights.size(); ++i) {
        Reads& weight = reads[node.weights[i]];
        const bool packed = projection && i < projection->weights;
        const bool table = looks_up && i == 0;
        weight.packed |= packed;
        weight.in_head |= packed && node.component.part == Part::head;
        weight.in_steps |= packed && projection->few_rows;
        weight.as_table |= table;
        weight.unpacked |= !packed && !table;
      }
    }
  }
  const std::set<std::string> unpacked = also_unpacked(spec, graph);
  for (std::size_t i = 0; i < reads.size(); ++i) {
    reads[i].unpacked |= unpacked.contains(graph.weights[i].path);
  }
  return reads;
}

/// Bytes of one element in all its places.
Integer bytes_of_element(const Weight& weight, const Reads& reads, const HeldLayout& layout) {
  const bool narrow = layout.storage == HeldType::bfloat16;
  const Integer stored = narrow ? kBfloat16Bytes : kFloat32Bytes;
  if (!reads.packed) return reads.as_table ? stored : kFloat32Bytes;
  RowRange rows = reads.in_head ? layout.head_rows : layout.rows;
  if (reads.in_steps) rows = RowRange::few;
  const bool is_bias = weight.path.ends_with(".bias");
  const Integer bytes = is_bias ? kFloat32Bytes : stored;
  const LinearOptions packing{.backend = layout.backend,
                              .rows = rows,
                              .storage = layout.storage,
                              .activations = layout.activations};
  const bool beside = reads.unpacked || (reads.as_table && !returns_rows(packing));
  return beside ? bytes + kFloat32Bytes : bytes;
}

/// Weights of one operator in one layer.
struct LoadedNode {
  Integer elements = 0;
  Integer held_bytes = 0;
  Integer read_bytes = 0;  ///< before it is packed
};

/// The weights of a graph as they are loaded.
class Loading {
 public:
  Loading(const ModelSpec& spec, const Graph& graph, const HeldLayout& layout)
      : graph_(graph), reads_(reads_of(spec, graph)), layout_(layout) {}

  /// All operators' weights, each counted for the first that reads it.
  [[nodiscard]] std::vector<LoadedNode> nodes() {
    std::vector<LoadedNode> all;
    for (const Block& block : graph_.blocks) {
      const std::int64_t runs = block.repeat.evaluate_int64(graph_.sizes);
      for (const Node& node : block.nodes) {
        for (std::int64_t run = 0; run < runs && !node.weights.empty(); ++run) {
          all.push_back(loaded_by(node, block.weights_of(node, run)));
        }
      }
    }
    return all;
  }

 private:
  LoadedNode loaded_by(const Node& node, std::int64_t layer) {
    LoadedNode all;
    for (const WeightId id : node.weights) {
      const Weight& weight = graph_.weights[id];
      const Integer elements = weight.elements().evaluate(graph_.sizes);
      all.elements = checked_add(all.elements, elements);
      if (!loaded_.insert({weight.path, layer}).second) continue;
      const Integer one = bytes_of_element(weight, reads_[id], layout_);
      all.held_bytes = checked_add(all.held_bytes, checked_multiply(elements, one));
      all.read_bytes = checked_add(all.read_bytes, checked_multiply(elements, kFloat32Bytes));
    }
    return all;
  }

  const Graph& graph_;
  std::vector<Reads> reads_;
  const HeldLayout& layout_;
  std::set<std::pair<std::string, std::int64_t>> loaded_;  ///< by path and layer
};

}  // namespace

bool returns_rows(const LinearOptions& packing) noexcept {
  const bool is_chosen_by_backend =
      packing.storage != HeldType::bfloat16 || packing.activations == ActivationPath::bfloat16;
  return packing.rows != RowRange::many || packing.backend == Backend::eigen ||
         !is_chosen_by_backend;
}

Integer held_weight_bytes(const ModelSpec& spec, const HeldLayout& layout,
                          const RankContext* rank) {
  const Graph graph = graph_of_rank(build_graph(spec, all_parts()), rank);
  const std::vector<Reads> reads = reads_of(spec, graph);
  // Of a pipeline, the first stage stores the weights that no operator reads.
  const bool has_unread = rank == nullptr || rank->pipeline.is_first();
  const std::size_t of_nodes = graph.weights.size() - (has_unread ? spec.counted_only.size() : 0);
  Integer bytes = 0;
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    const bool is_held = i < of_nodes || is_loaded(spec.counted_only[i - of_nodes].use);
    if (!is_held) continue;
    const Weight& weight = graph.weights[i];
    const Integer elements = (weight.repeat * weight.elements()).evaluate(graph.sizes);
    bytes =
        checked_add(bytes, checked_multiply(elements, bytes_of_element(weight, reads[i], layout)));
  }
  return bytes;
}

Integer loading_weight_bytes(const ModelSpec& spec, const HeldLayout& layout,
                             const RankContext* rank) {
  const Graph graph = graph_of_rank(build_graph(spec, all_parts()), rank);
  std::vector<LoadedNode> nodes = Loading(spec, graph, layout).nodes();
  std::ranges::stable_sort(nodes, std::ranges::greater{}, &LoadedNode::elements);
  Integer held = 0;
  Integer most = 0;
  for (const LoadedNode& node : nodes) {
    most = std::max(most, checked_add(held, std::max(node.read_bytes, node.held_bytes)));
    held = checked_add(held, node.held_bytes);
  }
  return most;
}

}  // namespace headroom::measured
