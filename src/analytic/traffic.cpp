// Memory traffic of an operator: reads each operand once and writes the result once.
#include <span>

#include "op_cost.h"

namespace headroom::detail {
namespace {

const Expr kCacheBytes = Symbol::kv_cache_bytes;

Expr tensor_bytes(const Tensor& tensor) { return tensor.elements() * bytes_of(tensor.type); }

Expr key_bytes(KeySource source) {
  return source == KeySource::cache ? kCacheBytes : kActivationBytes;
}

/// Bytes of a bias that is the last input of `node`. One `[heads, queries, keys]` is read once for
/// all sequences.
Expr bias_bytes(const Graph& graph, const Node& node, ScoreBias bias) {
  if (bias != ScoreBias::relative_position) return {};
  return tensor_bytes(graph.tensors[node.inputs.back()]);
}

struct TrafficVisitor {
  const Graph& graph;
  const Node& node;

  [[nodiscard]] Expr output_bytes() const { return tensor_bytes(graph.tensors[node.output]); }

  [[nodiscard]] std::vector<WeightRead> whole_weights() const {
    std::vector<WeightRead> reads;
    for (const WeightId id : node.weights) reads.push_back({id, graph.weights[id].elements()});
    return reads;
  }

  /// Reads `elements` of every weight of the node.
  [[nodiscard]] std::vector<WeightRead> each_weight(const Expr& elements) const {
    std::vector<WeightRead> reads;
    for (const WeightId id : node.weights) reads.push_back({id, elements});
    return reads;
  }

  /// Reads whole inputs and weights, writes the whole output.
  [[nodiscard]] Traffic all_operands() const {
    Expr read;
    for (const TensorId input : node.inputs) read += tensor_bytes(graph.tensors[input]);
    return {read, output_bytes(), whole_weights()};
  }

  /// Elements of the experts that some token uses.
  [[nodiscard]] Expr experts_read(WeightId id) const {
    Expr elements = Symbol::experts_read;
    for (const Expr& size : std::span(graph.weights[id].shape).subspan(1)) {
      elements = elements * size;
    }
    return elements;
  }

  [[nodiscard]] Traffic in_place(const Expr& elements) const {
    return {elements * kActivationBytes, elements * kActivationBytes};
  }

  /// Bytes of the inputs that this pass computed.
  [[nodiscard]] Expr activation_bytes() const {
    Expr bytes;
    for (const TensorId input : node.inputs) {
      const Tensor& tensor = graph.tensors[input];
      if (!is_cached(tensor.type)) bytes += tensor_bytes(tensor);
    }
    return bytes;
  }

  /// `operands`, and reads and overwrites the cached state.
  [[nodiscard]] Traffic with_state(Traffic operands) const {
    for (const TensorId input : node.inputs) {
      const Tensor& tensor = graph.tensors[input];
      if (!is_cached(tensor.type)) continue;
      operands.read += tensor_bytes(tensor);
      operands.written += tensor_bytes(tensor);
    }
    return operands;
  }

