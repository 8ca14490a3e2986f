// Self- and cross-attention: softmax (eager or fused) and linear, with or without a KV-cache.
#include "builder.h"

namespace headroom::detail {
namespace {

AttentionParts self_parts() {
  return {"attention",
          Part::attention_kv_cache,
          Part::attention_scores,
          Part::attention_softmax,
          Part::attention_context,
          Part::attention_core,
          Part::attention_out};
}

AttentionParts cross_parts() {
  return {"cross_attention",
          Part::cross_attention_kv_cache,
          Part::cross_attention_scores,
          Part::cross_attention_softmax,
          Part::cross_attention_context,
          Part::cross_attention_core,
          Part::cross_attention_out};
}

const Expr kBatch = Symbol::batch_size;
const Expr kQueryWidth = Expr(Symbol::num_attention_heads) * Symbol::head_dim;
const Expr kKeyWidth = Expr(Symbol::num_key_value_heads) * Symbol::head_dim;
const Expr kValueWidth = Expr(Symbol::num_key_value_heads) * Symbol::value_head_dim;
const Expr kContextWidth = Expr(Symbol::num_attention_heads) * Symbol::value_head_dim;

AttentionShape shape_of(const Expr& queries, const Expr& keys) {
  return {kBatch,
          Symbol::num_attention_heads,
          Symbol::num_key_value_heads,
          Symbol::head_dim,
          Symbol::value_head_dim,
          queries,
          keys};
}

Expr visible_pairs(const AttentionSpec& attention, const AttentionShape& shape) {
  return attention.causal ? Expr(Symbol::visible_pairs) : shape.queries * shape.keys;
}

}  // namespace

void GraphBuilder::relative_position_bias(const StackContext& stack) {
  const Expr heads = Symbol::num_attention_heads;
  const Expr keys = stack.keys == KeySource::cache ? Expr(Symbol::visible_keys) : stack.tokens;
  begin_block(stack.path, stack.role, Integer{1}, 0);
  const WeightId table =
      weight(Part::relative_position_bias, "relative_attention_bias.weight",
             {Symbol::relative_attention_num_buckets, heads}, WeightRole::relative_position_bias);
  position_bias_ = emit(Part::relative_position_bias, "relative_attention_bias",
                        RelativePositionBias{heads, stack.tokens, keys}, {}, {table},
                        {heads, stack.tokens, keys});
  end_block(*position_bias_);
}

TensorId GraphBuilder::self_attention(const StackContext& stack, TensorId hidden) {
  const AttentionSpec& attention = stack.spec->self_attention;
  const AttentionParts parts = self_parts();
  const Expr rows = kBatch * stack.tokens;
  const LinearParts projections{Part::attention_qkv,
                                "attention.qkv",
                                WeightRole::attention,
                                rows,
                                Symbol::hidden_size,
                                {{"attention.query", kQueryWidth},
                                 {"attention.key", kKeyWidth},
                                 {"attention.value", kValueWidth}},
                                attention.qkv_bias};
  TensorId qkv =
      linear(projections, hidden, {kBatch, stack.tokens, kQueryWidth + kKeyWidth + kValueWidth});
  if (attention.kind == AttentionKind::linear) {
    return attention_output(stack, parts, attention, linear_attention(stack, qkv));
  }
  if (spec_.position.kind == PositionKind::rotary) {
    qkv = emit_in_place(Part::attention_rotary, "attention.rotary",
                        Rotary{rows * (kQueryWidth + kKeyWidth), stack.tokens * Symbol::head_dim},
                        {qkv});
  }
  std::vector<TensorId> operands{qkv};
  Expr keys = stack.tokens;
  if (stack.keys == KeySource::cache) {
    keys = Symbol::visible_keys;
    const TensorId cache = key_value_cache(parts, attention, keys);
    operands = {emit_in_place(parts.kv_cache, "attention.kv_cache",
                              KvCacheAppend{rows * (kKeyWidth + kValueWidth)}, {qkv, cache}),
                cache};
  }
  const TensorId context = softmax_attention(stack, parts, attention, shape_of(stack.tokens, keys),
                                             stack.keys, std::move(operands));
  return attention_output(stack, parts, attention, context);
}

TensorId GraphBuilder::cross_attention(const StackContext& stack, TensorId hidden) {
  const AttentionSpec& attention = *stack.spec->cross_attention;
  const AttentionParts parts = cross_parts();
  const Expr source = Symbol::enc_seq_len;
  const LinearParts query{Part::cross_attention_query, "cross_attention.query",
                          WeightRole::attention,       kBatch * stack.tokens,
                          Symbol::hidden_size,         {{"cross_attention.query", kQueryWidth}},
                          attention.qkv_bias};
  const LinearParts key_value{
      Part::cross_attention_key_value,
      "cross_attention.key_value",
      WeightRole::attention,
      kBatch * source,
      Symbol::hidden_size,
      {{"cross_attention.key", kKeyWidth}, {"cross_attention.value", kValueWidth}},
      attention.qkv_bias};
  std::vector<TensorId> operands{linear(query, hidden, {kBatch, stack.tokens, kQueryWidth})};
  // Once the cache holds the encoder's keys and values, only their weights remain.
  const bool emit_nodes = std::exchange(emit_nodes_, options_.phase != Phase::decode);
  TensorId projected =
      linear(key_value, *encoder_output_, {kBatch, source, kKeyWidth + kValueWidth});
  const KeySource keys = training() ? KeySource::projections : KeySource::cache;
  if (keys == KeySource::cache) {
    const TensorId cache = key_value_cache(parts, attention, source);
    emit_in_place(parts.kv_cache, "cross_attention.kv_cache",
                  KvCacheAppend{kBatch * source * (kKeyWidth + kValueWidth)}, {projected, cache});
    projected = cache;
  }
  emit_nodes_ = emit_nodes;
  operands.push_back(projected);
  const TensorId context = softmax_attention(
      stack, parts, attention, shape_of(stack.tokens, source), keys, std::move(operands));
  return attention_output(stack, parts, attention, context);
}

TensorId GraphBuilder::key_value_cache(const AttentionParts& parts, const AttentionSpec& attention,
                                       const Expr& keys) {
  const bool is_state = attention.kind == AttentionKind::linear;
  // Linear attention holds φ(K)ᵀ·V and Σφ(K) in the place of keys and values.
  std::vector<Expr> shape =
      is_state ? std::vector<Expr>{kBatch, Symbol::num_attention_heads, Symbol::head_dim,
                                   Expr(Symbol::value_head_dim) + Integer{1}}
               : std::vector<Expr>{kBatch, keys, kKeyWidth + kValueWidth};
  return tensor(parts.path + (is_state ? ".state" : ".kv_cache"), std::move(shape),
                ElementType::kv_cache);
}

TensorId GraphBuilder::softmax_attention(const StackContext& stack, const AttentionParts& parts,
                                         const AttentionSpec& attention,
                                         const AttentionShape& shape, KeySource keys,
                                         std::vector<TensorId> query_key_value) {
  const bool biased = position_bias_ && parts.core == Part::attention_core;
  const ScoreBias bias = biased ? ScoreBias::relative_position : ScoreBias::none;
  const Masking masking = attention.causal ? Masking::causal : Masking::none;
  std::vector<TensorId> score_inputs = query_key_value;
  if (biased) score_inputs.push_back(*position_bias_);
  const std::vector<Expr> context_shape{kBatch, stack.tokens, kContextWidth};
  if (options_.attention == AttentionImplementation::fused) {
    const FusedAttention op{shape,          visible_pairs(attention, shape), keys, masking, bias,
                            attention.scale};
    return emit(parts.core, parts.path + ".core", op, std::move(score_inputs), {}, context_shape);
  }
  TensorId scores =
      emit(parts.scores, parts.path + ".scores",
           AttentionScores{shape, keys, masking, bias, attention.scale}, std::move(score_inputs),
           {}, {kBatch, Symbol::num_attention_heads, shape.queries, shape.keys});
  scores = emit_in_place(parts.softmax, parts.path + ".softmax",
                         Softmax{shape.score_elements(), attention.softmax}, {scores});
  scores = dropout(parts.path + ".probabilities.dropout", stack.spec->dropout.attention_probs,
                   scores, parts.softmax);
  return emit(parts.context, parts.path + ".context", AttentionContext{shape, keys, masking},
              {scores, query_key_value.back()}, {}, context_shape);
}

TensorId GraphBuilder::linear_attention(const StackContext& stack, TensorId query_key_value) {
  const AttentionSpec& attention = stack.spec->self_attention;
  const AttentionParts parts = self_parts();
  const AttentionShape shape = shape_of(stack.tokens, stack.tokens);
  const TensorId mapped =
      emit_in_place(Part::attention_feature_map, "attention.feature_map",
                    FeatureMap{shape.query_elements() + shape.key_elements()}, {query_key_value});
  std::vector<TensorId> operands{mapped};
  if (stack.keys == KeySource::cache) {
    operands.push_back(key_value_cache(parts, attention, stack.tokens));
  }
  const Masking masking = attention.causal ? Masking::causal : Masking::none;
  return emit(parts.core, "attention.core", LinearAttention{shape, stack.keys, masking},
              std::move(operands), {}, {kBatch, stack.tokens, kContextWidth});
}

TensorId GraphBuilder::attention_output(const StackContext& stack, const AttentionParts& parts,
                                        const AttentionSpec& attention, TensorId context) {
  const LinearParts out{parts.out,
                        parts.path + ".out",
                        WeightRole::attention,
                        kBatch * stack.tokens,
                        kContextWidth,
                        {{parts.path + ".output", Symbol::hidden_size}},
                        attention.output_bias};
  return linear(out, context, hidden_shape(stack));
}

}  // namespace headroom::detail
