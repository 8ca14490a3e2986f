// Attention of DeepSeek-V4: a window of tokens, and compressed keys of the tokens before it, all of
// them or those that an indexer chooses. One vector per token is key and value of all heads.
#include "builder.h"

namespace headroom::detail {
namespace {

const SharedKeyValueSpec& spec_of(const StackContext& stack) {
  return *stack.attention->shared_key_value;
}

/// Dimensions of a vector before those that rotate.
Expr before_rotary(const StackContext& stack, const Expr& width) {
  return width - Integer{spec_of(stack).rotary_dim};
}

CompressorParts compressor(const StackContext& stack, Part part, const std::string& path,
                           const Expr& width) {
  const KeyCompressionSpec& spec = *spec_of(stack).compression;
  if (stack.attention->indexer) {
    return {part, path, width, spec, Symbol::compressed_keys, Symbol::new_compressed_keys};
  }
  return {part,
          path,
          width,
          spec,
          Symbol::heavily_compressed_keys,
          Symbol::new_heavily_compressed_keys};
}

/// Elements of `[key | gate]` rows that later windows need, in rows of `2·width`: with overlap, one
/// half of the last complete window, and always the tokens since.
Expr open_rows(const CompressorParts& parts) {
  const Integer rate = parts.spec.rate;
  const Integer series = parts.spec.series();
  return (series - 1) * Expr(rate) + series * (Expr(Symbol::visible_keys) - rate * parts.entries);
}

}  // namespace

TensorId GraphBuilder::shared_key_value_attention(const StackContext& stack, TensorId hidden) {
  const HeadSizes& heads = stack.heads;
  const TensorId compressed = compressed_queries(stack, hidden, spec_of(stack).q_lora_rank,
                                                 LinearBias::absent, stack.spec->norm);
  const TensorId queries = normed_queries(stack, compressed);
  const Expr width = heads.head_dim;
  TensorId keys = project(stack, Part::attention_qkv, {"attention.key", width},
                          WeightRole::attention, LinearBias::absent, hidden);
  keys = norm(stack.spec->norm, "attention.key_norm",
              Norm{stack.spec->norm, stack.rows(), width, {}}, keys);
  keys = rotate_end(stack, "attention.key.rotary", {stack.rows(), width, {}, Integer{1}, width},
                    stack.tokens, RotaryDirection::forward, keys);
  AttentionOperands operands = window_operands(stack, queries, keys);
  if (spec_of(stack).compression) add_compressed_keys(stack, hidden, compressed, operands);
  const TensorId context =
      softmax_attention(stack, self_attention_parts(), *stack.attention, operands);
  return grouped_output(stack, context);
}

TensorId GraphBuilder::normed_queries(const StackContext& stack, TensorId compressed) {
  const HeadSizes& heads = stack.heads;
  const HeadRows rows{stack.rows(), heads.query_width(), {}, heads.heads, heads.head_dim};
  const TensorId queries =
      project(stack, Part::attention_qkv, {"attention.query", heads.query_width()},
              WeightRole::attention, LinearBias::absent, compressed);
  NormSpec unweighted = stack.spec->norm;
  unweighted.weight = NormWeight::none;
  const TensorId normed =
      emit_in_place(Part::attention_query_key_norm, "attention.query_norm",
                    HeadNorm{unweighted, QueryKeyNormScope::each_head, rows}, {queries});
  return rotate_end(stack, "attention.query.rotary", rows, stack.tokens, RotaryDirection::forward,
                    normed);
}

TensorId GraphBuilder::rotate_end(const StackContext& stack, const std::string& path,
                                  HeadRows heads, const Expr& seq_len, RotaryDirection direction,
                                  TensorId input, std::int64_t step) {
  const Expr first = before_rotary(stack, heads.head_dim);
  const Expr rotated = Integer{spec_of(stack).rotary_dim};
  const RopeSpec& rope = stack.attention->rope ? *stack.attention->rope : stack.position->rope;
  return emit_in_place(Part::attention_rotary, path,
                       Rotary{std::move(heads), first, rotated, seq_len, rope, direction, step},
                       {input});
}

AttentionOperands GraphBuilder::window_operands(const StackContext& stack, TensorId queries,
                                                TensorId keys) {
  const HeadSizes& heads = stack.heads;
  AttentionOperands operands{{kBatch, heads.heads, Integer{1}, heads.head_dim, heads.value_head_dim,
                              stack.tokens, stack.tokens},
                             {queries, keys}};
  operands.values = ValuePlace::inside_keys;
  operands.pairs = Symbol::windowed_pairs;
  if (stack.keys == KeySource::projections) return operands;
  const Expr width = heads.head_dim;
  const Expr cached = Symbol::windowed_keys;
  const TensorId cache =
      tensor("attention.kv_cache", {kBatch, cached, width}, ElementType::key_cache);
  // A prefill caches the last tokens only and reads the keys of all.
  const bool drops = options_.phase == Phase::prefill;
  const Expr rows = drops ? kBatch * cached : stack.rows();
  const KvCacheAppend append{rows * width,
                             {stack.rows(), width, {}, Integer{1}, width},
                             Integer{1},
                             width,
                             stack.attention->window};
  operands.tensors[1] =
      emit_in_place(Part::attention_kv_cache, "attention.kv_cache", append, {keys, cache});
  if (drops) return operands;
  operands.tensors[1] = cache;
  operands.keys = KeySource::cache;
  operands.shape.keys = cached;
  return operands;
}

void GraphBuilder::add_compressed_keys(const StackContext& stack, TensorId hidden,
                                       TensorId compressed, AttentionOperands& operands) {
  const CompressorParts parts =
      compressor(stack, Part::attention_compressor, "attention.compressor", stack.heads.head_dim);
  operands.tensors.push_back(compress_keys(stack, parts, hidden));
  const auto& indexer = stack.attention->indexer;
  if (!indexer) {
    operands.shape.keys += parts.entries;
    *operands.pairs += Symbol::heavily_compressed_pairs;
    return;
  }
  const Expr dim = Integer{indexer->head_dim};
  const CompressorParts index =
      compressor(stack, Part::attention_indexer, "attention.indexer.compressor", dim);
  const TensorId keys = compress_keys(stack, index, hidden);
  const TensorId queries = index_queries(stack, compressed, before_rotary(stack, dim));
  operands.choice = choose_keys(stack, hidden, queries, keys, parts.spec.rate);
  const bool fused = options_.attention == AttentionImplementation::fused;
  operands.shape.keys += fused ? Expr(Symbol::chosen_keys) : parts.entries;
  *operands.pairs += Symbol::chosen_pairs;
}

TensorId GraphBuilder::compress_keys(const StackContext& stack, const CompressorParts& parts,
                                     TensorId hidden) {
  TensorId pooled = sum_windows(stack, parts, key_and_gate(stack, parts, hidden));
  const Expr rows = kBatch * parts.new_entries;
  pooled = norm(stack.spec->norm, parts.path + ".norm",
                Norm{stack.spec->norm, rows, parts.width, {}}, pooled);
  pooled =
      rotate_end(stack, parts.path + ".rotary", {rows, parts.width, {}, Integer{1}, parts.width},
                 parts.new_entries, RotaryDirection::forward, pooled, parts.spec.rate);
  return stack.keys == KeySource::cache ? cached_entries(parts, pooled) : pooled;
}

TensorId GraphBuilder::key_and_gate(const StackContext& stack, const CompressorParts& parts,
                                    TensorId hidden) {
  const Expr features = Integer{parts.spec.series()} * parts.width;
  const LinearParts projection{parts.part,
                               parts.path + ".key_gate",
                               WeightRole::attention,
                               stack.rows(),
                               Symbol::hidden_size,
                               {{parts.path + ".key", features}, {parts.path + ".gate", features}}};
  return linear(projection, hidden, {kBatch, stack.tokens, Integer{2} * features});
}

TensorId GraphBuilder::sum_windows(const StackContext& stack, const CompressorParts& parts,
                                   TensorId rows) {
  const Expr series = Integer{parts.spec.series()};
  const Expr features = series * parts.width;
  std::vector<TensorId> inputs{rows};
  if (stack.keys == KeySource::cache) {
    inputs.push_back(tensor(parts.path + ".state",
                            {kBatch, open_rows(parts), Integer{2} * parts.width},
                            ElementType::compressor_state));
  }
  const Expr rate = Integer{parts.spec.rate};
  const WeightId bias =
      weight(parts.part, parts.path + ".position_bias", {rate, features}, WeightRole::attention);
  return emit(parts.part, parts.path + ".sum",
              KeyCompression{kBatch, stack.tokens, parts.new_entries, rate, series, parts.width},
              std::move(inputs), {bias}, {kBatch, parts.new_entries, parts.width});
}

TensorId GraphBuilder::cached_entries(const CompressorParts& parts, TensorId pooled) {
  const Expr rows = kBatch * parts.new_entries;
  const TensorId cache = tensor(parts.path + ".key_cache", {kBatch, parts.entries, parts.width},
                                ElementType::key_cache);
  const KvCacheAppend append{rows * parts.width,
                             {rows, parts.width, {}, Integer{1}, parts.width},
                             Integer{1},
                             parts.width,
                             {},
                             parts.spec.rate};
  emit_in_place(Part::attention_kv_cache, parts.path + ".key_cache", append, {pooled, cache});
  return cache;
}

TensorId GraphBuilder::grouped_output(const StackContext& stack, TensorId context) {
  const SharedKeyValueSpec& spec = spec_of(stack);
  const AttentionSpec& attention = *stack.attention;
  const HeadSizes& heads = stack.heads;
  const TensorId rotated =
      rotate_end(stack, "attention.context.rotary",
                 {stack.rows(), heads.context_width(), {}, heads.heads, heads.value_head_dim},
                 stack.tokens, RotaryDirection::inverse, context);
  const Expr in =
      Integer{attention.num_attention_heads / spec.output_groups} * attention.value_head_dim;
  const Expr rank = Integer{spec.output_rank};
  const Expr width = Integer{spec.output_groups} * spec.output_rank;
  const WeightId down =
      weight(Part::attention_out, "attention.output_a.weight", {width, in}, WeightRole::attention);
  const TensorId grouped = emit(Part::attention_out, "attention.out_a",
                                GroupedLinear{stack.rows(), Integer{spec.output_groups}, in, rank},
                                {rotated}, {down}, {kBatch, stack.tokens, width});
  return attention_output(stack, self_attention_parts(), attention, width, grouped);
}

}  // namespace headroom::detail
