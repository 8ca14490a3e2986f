#include "op_exprs.h"

#include <algorithm>
#include <utility>

namespace headroom::detail {
namespace {

class ExprMapper {
 public:
  explicit ExprMapper(const std::function<Expr(const Expr&)>& change) : change_(change) {}

  void operator()(TokenEmbedding& op) const { each(op.tokens, op.seq_len, op.width, op.type_rows); }
  void operator()(PositionEmbedding& op) const { each(op.tokens, op.seq_len, op.width); }
  void operator()(PatchEmbedding& op) const {
    each(op.images, op.patches, op.patch_elements, op.width, op.prefix);
  }
  void operator()(PatchRows& op) const { each(op.rows, op.width); }
  void operator()(VisualTokens& op) const { each(op.rows, op.width); }
  void operator()(Convolution& op) const {
    each(op.batch, op.in_channels, op.out_channels, op.kernel, op.stride, op.length, op.dilation,
         op.group_channels);
  }
  void operator()(GridConvolution& op) const { each(op.batch); }
  void operator()(RelativePositionBias& op) const {
    each(op.heads, op.queries, op.keys, op.first_query, op.batch, op.block, op.global_keys);
  }
  void operator()(PositionTableRows& op) const { each(op.rows, op.width); }
  void operator()(DisentangledBias& op) const {
    shape(op.shape);
    each(op.positions, op.width);
  }
  void operator()(RelativeSinusoids& op) const { each(op.batch, op.positions, op.width); }
  void operator()(TransformerXlBias& op) const {
    shape(op.shape);
    each(op.positions, op.segments);
  }
  void operator()(GatedPositionBias& op) const { shape(op.shape); }
  void operator()(LocalAttention& op) const { each(op.rows, op.heads, op.head_dim); }
  void operator()(Linear& op) const {
    each(op.rows, op.in_features, op.out_features, op.row_width);
  }
  void operator()(Norm& op) const { each(op.rows, op.width, op.row_width); }
  void operator()(HeadNorm& op) const { heads(op.heads); }
  void operator()(Rotary& op) const {
    heads(op.heads);
    each(op.first_dim, op.rotary_dim, op.seq_len);
  }
  void operator()(Clamp& op) const { each(op.elements); }
  void operator()(TemperatureScale& op) const {
    heads(op.heads);
    each(op.seq_len);
  }
  void operator()(LatentConcat& op) const {
    each(op.rows, op.heads, op.nope_dim, op.rope_dim, op.value_dim, op.latent_dim);
  }
  void operator()(HeadLinear& op) const {
    each(op.rows, op.heads, op.in_features, op.out_features, op.kept);
  }
  void operator()(GroupedLinear& op) const {
    each(op.rows, op.groups, op.in_features, op.out_features);
  }
  void operator()(KeyCompression& op) const {
    each(op.batch, op.tokens, op.entries, op.rate, op.series, op.width);
  }
  void operator()(IndexScores& op) const {
    each(op.batch, op.heads, op.head_dim, op.queries, op.keys);
  }
  void operator()(KeySelect& op) const { each(op.batch, op.queries, op.keys, op.heads); }
  void operator()(PoolTokens& op) const { each(op.batch, op.queries, op.pools, op.keys); }
  void operator()(StreamWeights& op) const { each(op.rows, op.streams); }
  void operator()(StreamStep& op) const { each(op.rows, op.streams, op.width); }
  void operator()(KvCacheAppend& op) const {
    each(op.elements, op.kv_heads, op.head_dim);
    heads(op.kept);
  }
  void operator()(AttentionScores& op) const { shape(op.shape); }
  void operator()(Softmax& op) const { each(op.elements); }
  void operator()(AttentionContext& op) const { shape(op.shape); }
  void operator()(FusedAttention& op) const {
    shape(op.shape);
    each(op.pairs);
  }
  void operator()(GlobalRows& op) const { each(op.batch, op.tokens, op.width, op.summed); }
  void operator()(FeatureMap& op) const { heads(op.heads); }
  void operator()(LinearAttention& op) const { shape(op.shape); }
  void operator()(ShortConvolution& op) const { each(op.batch, op.rows, op.channels, op.kernel); }
  void operator()(StateSpaceScan& op) const {
    each(op.batch, op.rows, op.heads, op.head_dim, op.groups, op.state_size, op.first_parameter);
  }
  void operator()(GatedDelta& op) const {
    each(op.batch, op.rows, op.key_heads, op.heads, op.key_dim, op.value_dim);
  }
  void operator()(GatedLinearRecurrence& op) const {
    each(op.batch, op.rows, op.heads, op.head_dim);
  }
  void operator()(TokenShift& op) const { each(op.batch, op.rows, op.width); }
  void operator()(TokenMix& op) const { each(op.rows, op.width); }
  void operator()(ValueBonus& op) const { each(op.rows, op.heads, op.key_dim, op.value_dim); }
  void operator()(WeightedKeyValue& op) const { each(op.batch, op.rows, op.width); }
  void operator()(Concatenate& op) const { each(op.rows, op.first, op.second); }
  void operator()(Recurrence& op) const { each(op.batch, op.seq_len, op.width); }
  void operator()(OutputGate& op) const { each(op.elements, op.gates); }
  void operator()(Activation& op) const { each(op.elements); }
  void operator()(GatedActivation& op) const { each(op.elements, op.slices); }
  void operator()(RouterSelect& op) const { each(op.rows, op.num_experts, op.per_token); }
  void operator()(ExpertLinear& op) const {
    each(op.rows, op.num_experts, op.per_token, op.in_features, op.out_features);
  }
  void operator()(ExpertCombine& op) const { each(op.rows, op.per_token, op.width); }
  void operator()(RowGate& op) const { each(op.rows, op.width); }
  void operator()(ResidualAdd& op) const { each(op.elements); }
  void operator()(ChannelScale& op) const { each(op.rows, op.width); }
  void operator()(Dropout& op) const { each(op.elements); }
  void operator()(SelectToken& op) const { each(op.elements, op.averaged); }
  void operator()(UnitLength& op) const { each(op.rows, op.width); }
  void operator()(RepeatedRow& op) const { each(op.rows, op.width); }
  void operator()(SimilarityLogits& op) const { each(op.texts, op.images, op.width); }
  void operator()(Scale& op) const {
    each(op.elements);
    heads(op.part);
  }
  void operator()(AltUpStep& op) const { each(op.streams, op.rows, op.width); }
  void operator()(TrainedScale& op) const { each(op.rows, op.width); }
  void operator()(TimestepFeatures& op) const { each(op.batch, op.frequencies); }
  void operator()(TrainedShift& op) const { each(op.rows, op.width); }
  void operator()(Modulation& op) const { each(op.batch, op.tokens, op.width); }
  void operator()(SequenceRows& op) const { each(op.batch, op.first, op.tokens, op.width); }
  void operator()(SoftCap& op) const { each(op.elements); }
  void operator()(CrossEntropy& op) const { each(op.rows, op.classes); }
  void operator()(Collective& op) const {
    each(op.bytes);
    if (!op.squares) return;
    each(op.squares->rows, op.squares->first, op.squares->width, op.squares->row_width);
  }

 private:
  template <class... Exprs>
  void each(Exprs&... exprs) const {
    ((exprs = change_(exprs)), ...);
  }

  void heads(HeadRows& rows) const {
    each(rows.rows, rows.row_width, rows.first, rows.heads, rows.head_dim);
  }

  void shape(AttentionShape& shape) const {
    each(shape.batch, shape.heads, shape.kv_heads, shape.head_dim, shape.value_head_dim,
         shape.queries, shape.keys, shape.image_pairs, shape.block, shape.global_keys);
  }

  const std::function<Expr(const Expr&)>& change_;
};

}  // namespace

Op map_exprs(Op op, const std::function<Expr(const Expr&)>& change) {
  std::visit(ExprMapper(change), op);
  return op;
}

bool mentions_divided(const Expr& expr) noexcept {
  return std::ranges::any_of(kDividedSizes, [&](Symbol symbol) { return expr.degree(symbol) > 0; });
}

bool mentions_divided(const Op& op) {
  bool divided = false;
  const std::function<Expr(const Expr&)> look = [&](const Expr& expr) {
    divided = divided || mentions_divided(expr);
    return expr;
  };
  static_cast<void>(map_exprs(op, look));
  return divided;
}

}  // namespace headroom::detail
