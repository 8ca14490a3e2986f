// Cross-attention: queries of one sequence, keys and values of another.
#include <utility>

#include "builder.h"

namespace headroom::detail {

AttentionParts cross_attention_parts() {
  return {"cross_attention",
          Part::cross_attention_kv_cache,
          Part::cross_attention_scores,
          Part::cross_attention_softmax,
          Part::cross_attention_context,
          Part::cross_attention_core,
          Part::cross_attention_out};
}

TensorId GraphBuilder::cross_attention(const StackContext& stack, TensorId hidden) {
  const AttentionSpec& attention = *stack.spec->cross_attention;
  const HeadSizes heads = head_sizes(attention);
  const AttentionParts parts = cross_attention_parts();
  const Expr source = Symbol::enc_seq_len;
  const LinearParts query{
      Part::cross_attention_query, "cross_attention.query",
      WeightRole::attention,       stack.rows(),
      Symbol::hidden_size,         {{"cross_attention.query", heads.query_width()}},
      attention.qkv_bias};
  const Expr source_width = sized(Symbol::hidden_size, spec_.encoder_width());
  const auto key_bias = attention.key_bias ? Projection::Bias::of_linear : Projection::Bias::none;
  const LinearParts key_value{Part::cross_attention_key_value,
                              "cross_attention.key_value",
                              WeightRole::attention,
                              kBatch * source,
                              source_width,
                              {{"cross_attention.key", heads.key_width(), key_bias},
                               {"cross_attention.value", heads.value_width()}},
                              attention.qkv_bias};
  // A single layer and a denoising step recompute their keys and values in every pass.
  const bool cached = !training() && spec_.kind != ModelKind::cross_attention_layer &&
                      spec_.kind != ModelKind::denoiser;
  const TensorId queries = linear(query, hidden, {kBatch, stack.tokens, heads.query_width()});
  const HeadRows query_rows{stack.rows(), heads.query_width(), {}, heads.heads, heads.head_dim};
  AttentionOperands operands{
      heads.shape(stack.tokens, source),
      {cross_attention_norm(attention, "cross_attention.query_norm", query_rows, queries)},
      cached ? KeySource::cache : KeySource::projections};
  // In decode the cache already contains the encoder's keys and values; only weights are added.
  const bool emit_nodes =
      std::exchange(emit_nodes_, emit_nodes_ && options_.phase != Phase::decode);
  const Expr width = heads.key_width() + heads.value_width();
  TensorId projected = linear(key_value, *encoder_output_, {kBatch, source, width});
  projected =
      cross_attention_norm(attention, "cross_attention.key_norm",
                           {kBatch * source, width, {}, heads.kv_heads, heads.head_dim}, projected);
  if (operands.keys == KeySource::cache) {
    const TensorId cache = key_value_cache(parts, source, width);
    const Expr rows = kBatch * source;
    const KvCacheAppend append{
        rows * width, {rows, width, {}, Integer{1}, width}, heads.kv_heads, heads.head_dim, {}};
    emit_in_place(parts.kv_cache, "cross_attention.kv_cache", append, {projected, cache});
    projected = cache;
  }
  emit_nodes_ = emit_nodes;
  operands.tensors.push_back(projected);
  TensorId context = softmax_attention(stack, parts, attention, operands);
  if (reference_image_) context = add_reference_image(stack, operands.tensors.front(), context);
  return attention_output(stack, parts, attention, heads.context_width(), context);
}

TensorId GraphBuilder::cross_attention_norm(const AttentionSpec& attention, const std::string& path,
                                            const HeadRows& rows, TensorId projected) {
  const auto& norm = attention.query_key_norm;
  if (!norm) return projected;
  const bool together = norm->scope == QueryKeyNormScope::all_heads;
  const Expr width = together ? rows.heads * rows.head_dim : rows.head_dim;
  return emit_in_place(Part::attention_query_key_norm, path,
                       HeadNorm{norm->norm, norm->scope, rows}, {projected},
                       norm_weights(norm->norm, Part::attention_query_key_norm, path, {width}));
}

}  // namespace headroom::detail