  Traffic operator()(const TokenEmbedding& op) const {
    // Reads one row of each table per token.
    const Expr rows = op.tokens * op.width;
    const bool computed = op.positions == AddedPositions::sinusoidal;
    const Expr positions = computed ? rows * kActivationBytes : Expr();
    return {positions + op.tokens * kIndexBytes, output_bytes(), each_weight(rows)};
  }
  Traffic operator()(const PatchEmbedding&) const { return all_operands(); }
  Traffic operator()(const PatchRows& op) const {
    return {op.elements() * kActivationBytes, output_bytes()};
  }
  Traffic operator()(const VisualTokens& op) const {
    const bool adds = op.kind == VisualTokens::Kind::add;
    Traffic traffic = in_place(op.elements());
    if (adds) traffic.read += op.elements() * kActivationBytes;
    return traffic;
  }
  Traffic operator()(const RelativePositionBias&) const { return all_operands(); }
  Traffic operator()(const PositionTableRows&) const { return all_operands(); }
  Traffic operator()(const DisentangledBias& op) const {
    // Values in the rows of projections are not read.
    const Expr operands =
        op.shape.query_elements() + op.shape.key_elements() + op.positions * op.width;
    return {operands * kActivationBytes, output_bytes(), whole_weights()};
  }
  Traffic operator()(const RelativeSinusoids&) const { return all_operands(); }
  Traffic operator()(const TransformerXlBias& op) const {
    const AttentionShape& shape = op.shape;
    const Expr positions = shape.batch * op.positions * shape.heads * shape.head_dim;
    const Expr operands = shape.query_elements() + shape.key_elements() + positions;
    return {operands * kActivationBytes, output_bytes(), whole_weights()};
  }
  Traffic operator()(const GatedPositionBias&) const { return all_operands(); }
  Traffic operator()(const LocalAttention&) const { return all_operands(); }
  Traffic operator()(const ChannelScale& op) const {
    Traffic values = in_place(op.rows * op.width);
    values.weights = whole_weights();
    return values;
  }
  Traffic operator()(const PositionEmbedding& op) const {
    const Traffic values = in_place(op.tokens * op.width);
    return {values.read, values.written, each_weight(op.tokens * op.width)};
  }
  Traffic operator()(const Convolution& op) const {
    // Reads the cached inputs and overwrites them with later ones.
    const bool cached = op.past == KeySource::cache;
    const Expr replaced = cached ? op.batch * op.reach() * op.in_channels * kCacheBytes : Expr();
    const Traffic operands = all_operands();
    return {operands.read, operands.written + replaced, operands.weights};
  }
  Traffic operator()(const GridConvolution&) const { return all_operands(); }
  Traffic operator()(const Linear& op) const {
    return {op.rows * op.in_features * kActivationBytes, output_bytes(), whole_weights()};
  }
  Traffic operator()(const Norm& op) const {
    const Traffic values = in_place(op.rows * op.width);
    return {values.read, values.written, whole_weights()};
  }
  Traffic operator()(const HeadNorm& op) const {
    const Traffic values = in_place(op.heads.elements());
    return {values.read, values.written, whole_weights()};
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
    const Expr inputs = op.rows * op.heads * (op.in_features + op.kept) * kActivationBytes;
    return {inputs, output_bytes(), each_weight(op.heads * op.in_features * op.out_features)};
  }
  Traffic operator()(const GroupedLinear&) const { return all_operands(); }
  Traffic operator()(const KeyCompression&) const {
    return with_state({activation_bytes(), output_bytes(), whole_weights()});
  }
  Traffic operator()(const IndexScores& op) const {
    const Expr keys = op.batch * op.keys * op.head_dim * key_bytes(op.source);
    const Expr rows = op.batch * op.queries * op.heads * (op.head_dim + op.weights());
    return {keys + rows * kActivationBytes, output_bytes()};
  }
  Traffic operator()(const KeySelect& op) const { return in_place(op.pairs()); }
  Traffic operator()(const PoolTokens&) const { return all_operands(); }
  Traffic operator()(const StreamWeights&) const { return all_operands(); }
  Traffic operator()(const StreamStep&) const { return all_operands(); }
  Traffic operator()(const KvCacheAppend& op) const {
    return {op.elements * kActivationBytes, op.elements * kCacheBytes};
  }
  Traffic operator()(const AttentionScores& op) const {
    return {op.shape.query_elements() * kActivationBytes +
                op.shape.key_elements() * key_bytes(op.keys) +
                bias_bytes(graph, node, op.shaping.bias),
            output_bytes()};
  }
  Traffic operator()(const Softmax& op) const {
    const Traffic values = in_place(op.elements);
    return {values.read, values.written, whole_weights()};
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
                bias_bytes(graph, node, op.shaping.bias),
            output_bytes(), whole_weights()};
  }
  Traffic operator()(const GlobalRows& op) const {
    const Expr bytes = op.elements() * kActivationBytes;
    if (op.kind == GlobalRows::Kind::sum) return {op.added() * kActivationBytes, bytes};
    return {bytes, bytes};
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
    const Traffic values = in_place(op.elements());
    return with_state({values.read, values.written, whole_weights()});
  }
  Traffic operator()(const StateSpaceScan&) const {
    return with_state({activation_bytes(), output_bytes(), whole_weights()});
  }
  Traffic operator()(const GatedDelta&) const {
    return with_state({activation_bytes(), output_bytes(), whole_weights()});
  }
  Traffic operator()(const GatedLinearRecurrence&) const {
    return with_state({activation_bytes(), output_bytes(), whole_weights()});
  }
  Traffic operator()(const TokenShift&) const {
    return with_state({activation_bytes(), output_bytes()});
  }
  Traffic operator()(const TokenMix&) const { return all_operands(); }
  Traffic operator()(const ValueBonus&) const { return all_operands(); }
  Traffic operator()(const WeightedKeyValue&) const {
    return with_state({activation_bytes(), output_bytes(), whole_weights()});
  }
  Traffic operator()(const Concatenate&) const { return all_operands(); }
  Traffic operator()(const Recurrence& op) const {
    // Counts the state GEMM's weights once, although every step rereads them from a cache.
    const bool cached = op.state == KeySource::cache;
    const Expr replaced = cached ? op.state_elements() * kCacheBytes : Expr();
    const Traffic operands = all_operands();
    return {operands.read, operands.written + replaced, operands.weights};
  }
  Traffic operator()(const OutputGate&) const { return all_operands(); }
  Traffic operator()(const Activation& op) const { return in_place(op.elements); }
  Traffic operator()(const GatedActivation& op) const {
    if (op.slices.is_zero()) return all_operands();
    const Traffic values = in_place(op.elements);  // and reads the layer's slice
    return {values.read + op.elements * kActivationBytes, values.written};
  }
  Traffic operator()(const RouterSelect& op) const {
    Traffic operands = all_operands();
    // Reads the rows of the new tokens from a table.
    const bool looks_up = op.spec.selection == ExpertSelection::token_table;
    if (looks_up) operands.weights = each_weight(op.rows * op.per_token);
    return operands;
  }
  Traffic operator()(const ExpertLinear& op) const {
    const Expr inputs = op.rows * op.per_token * op.in_features * kActivationBytes;
    Traffic bytes{inputs, output_bytes()};
    for (const WeightId id : node.weights) bytes.weights.push_back({id, experts_read(id)});
    return bytes;
  }
  Traffic operator()(const ExpertCombine&) const { return all_operands(); }
  Traffic operator()(const RowGate&) const { return all_operands(); }
  Traffic operator()(const ResidualAdd&) const { return all_operands(); }
  Traffic operator()(const Dropout& op) const {
    const Traffic values = in_place(op.elements);
    return {values.read, values.written + op.elements * Symbol::mask_bytes};
  }
  Traffic operator()(const SelectToken& op) const {
    const Expr read = op.averaged.is_zero() ? op.elements : op.averaged;
    return {read * kActivationBytes, op.elements * kActivationBytes};
  }
  Traffic operator()(const UnitLength& op) const { return in_place(op.rows * op.width); }
  Traffic operator()(const RepeatedRow&) const { return all_operands(); }
  Traffic operator()(const SimilarityLogits&) const { return all_operands(); }
  Traffic operator()(const Scale& op) const { return in_place(op.elements); }
  Traffic operator()(const AltUpStep& op) const {
    if (op.kind == AltUpStep::Kind::select) return in_place(op.stream_elements());
    return all_operands();
  }
  Traffic operator()(const TrainedScale& op) const {
    const Traffic values = in_place(op.rows * op.width);
    return {values.read, values.written, whole_weights()};
  }
  Traffic operator()(const TimestepFeatures&) const { return all_operands(); }
  Traffic operator()(const TrainedShift&) const { return all_operands(); }
  Traffic operator()(const Modulation& op) const {
    Traffic tokens = in_place(op.elements());
    tokens.read += Integer{op.vectors()} * op.batch * op.width * kActivationBytes;
    return tokens;
  }
  Traffic operator()(const SequenceRows& op) const { return in_place(op.elements()); }
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
