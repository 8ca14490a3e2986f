// Memory traffic of an operator: reads each operand once and writes the result once.
#include "op_cost.h"

namespace headroom::detail {
namespace {

const Expr kWeightBytes = Symbol::weight_bytes;
const Expr kCacheBytes = Symbol::kv_cache_bytes;

Expr element_bytes(ElementType type) {
  switch (type) {
    case ElementType::activation:
      return kActivationBytes;
    case ElementType::kv_cache:
      return kCacheBytes;
    case ElementType::index:
      break;
  }
  return kIndexBytes;
}

Expr tensor_bytes(const Tensor& tensor) { return tensor.elements() * element_bytes(tensor.type); }

Expr key_bytes(KeySource source) {
  return source == KeySource::cache ? kCacheBytes : kActivationBytes;
}

/// A bias `[heads, queries, keys]` is read once for all sequences.
Expr bias_bytes(const AttentionShape& shape, ScoreBias bias) {
  if (bias != ScoreBias::relative_position) return {};
  return shape.heads * shape.queries * shape.keys * kActivationBytes;
}

struct TrafficVisitor {
  const Graph& graph;
  const Node& node;

  [[nodiscard]] Expr output_bytes() const { return tensor_bytes(graph.tensors[node.output]); }

  [[nodiscard]] Expr weight_bytes() const {
    Expr bytes;
    for (const WeightId weight : node.weights) {
      bytes += graph.weights[weight].elements() * kWeightBytes;
    }
    return bytes;
  }

  /// Reads whole inputs and weights, writes the whole output.
  [[nodiscard]] Traffic all_operands() const {
    Expr read = weight_bytes();
    for (const TensorId input : node.inputs) read += tensor_bytes(graph.tensors[input]);
    return {read, output_bytes()};
  }

  [[nodiscard]] Traffic in_place(const Expr& elements) const {
    return {elements * kActivationBytes, elements * kActivationBytes};
  }

