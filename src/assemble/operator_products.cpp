#include "operator_products.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "visit.h"

namespace headroom::detail {
namespace {

using Products = std::vector<OperatorProduct>;
using Shape = std::vector<Expr>;

Expr product_of(const Shape& shape) {
  Expr product = Integer{1};
  for (const Expr& size : shape) product = product * size;
  return product;
}

/// "X[m,k] × W[k,n] → [m,n]"
std::string gemm_text(const std::string& left, const std::string& right, const std::string& out) {
  return fmt::format("{} × {} → {}", left, right, out);
}

std::string named(const char* name, const Shape& shape) { return name + shape_text(shape); }

/// `shape` with another last size.
Shape with_last(Shape shape, const Expr& last) {
  shape.back() = last;
  return shape;
}

class ProductVisitor {
 public:
  ProductVisitor(const Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  Products operator()(const Linear& op) const {
    Products products;
    const std::vector<const Weight*> matrices = matrices_of_node();
    for (const Weight* weight : matrices) {
      const bool own_name = matrices.size() > 1;
      products.push_back(rows_times(own_name ? leaf_name(weight->path) : leaf_name(node_.path),
                                    op.rows, weight->shape.at(1), weight->shape.at(0)));
    }
    const bool counted = sum(products) == op.rows * op.in_features * op.out_features;
    if (counted) return products;
    return {rows_times(leaf_name(node_.path), op.rows, op.in_features, op.out_features)};
  }
  Products operator()(const PatchEmbedding& op) const {
    return {
        {"patches",
         gemm_text(named("X", {op.patches, op.patch_elements}),
                   named("W", {op.patch_elements, op.width}), shape_text({op.patches, op.width})),
         op.patches * op.patch_elements * op.width}};
  }
  Products operator()(const GridConvolution& op) const {
    const Expr places = op.batch * Integer{op.places()};
    const Expr inner = Integer{op.inputs()};
    const Expr out = Integer{op.out_channels};
    return {{leaf_name(node_.path),
             gemm_text(named("X", {places, inner}), named("W", {inner, out}),
                       shape_text({places, out})),
             places * inner * out}};
  }
  Products operator()(const Convolution& op) const {
    const Expr outputs = op.batch * op.length * op.out_channels;
    const Expr inner = op.channels_read() * op.kernel;
    return {
        {leaf_name(node_.path),
         gemm_text(named("X", {op.batch, op.length, inner}), named("W", {inner, op.out_channels}),
                   shape_text({op.batch, op.length, op.out_channels})),
         outputs * inner}};
  }
  Products operator()(const HeadLinear& op) const {
    return {per_head(op.rows, op.heads, op.in_features, op.out_features)};
  }
  Products operator()(const GroupedLinear& op) const {
    return {per_head(op.rows, op.groups, op.in_features, op.out_features)};
  }
  Products operator()(const ExpertLinear& op) const {
    const Expr copies = op.rows * op.per_token;
    return {{leaf_name(node_.path),
             gemm_text(named("X", {copies, op.in_features}),
                       named("Wₑ", {op.in_features, op.out_features}),
                       shape_text({copies, op.out_features})),
             copies * op.in_features * op.out_features}};
  }
  Products operator()(const AttentionScores& op) const {
    return {scores(op.shape, op.shape.score_products())};
  }
  Products operator()(const AttentionContext& op) const {
    return {context(op.shape, op.shape.context_products())};
  }
  Products operator()(const FusedAttention& op) const {
    return {scores(op.shape, op.pairs), context(op.shape, op.pairs)};
  }
  Products operator()(const Softmax&) const {
    const std::string scores = shape_text(graph_.tensors[node_.output].shape);
    return {{"softmax", fmt::format("S{} → P{}, element-wise", scores, scores), {}}};
  }
  Products operator()(const LinearAttention& op) const {
    const AttentionShape& shape = op.shape;
    const Expr rows = shape.batch * shape.heads * shape.queries;
    const Shape state{shape.batch, shape.heads, shape.head_dim, shape.value_head_dim};
    const Shape queries{shape.batch, shape.heads, shape.queries, shape.head_dim};
    const Shape values{shape.batch, shape.heads, shape.queries, shape.value_head_dim};
    return {{"state",
             gemm_text(named("φ(K)ᵀ", with_last(queries, shape.head_dim)), named("V", values),
                       named("S", state)),
             rows * shape.head_dim * shape.value_head_dim},
            {"context", gemm_text(named("φ(Q)", queries), named("S", state), shape_text(values)),
             rows * shape.head_dim * shape.value_head_dim},
            {"denominator",
             gemm_text(named("φ(Q)", queries), "Σφ(K)",
                       shape_text({shape.batch, shape.heads, shape.queries})),
             rows * shape.head_dim}};
  }
  Products operator()(const DisentangledBias& op) const {
    const AttentionShape& shape = op.shape;
    const Expr width = shape.heads * shape.head_dim;
    return {{"positions",
             gemm_text(named("R", {op.positions, op.width}), named("W", {op.width, width}),
                       fmt::format("{} {}", to_string(op.projections()), "projections")),
             op.projections() * op.positions * op.width * width},
            {"terms",
             gemm_text(named("Q", query_shape(shape)),
                       named("R", {shape.heads, shape.head_dim, op.positions}),
                       fmt::format("{} {}", to_string(op.terms()), "terms")),
             op.terms() * shape.query_elements() * op.positions}};
  }
  Products operator()(const TransformerXlBias& op) const {
    const AttentionShape& shape = op.shape;
    return {
        {"positions",
         gemm_text(named("Q", query_shape(shape)),
                   named("R", {shape.heads, shape.head_dim, op.positions}), "scores of positions"),
         shape.query_elements() * op.positions},
        {"segments",
         gemm_text(named("Q", query_shape(shape)),
                   named("G", {shape.heads, shape.head_dim, op.segments}), "scores of segments"),
         shape.query_elements() * op.segments},
        {"segment pairs",
         gemm_text(named("G", {op.segments}), "one-hot rows",
                   shape_text({shape.batch, shape.heads, shape.queries, shape.keys})),
         shape.score_elements() * op.segments}};
  }
  Products operator()(const GatedPositionBias& op) const {
    const Expr values = Integer{GatedPositionBias::kValues};
    return {
        {"gates",
         gemm_text(named("X", {op.gated_rows(), op.shape.head_dim}),
                   named("W", {op.shape.head_dim, values}), shape_text({op.gated_rows(), values})),
         op.shape.query_elements() * values}};
  }
  Products operator()(const LocalAttention& op) const {
    const Shape queries{op.heads, op.rows, op.head_dim};
    const Expr context = Integer{op.context()};
    const Expr positions = Integer{op.positions};
    const auto with = [&](const char* name, const Expr& keys) {
      return gemm_text(named("Q", queries), named(name, {op.heads, op.head_dim, keys}),
                       shape_text({op.heads, op.rows, keys}));
    };
    return {{"scores", with("Kᵀ", context), op.query_elements() * context},
            {"positions", with("R", positions), op.query_elements() * positions},
            {"context",
             gemm_text(named("P", {op.heads, op.rows, context}),
                       named("V", {op.heads, context, op.head_dim}), shape_text(queries)),
             op.query_elements() * context}};
  }
  Products operator()(const IndexScores& op) const {
    const Shape queries{op.batch, op.heads, op.queries, op.head_dim};
    Products products{{"index scores",
                       gemm_text(named("Q", queries), named("Kᵀ", {op.batch, op.head_dim, op.keys}),
                                 shape_text({op.batch, op.heads, op.queries, op.keys})),
                       op.pairs() * op.heads * op.head_dim}};
    if (op.result == IndexHeads::separate) return products;
    products.push_back({"sum over heads",
                        gemm_text(named("w", {op.batch, op.queries, op.heads}), "scores",
                                  shape_text({op.batch, op.queries, op.keys})),
                        op.pairs() * op.heads});
    return products;
  }
  Products operator()(const StreamStep& op) const {
    const Shape streams{op.rows, op.streams, op.width};
    switch (op.kind) {
      case StreamStep::Kind::expand:
      case StreamStep::Kind::sum:
      case StreamStep::Kind::add:
      case StreamStep::Kind::mean:
        return {};
      case StreamStep::Kind::attend:
        return {{leaf_name(node_.path),
                 gemm_text(named("P", {op.rows, Integer{1}, op.streams}), named("X", streams),
                           shape_text({op.rows, Integer{1}, op.width})),
                 product_of(streams)}};
      case StreamStep::Kind::update:
        break;
    }
    return {{leaf_name(node_.path),
             gemm_text(named("M", {op.rows, op.streams, op.streams}), named("X", streams),
                       shape_text(streams)),
             product_of(streams) * op.streams}};
  }
  Products operator()(const AltUpStep& op) const {
    if (op.kind != AltUpStep::Kind::predict) return {};
    const Shape streams{op.rows, op.streams, op.width};
    return {{leaf_name(node_.path),
             gemm_text(named("M", {op.rows, op.streams, op.streams}), named("X", streams),
                       shape_text(streams)),
             product_of(streams) * op.streams}};
  }
  Products operator()(const ShortConvolution& op) const {
    return {{leaf_name(node_.path),
             gemm_text(named("X", {op.rows, op.channels}), named("taps", {op.channels, op.kernel}),
                       shape_text({op.rows, op.channels})),
             op.rows * op.channels * op.kernel}};
  }
  Products operator()(const StateSpaceScan& op) const {
    const Expr states = op.rows * op.heads * op.head_dim * op.state_size;
    const Shape x{op.rows, op.heads, op.head_dim};
    const Shape state{op.heads, op.head_dim, op.state_size};
    return {{"state update",
             gemm_text(named("Δ·x", x), named("Bᵀ", {op.state_size}), named("S", state)), states},
            {"state read", gemm_text(named("S", state), named("C", {op.state_size}), shape_text(x)),
             states}};
  }
  Products operator()(const GatedDelta& op) const {
    const Expr elements = op.rows * op.heads * op.key_dim * op.value_dim;
    const std::string state = named("S", {op.heads, op.key_dim, op.value_dim});
    const std::string values = shape_text({op.rows, op.heads, op.value_dim});
    const std::string key = named("k", {op.rows, op.heads, op.key_dim});
    const OperatorProduct read{
        "read at the receptance",
        gemm_text(named("r", {op.rows, op.heads, op.key_dim}), state, values), elements};
    const OperatorProduct addition{"addition", gemm_text(key + "ᵀ", "v" + values, state), elements};
    switch (op.update) {
      case StateUpdate::addition:
        return {addition, read};
      case StateUpdate::two_vectors:
        return {{"read at the removal",
                 gemm_text(named("κ", {op.rows, op.heads, op.key_dim}), state, values), elements},
                {"removal", gemm_text("a⊙κᵀ", "κᵀ·S" + values, state), elements},
                addition,
                read};
      case StateUpdate::delta:
        break;
    }
    return {{"read at the key", gemm_text(key, state, values), elements},
            {"correction", gemm_text(key + "ᵀ", "δ" + values, state), elements},
            {"read at the query",
             gemm_text(named("q", {op.rows, op.heads, op.key_dim}), state, values), elements}};
  }
  Products operator()(const GatedLinearRecurrence& op) const {
    const Shape x{op.rows, op.heads, op.head_dim};
    const std::string weight = named("W", {op.heads, op.head_dim, op.head_dim});
    const Expr one = product_of(x) * op.head_dim;
    return {{"input gate", gemm_text(named("X", x), weight, shape_text(x)), one},
            {"recurrence gate", gemm_text(named("X", x), weight, shape_text(x)), one}};
  }
  Products operator()(const Recurrence& op) const {
    const Expr gates = op.gates() * op.width;
    return {
        {"state",
         gemm_text(named("h", {op.batch, op.width}), named("W", {op.width, gates}),
                   fmt::format("{}, {} steps", shape_text({op.batch, gates}), format(op.seq_len))),
         op.batch * op.seq_len * op.width * gates}};
  }
  Products operator()(const SimilarityLogits& op) const {
    return {{"similarity",
             gemm_text(named("texts", {op.texts, op.width}),
                       named("imagesᵀ", {op.width, op.images}), shape_text({op.texts, op.images})),
             op.texts * op.images * op.width}};
  }
  Products operator()(
      const OneOf<TokenEmbedding, PositionEmbedding, PatchRows, VisualTokens, RelativePositionBias,
                  PositionTableRows, RelativeSinusoids, Norm, HeadNorm, Rotary, Clamp,
                  TemperatureScale, LatentConcat, KeyCompression, KeySelect, PoolTokens,
                  StreamWeights, KvCacheAppend, GlobalRows, FeatureMap, TokenShift, TokenMix,
                  ValueBonus, WeightedKeyValue, Concatenate, OutputGate, Activation,
                  GatedActivation, RouterSelect, ExpertCombine, RowGate, ResidualAdd, ChannelScale,
                  Dropout, SelectToken, UnitLength, RepeatedRow, Scale, TrainedScale,
                  TimestepFeatures, TrainedShift, Modulation, SequenceRows, SoftCap, CrossEntropy,
                  Collective> auto&) const {
    return {};
  }

 private:
  static Expr sum(const Products& products) {
    Expr total;
    for (const OperatorProduct& product : products) total += product.multiply_adds;
    return total;
  }

  [[nodiscard]] std::vector<const Weight*> matrices_of_node() const {
    std::vector<const Weight*> matrices;
    for (const WeightId id : node_.weights) {
      const Weight& weight = graph_.weights[id];
      if (weight.shape.size() == 2) matrices.push_back(&weight);
    }
    return matrices;
  }

  /// X[rows, in] × W[in, out], with the rows as the node's output has them.
  [[nodiscard]] OperatorProduct rows_times(std::string name, const Expr& rows, const Expr& in,
                                           const Expr& out) const {
    Shape leading = graph_.tensors[node_.output].shape;
    leading.pop_back();
    if (leading.empty() || product_of(leading) != rows) leading = {rows};
    leading.push_back(in);
    return {
        std::move(name),
        gemm_text(named("X", leading), named("W", {in, out}), shape_text(with_last(leading, out))),
        product_of(leading) * out};
  }

  [[nodiscard]] OperatorProduct per_head(const Expr& rows, const Expr& heads, const Expr& in,
                                         const Expr& out) const {
    const Shape left{rows, heads, in};
    return {
        leaf_name(node_.path),
        gemm_text(named("X", left), named("W", {heads, in, out}), shape_text({rows, heads, out})),
        product_of(left) * out};
  }

  static Shape query_shape(const AttentionShape& shape) {
    return {shape.batch, shape.heads, shape.queries, shape.head_dim};
  }

  static Shape score_shape(const AttentionShape& shape, const Expr& pairs) {
    if (pairs == shape.queries * shape.keys) {
      return {shape.batch, shape.heads, shape.queries, shape.keys};
    }
    return {shape.batch, shape.heads, pairs};
  }

  /// Q·Kᵀ over `pairs` of a query and a key.
  static OperatorProduct scores(const AttentionShape& shape, const Expr& pairs) {
    const Shape scores = score_shape(shape, pairs);
    return {"scores",
            gemm_text(named("Q", query_shape(shape)),
                      named("Kᵀ", {shape.batch, shape.kv_heads, shape.head_dim, shape.keys}),
                      shape_text(scores)),
            product_of(scores) * shape.head_dim};
  }

  static OperatorProduct context(const AttentionShape& shape, const Expr& pairs) {
    const Shape scores = score_shape(shape, pairs);
    return {"context",
            gemm_text(named("P", scores),
                      named("V", {shape.batch, shape.kv_heads, shape.keys, shape.value_head_dim}),
                      shape_text({shape.batch, shape.heads, shape.queries, shape.value_head_dim})),
            product_of(scores) * shape.value_head_dim};
  }

  const Graph& graph_;
  const Node& node_;
};

}  // namespace

std::string shape_text(const std::vector<Expr>& shape) {
  std::vector<std::string> sizes;
  sizes.reserve(shape.size());
  for (const Expr& size : shape) sizes.push_back(format(size));
  return fmt::format("[{}]", fmt::join(sizes, ","));
}

std::string leaf_name(std::string path) {
  path = path.substr(0, path.find('['));
  constexpr std::string_view kWeight = ".weight";
  if (path.ends_with(kWeight)) path.resize(path.size() - kWeight.size());
  return path.substr(path.rfind('.') + 1);
}

std::vector<OperatorProduct> products_of(const Graph& graph, const Node& node) {
  return std::visit(ProductVisitor(graph, node), static_cast<const OpVariant&>(node.op));
}

}  // namespace headroom::detail
