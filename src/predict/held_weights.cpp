// Memory of the weights as the measured module stores them: the rules of its ModelWeights, tested
// against its counts in tests/measured/test_prediction.cpp.
#include "headroom/predict.h"
#include "row_policy.h"
#include "working_memory.h"

namespace headroom {
namespace {

/// Kinds of operators that read a weight.
struct Readers {
  bool product = false;  ///< a linear layer or patch projection, which repacks it
  bool state = false;    ///< a recurrence, which repacks it for few rows only
  bool words = false;    ///< an embedding, which looks up rows
};

/// Returns whether a node's weight `index` is a GEMM operand; of a patch projection, the first two
/// are.
bool in_product(const Node& node, std::size_t index) {
  if (std::holds_alternative<Linear>(node.op)) return true;
  return std::holds_alternative<PatchEmbedding>(node.op) && index < 2;
}

/// Returns whether a node's weight `index` is a word embedding: an embedding's first.
bool is_table(const Node& node, std::size_t index) {
  return std::holds_alternative<TokenEmbedding>(node.op) && index == 0;
}

std::vector<Readers> readers_of(const Graph& graph) {
  std::vector<Readers> readers(graph.weights.size());
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      for (std::size_t i = 0; i < node.weights.size(); ++i) {
        Readers& reader = readers[node.weights[i]];
        reader.product = reader.product || in_product(node, i);
        reader.state = reader.state || std::holds_alternative<Recurrence>(node.op);
        reader.words = reader.words || is_table(node, i);
      }
    }
  }
  return readers;
}

/// Bytes per element in all copies. A GEMM stores its weights once for few rows, in the stored
/// type, and once for many rows, in float32; biases are always float32. Other weights stay in
/// float32 as loaded, except word embeddings, which use the stored type. A tied embedding needs no
/// copy of its own if a layout of its GEMM gives access to rows: the one for few rows does, the one
/// for many may not.
Integer bytes_of_element(const Weight& weight, const Readers& readers, const Workload& workload,
                         const TimeRequest& request) {
  const detail::RowPolicy rows = detail::row_policy(workload, request);
  const Integer stored = workload.dtype == DType::bfloat16 ? 2 : detail::kFloat32Bytes;
  const bool is_bias = weight.path.ends_with(".bias");
  if (readers.state) return is_bias ? detail::kFloat32Bytes : stored;
  if (!readers.product) return readers.words ? stored : detail::kFloat32Bytes;
  const Integer few = rows.few ? (is_bias ? detail::kFloat32Bytes : stored) : 0;
  const Integer many = rows.many ? detail::kFloat32Bytes : 0;
  const bool row_access = rows.few || !request.opaque_layout;
  const Integer table = readers.words && !row_access ? detail::kFloat32Bytes : 0;
  return few + many + table;
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
    const Integer one = bytes_of_element(weight, readers[i], workload, request);
    bytes = checked_add(bytes, checked_multiply(elements, one));
  }
  return bytes;
}

}  // namespace headroom