  Traffic operator()(const TokenEmbedding& op) const {
    // Reads one row of each table per token.
    Expr tables = kWeightBytes;
    if (op.positions == AddedPositions::learned) tables += kWeightBytes;
    if (op.positions == AddedPositions::sinusoidal) tables += kActivationBytes;
    if (!op.type_rows.is_zero()) tables += kWeightBytes;
    return {op.tokens * op.width * tables + op.tokens * kIndexBytes, output_bytes()};
  }
  Traffic operator()(const PatchEmbedding&) const { return all_operands(); }
  Traffic operator()(const RelativePositionBias&) const { return all_operands(); }
  Traffic operator()(const PositionEmbedding& op) const {
    const Traffic values = in_place(op.tokens * op.width);
    return {values.read + op.tokens * op.width * kWeightBytes, values.written};
  }
  Traffic operator()(const Convolution& op) const {
    // Reads the cached inputs and overwrites them with later ones.
    const bool cached = op.past == KeySource::cache;
    const Expr replaced = cached ? op.batch * op.reach() * op.in_channels * kCacheBytes : Expr();
    const Traffic operands = all_operands();
    return {operands.read, operands.written + replaced};
  }
  Traffic operator()(const Linear& op) const {
    return {op.rows * op.in_features * kActivationBytes + weight_bytes(), output_bytes()};
  }
  Traffic operator()(const Norm& op) const {
    const Traffic values = in_place(op.rows * op.width);
    return {values.read + weight_bytes(), values.written};
  }
  Traffic operator()(const HeadNorm& op) const {
    const Traffic values = in_place(op.heads.elements());
    return {values.read + weight_bytes(), values.written};
  }
  Traffic operator()(const Rotary& op) const {
    const Traffic heads = in_place(op.elements());
    return {heads.read + Integer{2} * op.table_elements() * kActivationBytes, heads.written};
  }
  Traffic operator()(const Clamp& op) const { return in_place(op.elements); }
  Traffic operator()(const TemperatureScale& op) const { return in_place(op.heads.elements()); }
  Traffic operator()(const LatentConcat&) const { return all_operands(); }
  Traffic operator()(const HeadLinear& op) const {
    // Reads the weight's rows of keys or of values only.
    const Expr weights = op.heads * op.in_features * op.out_features * kWeightBytes;
    const Expr inputs = op.rows * op.heads * (op.in_features + op.kept) * kActivationBytes;
    return {inputs + weights, output_bytes()};
  }
  Traffic operator()(const KvCacheAppend& op) const {
    return {op.elements * kActivationBytes, op.elements * kCacheBytes};
  }
  Traffic operator()(const AttentionScores& op) const {
    return {op.shape.query_elements() * kActivationBytes +
                op.shape.key_elements() * key_bytes(op.keys) +
                bias_bytes(op.shape, op.shaping.bias),
            output_bytes()};
  }
  Traffic operator()(const Softmax& op) const {
    const Traffic values = in_place(op.elements);
    return {values.read + weight_bytes(), values.written};
  }
  Traffic operator()(const AttentionContext& op) const {
    return {op.shape.score_elements() * kActivationBytes +
                op.shape.value_elements() * key_bytes(op.keys),
            output_bytes()};
  }
  Traffic operator()(const FusedAttention& op) const {
    const bool own_values = op.values == ValuePlace::after_keys;
    const Expr values = own_values ? op.shape.value_elements() : Expr();
    return {op.shape.query_elements() * kActivationBytes +
                (op.shape.key_elements() + values) * key_bytes(op.keys) +
                bias_bytes(op.shape, op.shaping.bias) + weight_bytes(),
            output_bytes()};
  }
  Traffic operator()(const FeatureMap& op) const { return in_place(op.heads.elements()); }
  Traffic operator()(const LinearAttention& op) const {
    const AttentionShape& shape = op.shape;
    const Expr operands =
        (shape.query_elements() + shape.key_elements() + shape.value_elements()) * kActivationBytes;
    const Expr state = shape.batch * shape.heads * shape.head_dim *
                       (shape.value_head_dim + Integer{1}) * key_bytes(op.state);
    return {operands + state, output_bytes() + state};
  }
  Traffic operator()(const ShortConvolution& op) const {
    const Traffic values = in_place(op.rows * op.channels);
    return {values.read + weight_bytes(), values.written};
  }
  Traffic operator()(const GatedDelta& op) const {
    const Expr state = op.batch * op.heads * op.key_dim * op.value_dim * key_bytes(op.state);
    Expr read = weight_bytes() + state;
    for (const TensorId input : node.inputs) {
      const Tensor& tensor = graph.tensors[input];
      if (tensor.type == ElementType::activation) read += tensor_bytes(tensor);
    }
    return {read, output_bytes() + state};
  }
  Traffic operator()(const Recurrence& op) const {
    // Counts the state GEMM's weights once, although every step rereads them from a cache.
    const bool cached = op.state == KeySource::cache;
    const Expr replaced = cached ? op.state_elements() * kCacheBytes : Expr();
    const Traffic operands = all_operands();
    return {operands.read, operands.written + replaced};
  }
  Traffic operator()(const OutputGate&) const { return all_operands(); }
  Traffic operator()(const Activation& op) const { return in_place(op.elements); }
  Traffic operator()(const GatedActivation&) const { return all_operands(); }
  Traffic operator()(const RouterSelect&) const { return all_operands(); }
  Traffic operator()(const ExpertLinear& op) const {
    // Reads only experts that some token uses.
    const Expr expert = op.out_features * (op.in_features + Integer{op.bias ? 1 : 0});
    const Expr inputs = op.rows * op.per_token * op.in_features * kActivationBytes;
    return {inputs + Symbol::experts_read * expert * kWeightBytes, output_bytes()};
  }
  Traffic operator()(const ExpertCombine&) const { return all_operands(); }
  Traffic operator()(const RowGate&) const { return all_operands(); }
  Traffic operator()(const ResidualAdd&) const { return all_operands(); }
  Traffic operator()(const Dropout& op) const {
    const Traffic values = in_place(op.elements);
    return {values.read, values.written + op.elements * Symbol::mask_bytes};
  }
  Traffic operator()(const SelectToken& op) const { return in_place(op.elements); }
  Traffic operator()(const Scale& op) const { return in_place(op.elements); }
  Traffic operator()(const SoftCap& op) const { return in_place(op.elements); }
  Traffic operator()(const CrossEntropy&) const { return all_operands(); }
  Traffic operator()(const Collective&) const {
    return {};
  }  // counted separately, in network bytes
};

}  // namespace

Traffic traffic(const Graph& graph, const Node& node) {
  return std::visit(TrafficVisitor{graph, node}, node.op);
}

}  // namespace headroom::detail
