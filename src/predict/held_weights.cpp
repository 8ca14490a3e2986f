// What weights take in memory as the measured module lays them out.
#include <algorithm>

#include "headroom/predict.h"
#include "row_policy.h"

namespace headroom {
namespace {

constexpr Integer kFloat32 = 4;

/// Who reads a weight.
struct Readers {
  bool product = false;  ///< a linear layer, or the projection of patches
  bool words = false;    ///< the table of an embedding
};

/// Whether position `index` of a node's weights belongs to a product.
bool in_product(const Node& node, std::size_t index) {
  if (std::holds_alternative<Linear>(node.op)) return true;
  return std::holds_alternative<PatchEmbedding>(node.op) && index < 2;
}

std::vector<Readers> readers_of(const Graph& graph) {
  std::vector<Readers> readers(graph.weights.size());
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      for (std::size_t i = 0; i < node.weights.size(); ++i) {
        Readers& reader = readers[node.weights[i]];
        reader.product = reader.product || in_product(node, i);
        const bool table = i == 0 && std::holds_alternative<TokenEmbedding>(node.op);
        reader.words = reader.words || table;
      }
    }
  }
  return readers;
}

/// Bytes of one element in all the places that hold it.
Integer bytes_of_element(const Weight& weight, const Readers& readers, const Workload& workload,
                         const TimeRequest& request) {
  const detail::RowPolicy policy = detail::row_policy(workload, request);
  const Integer stored = workload.dtype == DType::bfloat16 ? 2 : kFloat32;
  const bool bias = weight.path.ends_with(".bias");
  if (!readers.product) return readers.words ? stored : kFloat32;
  Integer bytes = policy.few ? (bias ? kFloat32 : stored) : 0;
  if (policy.many) bytes += kFloat32;
  // A layer of few rows can be asked for the rows of the table; an opaque layout cannot.
  const bool held_apart = readers.words && !policy.few && request.opaque_layout;
  // While a layer is tied to it, the table stays as it was loaded.
  return held_apart ? bytes + kFloat32 : bytes;
}

}  // namespace

Integer predict_held_weight_bytes(const ModelSpec& spec, const Workload& workload,
                                  const TimeRequest& request) {
  const Graph graph = build_graph(spec, {Phase::prefill, workload.attention});
  const std::vector<Readers> readers = readers_of(graph);
  Integer bytes = 0;
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    const Weight& weight = graph.weights[i];
    const Integer elements = (weight.repeat * weight.elements()).evaluate(graph.sizes);
    bytes += elements * bytes_of_element(weight, readers[i], workload, request);
  }
  return bytes;
}

}  // namespace headroom
