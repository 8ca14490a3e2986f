// Transient global attention (LongT5, arXiv 2112.07916, section 3.1.2): every block of tokens
// leaves one global token, the norm of its sum, that all tokens see beside the blocks around their
// own. A layer projects them by its own keys and values.
#include <utility>

#include "builder.h"

namespace headroom::detail {
namespace {

const Expr kTransientTokens = Symbol::transient_global_tokens;

}  // namespace

RelativePositionBias GraphBuilder::with_transient_global_tokens(RelativePositionBias bias) {
  bias.batch = kBatch;
  bias.block = bias.queries;
  bias.queries = Symbol::encoder_block_tokens;
  bias.keys += kTransientTokens;
  bias.global_keys = kTransientTokens;
  return bias;
}

TensorId GraphBuilder::transient_global_tokens(const StackContext& stack, TensorId hidden) {
  const Expr width = Symbol::hidden_size;
  const GlobalRows op{GlobalRows::Kind::sum, kBatch, kTransientTokens, width, stack.tokens};
  const TensorId sums = emit(Part::attention_qkv, "attention.global_sums", op, {hidden}, {},
                             {kBatch, kTransientTokens, width});
  return norm(stack.spec->norm, "global_input_norm", kBatch * kTransientTokens, sums);
}

AttentionOperands GraphBuilder::transient_global_operands(const StackContext& stack,
                                                          TensorId hidden) {
  const HeadSizes& heads = stack.heads;
  const Expr width = heads.key_width() + heads.value_width();
  const TensorId queries = linear({Part::attention_qkv,
                                   "attention.query",
                                   WeightRole::attention,
                                   stack.rows(),
                                   Symbol::hidden_size,
                                   {{"attention.query", heads.query_width()}}},
                                  hidden, {kBatch, stack.tokens, heads.query_width()});
  const auto keys_and_values = [&](const char* path, const Expr& tokens, TensorId of) {
    return linear(
        {Part::attention_qkv,
         path,
         WeightRole::attention,
         kBatch * tokens,
         Symbol::hidden_size,
         {{"attention.key", heads.key_width()}, {"attention.value", heads.value_width()}}},
        of, {kBatch, tokens, width});
  };
  const TensorId local = keys_and_values("attention.key_value", stack.tokens, hidden);
  const TensorId global_tokens = transient_global_tokens(stack, hidden);
  const bool reuses = std::exchange(reuses_weights_, true);
  const TensorId global =
      keys_and_values("attention.global_key_value", kTransientTokens, global_tokens);
  reuses_weights_ = reuses;
  AttentionShape shape = heads.shape(stack.tokens, stack.tokens);
  shape.block = Integer{stack.attention->block_size};
  shape.block_keys = BlockKeys::three_blocks_and_global;
  shape.queries = Symbol::encoder_block_tokens;
  shape.global_keys = kTransientTokens;
  shape.keys = Integer{3} * shape.block + kTransientTokens;
  return {shape, {queries, local, global}};
}

TensorId GraphBuilder::transient_global_attention(const StackContext& stack, TensorId hidden) {
  const AttentionSpec& attention = *stack.attention;
  const AttentionParts parts = self_attention_parts();
  const TensorId context =
      softmax_attention(stack, parts, attention, transient_global_operands(stack, hidden));
  return attention_output(stack, parts, attention, stack.heads.context_width(), context);
}

}  // namespace headroom::detail
