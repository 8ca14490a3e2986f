// Self-attention: softmax (eager or fused) and linear, with or without a KV-cache.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "builder.h"

namespace headroom::detail {

AttentionParts self_attention_parts() {
  return {"attention",
          Part::attention_kv_cache,
          Part::attention_scores,
          Part::attention_softmax,
          Part::attention_context,
          Part::attention_core,
          Part::attention_out};
}

namespace {

/// Images differ in length, so the scores of a tower's heads are rows of all its pairs.
std::vector<Expr> score_shape(const AttentionShape& shape) {
  if (!shape.image_pairs.is_zero()) return {shape.heads, shape.image_pairs};
  return {shape.batch, shape.heads, shape.queries, shape.keys};
}

bool is_windowed(const AttentionSpec& attention) {
  return attention.window.kind != WindowKind::none;
}

/// Returns whether attention runs in one kernel. Transient global tokens have none.
bool is_fused(const AttentionSpec& attention, const GraphOptions& options) {
  return options.attention == AttentionImplementation::fused && attention.global_block_size == 0;
}

/// Tokens of a block of attention, where the reference code's eager kernels attend in blocks.
std::optional<Expr> eager_block(const AttentionSpec& attention, const GraphOptions& options) {
  if (attention.block_size == 0 || is_fused(attention, options)) return std::nullopt;
  return Integer{attention.block_size};
}

/// `shape` in blocks: those of LongT5, or Longformer's chunks with its global tokens.
AttentionShape in_blocks(AttentionShape shape, const Expr& block, const AttentionSpec& attention,
                         const GraphOptions& options) {
  shape.block = block;
  if (!attention.global) {
    shape.queries = Symbol::encoder_block_tokens;
    shape.keys = Integer{3} * block;
    return shape;
  }
  shape.block_keys = BlockKeys::window;
  if (options.global == GlobalTokens::present) shape.global_keys = Symbol::global_tokens;
  shape.queries = Symbol::chunked_tokens;
  shape.keys = shape.global_keys + Integer{2} * block + Integer{1};
  return shape;
}

/// Sizes of one kernel, which skips the keys of earlier chunks that a cache still holds.
AttentionShape in_one_kernel(AttentionShape shape, const AttentionSpec& attention, KeySource keys) {
  const bool skips = keys == KeySource::cache && attention.window.kind == WindowKind::chunked;
  if (skips) shape.keys = Symbol::chunk_keys;
  return shape;
}

/// K and V in rows of all three projections, or of their own.
HeadRows key_value_rows(const StackContext& stack, const std::vector<TensorId>& projected) {
  const HeadSizes& heads = stack.heads;
  const Expr width = heads.key_width() + heads.value_width();
  if (projected.size() > 1) return {stack.rows(), width, {}, Integer{1}, width};
  return {stack.rows(), heads.row_width(), heads.query_width(), Integer{1}, width};
}

}  // namespace

Expr GraphBuilder::unmasked_pairs(const StackContext& stack, const AttentionSpec& attention,
                                  const AttentionShape& shape) const {
  const bool whole_prompt =
      attention.lookahead == Lookahead::prompt && options_.phase == Phase::prefill;
  if (whole_prompt) return shape.pairs();
  if (is_windowed(attention)) {
    return stack.role == StackRole::encoder ? Symbol::encoder_windowed_pairs
                                            : Symbol::windowed_pairs;
  }
  if (!attention.causal) return shape.pairs();
  const bool ahead = sees_later_image(attention.lookahead) && reads_images();
  return Expr(Symbol::visible_pairs) + (ahead ? Expr(Symbol::later_image_pairs) : Expr());
}

Expr GraphBuilder::cached_keys(const AttentionSpec& attention) {
  return is_windowed(attention) ? Symbol::windowed_keys : Symbol::visible_keys;
}

void GraphBuilder::relative_position_bias(const StackContext& stack) {
  const Expr heads =
      sized(Symbol::num_attention_heads, stack.spec->self_attention.num_attention_heads);
  const bool cached = stack.keys == KeySource::cache;
  RelativePositionBias op{heads, stack.tokens, cached ? Expr(Symbol::visible_keys) : stack.tokens};
  if (const auto block = eager_block(stack.spec->self_attention, options_)) {
    op.queries = *block;
    op.keys = Integer{3} * *block;
    op.first_query = *block;
  }
  const auto table = [&](const char* path) {
    return weight(Part::relative_position_bias, path,
                  {Symbol::relative_attention_num_buckets, heads},
                  WeightRole::relative_position_bias);
  };
  std::vector<WeightId> tables{table("relative_attention_bias.weight")};
  std::vector<Expr> shape{heads, op.queries, op.keys};
  if (stack.spec->self_attention.global_block_size > 0) {
    op = with_transient_global_tokens(std::move(op));
    tables.push_back(table("global_relative_attention_bias.weight"));
    shape = {op.batch, heads, op.queries, op.keys};
  }
  position_bias_ = emit(Part::relative_position_bias, "relative_attention_bias", std::move(op), {},
                        std::move(tables), std::move(shape));
}

TensorId GraphBuilder::self_attention(const StackContext& stack, TensorId hidden) {
  const AttentionSpec& attention = *stack.attention;
  if (attention.latent) return latent_attention(stack, hidden);
  if (attention.query_rank > 0) return factorised_attention(stack, hidden);
  if (attention.shared_key_value) return shared_key_value_attention(stack, hidden);
  if (attention.global_block_size > 0) return transient_global_attention(stack, hidden);
  switch (attention.kind) {
    case AttentionKind::gated_delta:
      return gated_delta(stack, hidden);
    case AttentionKind::short_convolution:
      return gated_convolution(stack, hidden);
    case AttentionKind::state_space:
      return state_space(stack, hidden);
    case AttentionKind::gated_recurrence:
      return gated_recurrence(stack, hidden);
    case AttentionKind::weighted_key_value:
      return weighted_key_value(stack, hidden);
    case AttentionKind::time_mix:
      return time_mix(stack, hidden);
    case AttentionKind::matrix:
      return linear({Part::attention_out,
                     "attention.matrix",
                     WeightRole::attention,
                     stack.rows(),
                     Symbol::hidden_size,
                     {{"attention.matrix", Symbol::hidden_size}}},
                    hidden, hidden_shape(stack));
    case AttentionKind::none:
      return hidden;
    case AttentionKind::softmax:
    case AttentionKind::linear:
      break;
  }
  if (!attention.state_space) return attention_of_heads(stack, hidden);
  const TensorId scanned = state_space(stack, hidden);
  return emit_in_place(Part::residual, "mixer.sum", ResidualAdd{stack.rows() * Symbol::hidden_size},
                       {scanned, attention_of_heads(stack, hidden)});
}

TensorId GraphBuilder::attention_of_heads(const StackContext& stack, TensorId hidden) {
  const AttentionSpec& attention = *stack.attention;
  hidden = scaled(Part::attention_qkv, "attention.input.scale", attention.input_multiplier, hidden);
  const HeadSizes& heads = stack.heads;
  std::optional<TensorId> choice;
  if (attention.indexer) choice = index_blocks(stack, hidden);
  TensorId qkv = project_heads(stack, hidden);
  const AttentionParts parts = self_attention_parts();
  if (attention.kind == AttentionKind::linear) {
    return attention_output(stack, parts, attention, heads.context_width(),
                            linear_attention(stack, qkv));
  }
  qkv = value_norm(stack, scaled_keys_and_values(stack, qkv));
  const TensorId rotated = apply_rope_and_norm(stack, qkv);
  AttentionOperands operands = attention.shares_key_values ? shared_operands(stack, rotated)
                                                           : cached_operands(stack, rotated);
  if (choice) read_chosen_keys(*choice, operands);
  if (const auto block = eager_block(attention, options_)) {
    operands.shape = in_blocks(operands.shape, *block, attention, options_);
  }
  if (!attention.shares_key_values) key_values_[attention.window.kind] = operands;
  if (attention.disentangled) position_bias_ = disentangled_bias(stack, rotated);
  if (attention.transformer_xl) position_bias_ = transformer_xl_bias(stack, rotated);
  if (attention.gates_position_bias) position_bias_ = gated_position_bias(stack, hidden);
  TensorId context = softmax_attention(stack, parts, attention, operands);
  if (attention.global) context = global_attention(stack, hidden, context);
  context = gated_context(stack, hidden, context);
  if (const auto& norm_spec = attention.context_norm) {
    const Norm own{*norm_spec, stack.rows(), heads.context_width(), {}};
    context = norm(*norm_spec, "attention.context_norm", own, context);
  }
  const TensorId out = attention_output(stack, parts, attention, heads.context_width(), context);
  return scaled(Part::attention_out, "attention.out.scale", attention.output_multiplier, out);
}

TensorId GraphBuilder::project_heads(const StackContext& stack, TensorId hidden) {
  const AttentionSpec& attention = *stack.attention;
  const HeadSizes& heads = stack.heads;
  const Expr input_width = graph_.tensors[hidden].shape.back();
  const auto key_bias = attention.key_bias ? Projection::Bias::of_linear : Projection::Bias::none;
  LinearParts projections{Part::attention_qkv,   "attention.qkv",
                          WeightRole::attention, stack.rows(),
                          input_width,           {{"attention.query", heads.query_width()}},
                          attention.qkv_bias};
  Expr width = heads.query_width();
  if (!attention.shares_key_values) {
    projections.projections.push_back({"attention.key", heads.key_width(), key_bias});
    width += heads.key_width();
  }
  if (!attention.shares_key_values && !attention.value_is_key) {
    projections.projections.push_back({"attention.value", heads.value_width()});
    width += heads.value_width();
  }
  const TensorId projected = linear(projections, hidden, {kBatch, stack.tokens, width});
  return stack.spec->shared_block ? adapted_heads(stack, projected, hidden) : projected;
}

TensorId GraphBuilder::scaled_keys_and_values(const StackContext& stack, TensorId qkv) {
  const AttentionSpec& attention = *stack.attention;
  const HeadSizes& heads = stack.heads;
  const auto scale = [&](const char* path, double factor, const HeadRows& rows) {
    if (factor == 1 || attention.shares_key_values) return;
    qkv = emit_in_place(Part::attention_qkv, path, Scale{rows.elements(), factor, rows}, {qkv});
  };
  scale("attention.key.scale", attention.key_multiplier,
        {stack.rows(), heads.row_width(), heads.query_width(), heads.kv_heads, heads.head_dim});
  scale("attention.value.scale", attention.value_multiplier,
        {stack.rows(), heads.row_width(), heads.query_width() + heads.key_width(), heads.kv_heads,
         heads.value_head_dim});
  return qkv;
}

TensorId GraphBuilder::value_norm(const StackContext& stack, TensorId qkv) {
  const AttentionSpec& attention = *stack.attention;
  if (!attention.value_norm || attention.shares_key_values) return qkv;
  const HeadSizes& heads = stack.heads;
  const HeadRows rows{stack.rows(), heads.row_width(), heads.query_width() + heads.key_width(),
                      heads.kv_heads, heads.value_head_dim};
  const HeadNorm op{*attention.value_norm, QueryKeyNormScope::each_head, rows};
  if (!attention.value_is_key) {
    return emit_in_place(Part::attention_query_key_norm, "attention.value_norm", op, {qkv});
  }
  // Copies the keys, which makes room for the values.
  return emit(Part::attention_query_key_norm, "attention.value_norm", op, {qkv}, {},
              {kBatch, stack.tokens, heads.row_width()});
}

AttentionOperands GraphBuilder::shared_operands(const StackContext& stack, TensorId query) const {
  AttentionOperands operands = key_values_.at(stack.attention->window.kind);
  if (operands.keys == KeySource::cache) {
    operands.tensors.front() = query;
    return operands;
  }
  operands.tensors = {query, operands.tensors.front()};
  operands.keys = KeySource::cache;
  return operands;
}

TensorId GraphBuilder::gated_context(const StackContext& stack, TensorId input, TensorId context) {
  const ContextGate kind = stack.attention->output_gate;
  if (kind == ContextGate::none) return context;
  const bool is_sigmoid = kind == ContextGate::sigmoid || kind == ContextGate::sigmoid_of_head;
  const bool of_head =
      kind == ContextGate::sigmoid_of_head || kind == ContextGate::softplus_of_head;
  const Expr width = of_head ? stack.heads.heads : stack.heads.context_width();
  const LinearParts projection{Part::attention_gate,
                               "attention.gate",
                               WeightRole::attention,
                               stack.rows(),
                               graph_.tensors[input].shape.back(),
                               {{"attention.gate", width}},
                               kind == ContextGate::sigmoid && stack.attention->qkv_bias};
  const TensorId gate = linear(projection, input, {kBatch, stack.tokens, width});
  return emit_in_place(Part::attention_gate, "attention.gate.product",
                       OutputGate{is_sigmoid ? ActivationKind::sigmoid : ActivationKind::softplus,
                                  stack.rows() * stack.heads.context_width(),
                                  of_head ? stack.rows() * width : Expr()},
                       {context, gate});
}

TensorId GraphBuilder::apply_rope_and_norm(const StackContext& stack, TensorId qkv) {
  const AttentionSpec& attention = *stack.attention;
  HeadSizes heads = stack.heads;
  if (attention.shares_key_values) heads.kv_heads = {};
  const auto apply_norm = [&](QueryKeyNormPlace place) {
    const auto& norm = attention.query_key_norm;
    if (norm && norm->place == place) qkv = query_key_norm(stack, qkv);
  };
  apply_norm(QueryKeyNormPlace::before_rotary);
  if (attention.clip_qkv > 0) {
    qkv = emit_in_place(Part::attention_qkv, "attention.qkv.clip",
                        Clamp{stack.rows() * heads.row_width(), attention.clip_qkv}, {qkv});
  }
  qkv = apply_rope(stack, qkv);
  apply_norm(QueryKeyNormPlace::after_rotary);
  if (attention.temperature) {
    const HeadRows queries{stack.rows(), heads.row_width(), {}, heads.heads, heads.head_dim};
    qkv = emit_in_place(Part::attention_qkv, "attention.query.temperature",
                        TemperatureScale{queries, stack.tokens, *attention.temperature}, {qkv});
  }
  return qkv;
}

TensorId GraphBuilder::apply_rope(const StackContext& stack, TensorId qkv) {
  HeadSizes heads = stack.heads;
  if (stack.attention->shares_key_values) heads.kv_heads = {};
  return rotate_heads(
      stack, "attention.rotary",
      {stack.rows(), heads.row_width(), {}, heads.heads + heads.kv_heads, heads.head_dim}, qkv);
}

TensorId GraphBuilder::rotate_heads(const StackContext& stack, const std::string& path,
                                    HeadRows heads, TensorId input) {
  const AttentionSpec& attention = *stack.attention;
  if (!stack.position->is_rotary() || !attention.rotary) return input;
  const RopeSpec& rope = attention.rope ? *attention.rope : stack.position->rope;
  const Expr rotary_dim = rope.rotary_dim == 0 ? heads.head_dim : Expr(Integer{rope.rotary_dim});
  return emit_in_place(Part::attention_rotary, path,
                       Rotary{std::move(heads), {}, rotary_dim, stack.tokens, rope}, {input});
}

TensorId GraphBuilder::query_key_norm(const StackContext& stack, TensorId qkv) {
  const QueryKeyNormSpec& norm = *stack.attention->query_key_norm;
  HeadSizes sizes = stack.heads;
  if (stack.attention->shares_key_values) sizes.kv_heads = {};
  const auto apply_norm = [&](const std::string& path, const Expr& first, const Expr& heads) {
    std::vector<Expr> shape;
    switch (norm.scope) {
      case QueryKeyNormScope::each_head:
        shape = {sizes.head_dim};
        break;
      case QueryKeyNormScope::each_head_own_weight:
        shape = {heads, sizes.head_dim};
        break;
      case QueryKeyNormScope::all_heads:
        shape = {heads * sizes.head_dim};
        break;
    }
    const HeadRows rows{stack.rows(), sizes.row_width(), first, heads, sizes.head_dim};
    return emit_in_place(Part::attention_query_key_norm, path,
                         HeadNorm{norm.norm, norm.scope, rows}, {qkv},
                         norm_weights(norm.norm, Part::attention_query_key_norm, path, shape));
  };
  qkv = apply_norm("attention.query_norm", {}, sizes.heads);
  if (stack.attention->shares_key_values) return qkv;
  return apply_norm("attention.key_norm", sizes.query_width(), sizes.kv_heads);
}

AttentionOperands GraphBuilder::cached_operands(const StackContext& stack, TensorId qkv) {
  return cached_operands(stack, std::vector<TensorId>{qkv});
}

AttentionOperands GraphBuilder::cached_operands(const StackContext& stack,
                                                std::vector<TensorId> projected) {
  const AttentionSpec& attention = *stack.attention;
  const HeadSizes& heads = stack.heads;
  AttentionOperands operands{heads.shape(stack.tokens, stack.tokens), std::move(projected)};
  if (is_tower_) {
    const bool windowed = attention.image_scope == ImageScope::window;
    operands.shape.scope = attention.image_scope;
    operands.shape.image_pairs = windowed ? Symbol::image_window_pairs : Symbol::image_pairs;
  }
  if (attends_in_runs_) operands.shape.image_pairs = Symbol::audio_pairs;
  if (stack.keys == KeySource::projections) return operands;
  const Expr width = heads.key_width() + heads.value_width();
  const Expr keys = cached_keys(attention);
  const TensorId cache = key_value_cache(self_attention_parts(), keys, width);
  // A window of fewer keys than new tokens caches the last ones only.
  const bool drops = is_windowed(attention) && options_.phase == Phase::prefill;
  const Expr rows = drops ? kBatch * keys : stack.rows();
  const KvCacheAppend append{rows * width, key_value_rows(stack, operands.tensors), heads.kv_heads,
                             heads.head_dim, attention.window};
  TensorId& key_value = operands.tensors.back();
  key_value =
      emit_in_place(Part::attention_kv_cache, "attention.kv_cache", append, {key_value, cache});
  if (drops) return operands;
  operands.tensors = {operands.tensors.front(), cache};
  operands.keys = KeySource::cache;
  operands.shape.keys = keys;
  return operands;
}

TensorId GraphBuilder::key_value_cache(const AttentionParts& parts, const Expr& keys,
                                       const Expr& width) {
  return tensor(parts.path + ".kv_cache", {kBatch, keys, width}, ElementType::kv_cache);
}

TensorId GraphBuilder::softmax_attention(const StackContext& stack, const AttentionParts& parts,
                                         const AttentionSpec& attention,
                                         const AttentionOperands& operands) {
  const AttentionShape& shape = operands.shape;
  const bool is_self = parts.core == Part::attention_core;
  ScoreShaping shaping{ScoreBias::none, attention.scale, attention.fixed_scale, attention.soft_cap,
                       attention.sinks, attention.alibi, attention.window};
  if (attention.alibi.kind != AlibiKind::none) shaping.bias = ScoreBias::alibi;
  shaping.lookahead = attention.lookahead;
  if (position_bias_ && is_self) shaping.bias = ScoreBias::relative_position;
  const Masking masking = attention.causal ? Masking::causal : Masking::none;
  std::vector<TensorId> score_inputs = operands.tensors;
  if (shaping.bias == ScoreBias::relative_position) score_inputs.push_back(*position_bias_);
  if (operands.choice) {
    shaping.mask = KeyMask::indexer;
    score_inputs.push_back(*operands.choice);
  }
  std::vector<WeightId> sinks;
  if (attention.sinks) {
    sinks.push_back(
        weight(parts.softmax, parts.path + ".sinks", {shape.heads}, WeightRole::attention));
  }
  const std::vector<Expr> context_shape{kBatch, stack.tokens, shape.heads * shape.value_head_dim};
  if (is_fused(attention, options_)) {
    const Expr pairs = operands.pairs ? *operands.pairs : unmasked_pairs(stack, attention, shape);
    const FusedAttention op{in_one_kernel(shape, attention, operands.keys),
                            pairs,
                            operands.keys,
                            masking,
                            shaping,
                            operands.values};
    return emit(parts.core, parts.path + ".core", op, std::move(score_inputs), std::move(sinks),
                context_shape);
  }
  TensorId scores = emit(parts.scores, parts.path + ".scores",
                         AttentionScores{shape, operands.keys, masking, shaping, operands.values},
                         std::move(score_inputs), {}, score_shape(shape));
  scores =
      emit_in_place(parts.softmax, parts.path + ".softmax",
                    Softmax{shape.score_elements(), attention.softmax}, {scores}, std::move(sinks));
  scores = dropout(parts.path + ".probabilities.dropout", stack.spec->dropout.attention_probs,
                   scores, parts.softmax);
  std::vector<TensorId> context_inputs{scores};
  // Queries share a tensor with keys and values, or come first.
  const std::size_t first_value = operands.tensors.size() == 1 ? 0 : 1;
  std::ranges::copy(std::span(operands.tensors).subspan(first_value),
                    std::back_inserter(context_inputs));
  return emit(parts.context, parts.path + ".context",
              AttentionContext{shape, operands.keys, masking, operands.values},
              std::move(context_inputs), {}, context_shape);
}

TensorId GraphBuilder::linear_attention(const StackContext& stack, TensorId query_key_value) {
  const AttentionSpec& attention = *stack.attention;
  const HeadSizes& heads = stack.heads;
  const AttentionParts parts = self_attention_parts();
  const AttentionShape shape = heads.shape(stack.tokens, stack.tokens);
  const TensorId mapped = emit_in_place(
      Part::attention_feature_map, "attention.feature_map",
      FeatureMap{
          {stack.rows(), heads.row_width(), {}, heads.heads + heads.kv_heads, heads.head_dim},
          attention.feature_map},
      {query_key_value});
  std::vector<TensorId> operands{mapped};
  if (stack.keys == KeySource::cache) {
    // φ(K)ᵀ·V and Σφ(K) instead of keys and values.
    operands.push_back(
        tensor(parts.path + ".state",
               {kBatch, heads.heads, heads.head_dim, heads.value_head_dim + Integer{1}},
               ElementType::kv_cache));
  }
  const Masking masking = attention.causal ? Masking::causal : Masking::none;
  return emit(parts.core, "attention.core", LinearAttention{shape, stack.keys, masking},
              std::move(operands), {}, {kBatch, stack.tokens, heads.context_width()});
}

TensorId GraphBuilder::attention_output(const StackContext& stack, const AttentionParts& parts,
                                        const AttentionSpec& attention, const Expr& context_width,
                                        TensorId context) {
  if (!attention.output_projection) return context;
  const LinearParts out{parts.out,
                        parts.path + ".out",
                        WeightRole::attention,
                        stack.rows(),
                        context_width,
                        {{parts.path + ".output", Symbol::hidden_size}},
                        attention.output_bias};
  return linear(out, context, hidden_shape(stack));
}

}  // namespace headroom::detail
