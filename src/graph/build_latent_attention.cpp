// Multi-head latent attention (arXiv 2405.04434, section 2.1): naive, with keys and values expanded
// for every head, or absorbed, with queries and contexts projected into and out of the latent
// space.
#include <cmath>

#include "builder.h"

namespace headroom::detail {
namespace {

const Expr kLatent = Symbol::kv_lora_rank;

/// Fixes the softmax scale to that of the original heads, since latent vectors are wider.
AttentionSpec with_scale_of_heads(AttentionSpec attention) {
  if (attention.scale == AttentionScale::inverse_sqrt_head_dim) {
    attention.scale = AttentionScale::fixed;
    attention.fixed_scale = 1 / std::sqrt(static_cast<double>(attention.head_dim));
  }
  return attention;
}

NormSpec norm_of_latents(const StackContext& stack) {
  NormSpec spec = stack.spec->norm;
  spec.eps = stack.attention->latent->norm_eps;
  return spec;
}

std::size_t emitted(const Graph& graph) {
  return graph.blocks.empty() ? 0 : graph.blocks.back().nodes.size();
}

/// The first tensor that the last operator read.
TensorId input_of_last(const Graph& graph) {
  return graph.blocks.back().nodes.back().inputs.front();
}

/// Marks the operators emitted since there were `first`: norms as such, the others as `others`.
void mark(Graph& graph, std::size_t first, LatentStep others) {
  for (std::size_t i = first; i < emitted(graph); ++i) {
    Node& node = graph.blocks.back().nodes[i];
    node.latent_step = std::holds_alternative<Norm>(node.op) ? LatentStep::norm : others;
  }
}

}  // namespace

TensorId GraphBuilder::latent_attention(const StackContext& stack, TensorId hidden) {
  const LatentAttentionSpec& latent = *stack.attention->latent;
  TensorId compressed = hidden;
  TensorId before_norm = hidden;
  if (latent.q_lora_rank > 0) {
    const std::size_t down = emitted(graph_);
    compressed = compressed_queries(stack, hidden, latent.q_lora_rank,
                                    latent.bias ? LinearBias::present : LinearBias::absent,
                                    norm_of_latents(stack));
    before_norm = input_of_last(graph_);
    mark(graph_, down, LatentStep::none);
  }
  const std::optional<TensorId> choice = key_choice(stack, hidden, compressed);
  TensorId gate_input = hidden;
  if (latent.rereads_queries) {
    const Expr width = Symbol::q_lora_rank;
    compressed =
        emit(Part::attention_qkv, "attention.query_a.both", Concatenate{stack.rows(), width, width},
             {compressed, before_norm}, {}, {kBatch, stack.tokens, Integer{2} * width});
    gate_input = compressed;
  }
  const std::size_t expansion = emitted(graph_);
  const TensorId queries = latent_queries(stack, compressed);
  mark(graph_, expansion, LatentStep::expansion);
  const std::size_t keys = emitted(graph_);
  const bool shares = stack.attention->shares_key_values;
  const bool rotary = stack.attention->rotary;
  if (!shares) latents_[rotary] = latent_keys(stack, hidden);
  mark(graph_, keys, LatentStep::none);
  const bool caches =
      options_.latent == LatentAttention::absorbed && stack.keys != KeySource::projections;
  if (caches && !shares) append_latents(stack);
  // Without a past, expanding the new tokens costs less than attention in the latent space.
  const TensorId context =
      caches && options_.phase == Phase::decode
          ? absorbed_attention(stack, queries, latent_caches_.at(rotary), choice)
          : expanded_attention(stack, queries, latents_.at(rotary), choice);
  return attention_output(stack, self_attention_parts(), *stack.attention,
                          stack.heads.context_width(), gated_context(stack, gate_input, context));
}

void GraphBuilder::append_latents(const StackContext& stack) {
  const bool rotary = stack.attention->rotary;
  const Expr width = kLatent + stack.heads.rope;
  const TensorId cache = key_value_cache(self_attention_parts(), Symbol::visible_keys, width);
  const KvCacheAppend append{
      stack.rows() * width, {stack.rows(), width, {}, Integer{1}, width}, Integer{1}, width, {}};
  latent_caches_[rotary] = cache;
  latents_[rotary] = emit_in_place(Part::attention_kv_cache, "attention.kv_cache", append,
                                   {latents_.at(rotary), cache});
}

TensorId GraphBuilder::compressed_queries(const StackContext& stack, TensorId hidden,
                                          std::int64_t rank, LinearBias bias,
                                          const NormSpec& spec) {
  const Expr width = sized(Symbol::q_lora_rank, rank);
  const LinearParts down{Part::attention_qkv,        "attention.query_a",
                         WeightRole::attention,      stack.rows(),
                         Symbol::hidden_size,        {{"attention.query_a", width}},
                         bias == LinearBias::present};
  const TensorId compressed = linear(down, hidden, {kBatch, stack.tokens, width});
  return norm(spec, "attention.query_a_norm", Norm{spec, stack.rows(), width, {}}, compressed);
}

TensorId GraphBuilder::latent_queries(const StackContext& stack, TensorId compressed) {
  const AttentionSpec& attention = *stack.attention;
  const HeadSizes& heads = stack.heads;
  TensorId queries = project(
      stack, Part::attention_qkv, {"attention.query", heads.query_width()}, WeightRole::attention,
      attention.qkv_bias ? LinearBias::present : LinearBias::absent, compressed);
  const HeadRows rows{stack.rows(), heads.query_width(), {}, heads.heads, heads.head_dim};
  if (attention.rotary) {
    const Rotary rotary{rows, heads.nope, heads.rope, stack.tokens, stack.position->rope};
    queries = emit_in_place(Part::attention_rotary, "attention.query.rotary", rotary, {queries});
  }
  if (!attention.temperature) return queries;
  return scaled_queries({rows, stack.tokens, *attention.temperature}, Part::attention_qkv,
                        "attention.query.temperature", queries);
}

TensorId GraphBuilder::latent_keys(const StackContext& stack, TensorId hidden) {
  const Expr width = kLatent + stack.heads.rope;
  const LinearParts down{Part::attention_qkv,          "attention.key_value_a",
                         WeightRole::attention,        stack.rows(),
                         Symbol::hidden_size,          {{"attention.key_value_a", width}},
                         stack.attention->latent->bias};
  TensorId latents = linear(down, hidden, {kBatch, stack.tokens, width});
  const NormSpec spec = norm_of_latents(stack);
  latents =
      norm(spec, "attention.key_value_a_norm", Norm{spec, stack.rows(), kLatent, width}, latents);
  if (!stack.attention->rotary) return latents;
  const Rotary rotary{{stack.rows(), width, kLatent, Integer{1}, stack.heads.rope},
                      {},
                      stack.heads.rope,
                      stack.tokens,
                      stack.position->rope};
  return emit_in_place(Part::attention_rotary, "attention.key.rotary", rotary, {latents});
}

TensorId GraphBuilder::expanded_attention(const StackContext& stack, TensorId queries,
                                          TensorId latents, std::optional<TensorId> choice) {
  const AttentionSpec& attention = *stack.attention;
  const HeadSizes& heads = stack.heads;
  const Expr expanded = heads.heads * (stack.heads.nope + heads.value_head_dim);
  const LinearParts up{Part::attention_qkv,
                       "attention.key_value",
                       WeightRole::attention,
                       stack.rows(),
                       kLatent,
                       {{"attention.key_value", expanded}},
                       false,
                       kLatent + stack.heads.rope};
  const std::size_t expansion = emitted(graph_);
  const TensorId key_value = linear(up, latents, {kBatch, stack.tokens, expanded});
  const LatentConcat concat{stack.rows(),     heads.heads,          stack.heads.nope,
                            stack.heads.rope, heads.value_head_dim, kLatent};
  const TensorId qkv =
      emit(Part::attention_qkv, "attention.qkv", concat, {queries, key_value, latents}, {},
           {kBatch, stack.tokens, heads.row_width()});
  mark(graph_, expansion, LatentStep::expansion);
  StackContext context = stack;
  if (options_.latent == LatentAttention::absorbed) context.keys = KeySource::projections;
  AttentionOperands operands = cached_operands(context, qkv);
  if (choice) read_chosen_keys(*choice, operands);
  return softmax_attention(stack, self_attention_parts(), attention, operands);
}

TensorId GraphBuilder::absorbed_attention(const StackContext& stack, TensorId queries,
                                          TensorId cache, std::optional<TensorId> choice) {
  const AttentionSpec attention = with_scale_of_heads(*stack.attention);
  const HeadSizes& heads = stack.heads;
  const Expr expanded = heads.heads * (stack.heads.nope + heads.value_head_dim);
  const Expr latent_width = heads.heads * (kLatent + stack.heads.rope);
  const WeightId expansion = weight(Part::attention_qkv, "attention.key_value.weight",
                                    {expanded, kLatent}, WeightRole::attention);
  using Direction = HeadLinear::Direction;
  const TensorId latent_queries =
      emit(Part::attention_qkv, "attention.query.absorbed",
           HeadLinear{Direction::query_to_latent, stack.rows(), heads.heads, stack.heads.nope,
                      kLatent, stack.heads.rope},
           {queries}, {expansion}, {kBatch, stack.tokens, latent_width});
  AttentionOperands operands{{kBatch, heads.heads, Integer{1}, kLatent + stack.heads.rope, kLatent,
                              stack.tokens, Symbol::visible_keys},
                             {latent_queries, cache},
                             KeySource::cache,
                             ValuePlace::inside_keys};
  if (choice) read_chosen_keys(*choice, operands);
  const TensorId latent_context =
      softmax_attention(stack, self_attention_parts(), attention, operands);
  return emit(Part::attention_out, "attention.context.expanded",
              HeadLinear{Direction::context_from_latent,
                         stack.rows(),
                         heads.heads,
                         kLatent,
                         heads.value_head_dim,
                         {}},
              {latent_context}, {expansion}, {kBatch, stack.tokens, heads.context_width()});
}

}  // namespace headroom::detail
