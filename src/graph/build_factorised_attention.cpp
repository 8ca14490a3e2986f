// Multi-matrix factorisation attention (MFA, arXiv 2412.19255, section 3): queries of low rank, and
// keys and values of few heads. Source of the order: vLLM, step3_text.py, Step3TextAttention.
#include "builder.h"

namespace headroom::detail {

TensorId GraphBuilder::factorised_attention(const StackContext& stack, TensorId hidden) {
  const AttentionSpec& attention = *stack.attention;
  const HeadSizes& heads = stack.heads;
  const Expr width = heads.key_width() + heads.value_width();
  const TensorId compressed =
      compressed_queries(stack, hidden, attention.query_rank, LinearBias::absent, stack.spec->norm);
  TensorId queries = project(stack, Part::attention_qkv, {"attention.query", heads.query_width()},
                             WeightRole::attention, LinearBias::absent, compressed);
  queries =
      rotate_heads(stack, "attention.query.rotary",
                   {stack.rows(), heads.query_width(), {}, heads.heads, heads.head_dim}, queries);
  const LinearParts projection{
      Part::attention_qkv,
      "attention.key_value",
      WeightRole::attention,
      stack.rows(),
      Symbol::hidden_size,
      {{"attention.key", heads.key_width()}, {"attention.value", heads.value_width()}}};
  TensorId key_value = linear(projection, hidden, {kBatch, stack.tokens, width});
  key_value = rotate_heads(stack, "attention.key.rotary",
                           {stack.rows(), width, {}, heads.kv_heads, heads.head_dim}, key_value);
  const AttentionParts parts = self_attention_parts();
  const TensorId context =
      softmax_attention(stack, parts, attention, cached_operands(stack, {queries, key_value}));
  return attention_output(stack, parts, attention, heads.context_width(), context);
}

}  // namespace headroom::detail
