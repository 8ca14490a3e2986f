// Global attention of some tokens (Longformer): queries, keys and values of their own, all tokens
// as keys; the results replace those tokens' rows of the local attention.
#include <utility>

#include "builder.h"
#include "headroom/error.h"

namespace headroom::detail {
namespace {

constexpr const char* kPath = "attention.global";
const Expr kTokens = Symbol::global_tokens;

}  // namespace

AttentionOperands GraphBuilder::global_operands(const StackContext& stack, TensorId hidden) {
  const HeadSizes& heads = stack.heads;
  const Expr width = heads.key_width() + heads.value_width();
  const bool bias = stack.attention->qkv_bias;
  const TensorId chosen =
      emit(Part::attention_qkv, "attention.global_tokens",
           GlobalRows{GlobalRows::Kind::gather, kBatch, kTokens, Symbol::hidden_size}, {hidden}, {},
           {kBatch, kTokens, Symbol::hidden_size});
  const TensorId queries = linear({Part::attention_qkv,
                                   "attention.global_query",
                                   WeightRole::attention,
                                   kBatch * kTokens,
                                   Symbol::hidden_size,
                                   {{"attention.global_query", heads.query_width()}},
                                   bias},
                                  chosen, {kBatch, kTokens, heads.query_width()});
  const TensorId key_values = linear({Part::attention_qkv,
                                      "attention.global_key_value",
                                      WeightRole::attention,
                                      stack.rows(),
                                      Symbol::hidden_size,
                                      {{"attention.global_key", heads.key_width()},
                                       {"attention.global_value", heads.value_width()}},
                                      bias},
                                     hidden, {kBatch, stack.tokens, width});
  return {heads.shape(kTokens, stack.tokens), {queries, key_values}};
}

TensorId GraphBuilder::global_attention(const StackContext& stack, TensorId hidden,
                                        TensorId context) {
  const bool present = options_.global == GlobalTokens::present;
  if (present && options_.attention == AttentionImplementation::fused) {
    throw Error(ErrorCode::invalid_input, "tokens with global attention have no fused kernel",
                spec_.name, "use eager attention");
  }
  // Without such a token only the weights count.
  const bool emit_nodes = std::exchange(emit_nodes_, emit_nodes_ && present);
  const AttentionOperands operands = global_operands(stack, hidden);
  emit_nodes_ = emit_nodes;
  if (!present) return context;
  AttentionSpec every_token = *stack.attention;
  every_token.window = {};
  AttentionParts parts = self_attention_parts();
  parts.path = kPath;
  StackContext chosen = stack;
  chosen.tokens = kTokens;
  const TensorId rows = softmax_attention(chosen, parts, every_token, operands);
  const Expr width = stack.heads.context_width();
  return emit_in_place(Part::attention_context, "attention.global.rows",
                       GlobalRows{GlobalRows::Kind::scatter, kBatch, kTokens, width},
                       {context, rows});
}

}  // namespace headroom::detail
