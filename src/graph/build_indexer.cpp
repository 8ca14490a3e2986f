// Lightning indexer (arXiv 2512.02556, section 2.1): index queries and keys, their scores, and the
// mask of the keys that each query reads.
#include "builder.h"

namespace headroom::detail {
namespace {

Expr heads_of_index(const StackContext& stack) {
  return Integer{stack.attention->indexer->num_heads};
}

Expr dim_of_index(const StackContext& stack) { return Integer{stack.attention->indexer->head_dim}; }

/// The first of the features that RoPE turns, beside MLA.
Expr first_rotary_of_index(const StackContext& stack) {
  const bool last = stack.attention->indexer->rotary_part == HeadPart::last;
  return last ? dim_of_index(stack) - stack.heads.rope : Expr();
}

}  // namespace

/// Keys and choices of an indexer's pools of tokens.
struct GraphBuilder::PoolSteps {
  GraphBuilder& builder;
  const StackContext& stack;

  [[nodiscard]] bool cached() const { return stack.keys == KeySource::cache; }

  /// One index key for each whole pool of tokens.
  [[nodiscard]] TensorId keys(TensorId hidden) const {
    const IndexerSpec& indexer = *stack.attention->indexer;
    const Expr dim = dim_of_index(stack);
    const CompressorParts parts{Part::attention_indexer,
                                "attention.indexer",
                                dim,
                                {indexer.pool_size, CompressionOverlap::none},
                                Symbol::compressed_keys,
                                Symbol::new_compressed_keys};
    const NormSpec spec{NormKind::layer_norm, true, indexer.key_norm_eps};
    const TensorId rows = builder.norm(spec, "attention.indexer.key_norm",
                                       Norm{spec, stack.rows(), dim, Integer{2} * dim},
                                       builder.key_and_gate(stack, parts, hidden));
    const TensorId pooled = builder.sum_windows(stack, parts, rows);
    return cached() ? builder.cached_entries(parts, pooled) : pooled;
  }

  /// The mask of the tokens in the chosen pools.
  [[nodiscard]] TensorId tokens(TensorId choice) const {
    const Expr seen = cached() ? Expr(Symbol::visible_keys) : stack.tokens;
    const Expr pools = builder.graph_.tensors[choice].shape.at(2);
    return builder.emit(Part::attention_indexer, "attention.indexer.tokens",
                        PoolTokens{kBatch, stack.tokens, pools, seen,
                                   stack.attention->indexer->pool_size, stack.keys},
                        {choice}, {}, {kBatch, stack.tokens, seen});
  }
};

std::optional<TensorId> GraphBuilder::key_choice(const StackContext& stack, TensorId hidden,
                                                 TensorId queries) {
  const auto& indexer = stack.attention->indexer;
  if (!indexer) return std::nullopt;
  switch (indexer->place) {
    case IndexerPlace::earlier_layer:
      return key_choice_.value();
    case IndexerPlace::here:
      break;
  }
  if (const auto& spec = indexer->query_norm) {
    queries = norm(*spec, "attention.indexer.query_norm",
                   Norm{*spec, stack.rows(), Symbol::hidden_size, {}}, hidden);
  }
  const TensorId index = index_queries(stack, queries, first_rotary_of_index(stack));
  if (!indexer->pools()) return choose_keys(stack, hidden, index, index_keys(stack, hidden), 1);
  const PoolSteps pools{*this, stack};
  const TensorId choice = choose_keys(stack, hidden, index, pools.keys(hidden), indexer->pool_size);
  key_choice_ = pools.tokens(choice);
  return key_choice_;
}

TensorId GraphBuilder::index_queries(const StackContext& stack, TensorId queries,
                                     const Expr& first_rotary) {
  const Expr heads = heads_of_index(stack);
  const Expr dim = dim_of_index(stack);
  const Expr width = heads * dim;
  TensorId projected = project(stack, Part::attention_indexer, {"attention.indexer.query", width},
                               WeightRole::attention, LinearBias::absent, queries);
  const HeadRows rows{stack.rows(), width, {}, heads, dim};
  if (const auto& temperature = stack.attention->indexer->temperature) {
    projected = scaled_queries({rows, stack.tokens, *temperature}, Part::attention_indexer,
                               "attention.indexer.query.temperature", projected);
  }
  if (!stack.attention->rotary) return projected;
  RopeSpec rope = stack.attention->rope.value_or(stack.position->rope);
  if (stack.attention->latent) rope.layout = stack.attention->indexer->rope_layout;
  const Expr rotary_dim = first_rotary.is_zero() ? stack.heads.rope : dim - first_rotary;
  return emit_in_place(Part::attention_indexer, "attention.indexer.query.rotary",
                       Rotary{rows, first_rotary, rotary_dim, stack.tokens, rope}, {projected});
}

TensorId GraphBuilder::scaled_queries(const TemperatureScale& scale, Part part,
                                      const std::string& path, TensorId queries) {
  std::vector<WeightId> weights;
  if (scale.tuning.from == TemperatureTuning::From::of_heads) {
    for (const char* const name : {".scale", ".bias"}) {
      weights.push_back(weight(part, path + name, {scale.heads.heads}, WeightRole::attention));
    }
  }
  return emit_in_place(part, path, scale, {queries}, std::move(weights));
}

TensorId GraphBuilder::index_keys(const StackContext& stack, TensorId hidden) {
  const Expr dim = dim_of_index(stack);
  const std::string path = "attention.indexer.key";
  TensorId keys = project(stack, Part::attention_indexer, {path, dim}, WeightRole::attention,
                          LinearBias::absent, hidden);
  const NormSpec spec{NormKind::layer_norm, true, stack.attention->indexer->key_norm_eps};
  keys = norm(spec, path + "_norm", Norm{spec, stack.rows(), dim, {}}, keys);
  if (!stack.attention->rotary) return cached_index_keys(stack, keys);
  RopeSpec rope = stack.position->rope;
  rope.layout = stack.attention->indexer->rope_layout;
  const HeadRows row{stack.rows(), dim, {}, Integer{1}, dim};
  keys = emit_in_place(
      Part::attention_indexer, path + ".rotary",
      Rotary{row, first_rotary_of_index(stack), stack.heads.rope, stack.tokens, rope}, {keys});
  return cached_index_keys(stack, keys);
}

TensorId GraphBuilder::choose_keys(const StackContext& stack, TensorId hidden, TensorId queries,
                                   TensorId keys, std::int64_t rate) {
  const IndexerSpec& indexer = *stack.attention->indexer;
  const Expr heads = heads_of_index(stack);
  const Expr length = graph_.tensors[keys].shape.at(1);
  const TensorId weights =
      project(stack, Part::attention_indexer, {"attention.indexer.weights", heads},
              WeightRole::attention, LinearBias::absent, hidden);
  const TensorId scores = emit(Part::attention_indexer, "attention.indexer.scores",
                               IndexScores{kBatch, heads, dim_of_index(stack), stack.tokens, length,
                                           stack.keys, IndexHeads::summed, rate},
                               {queries, keys, weights}, {}, {kBatch, stack.tokens, length});
  key_choice_ = emit_in_place(
      Part::attention_indexer, "attention.indexer.choice",
      KeySelect{kBatch, stack.tokens, length,
                indexer.pools() ? indexer.top_k / rate : indexer.top_k, rate, stack.keys},
      {scores});
  return *key_choice_;
}

TensorId GraphBuilder::index_blocks(const StackContext& stack, TensorId hidden) {
  const IndexerSpec& indexer = *stack.attention->indexer;
  const Expr heads = heads_of_index(stack);
  const TensorId queries = block_index_heads(stack, "query", heads, hidden);
  const TensorId keys =
      cached_index_keys(stack, block_index_heads(stack, "key", Integer{1}, hidden));
  const Expr length = graph_.tensors[keys].shape.at(1);
  const TensorId scores = emit(Part::attention_indexer, "attention.indexer.scores",
                               IndexScores{kBatch, heads, dim_of_index(stack), stack.tokens, length,
                                           stack.keys, IndexHeads::separate},
                               {queries, keys}, {}, {kBatch, heads, stack.tokens, length});
  return emit_in_place(Part::attention_indexer, "attention.indexer.choice",
                       KeySelect{kBatch, stack.tokens, length, indexer.top_k, 1, stack.keys, heads,
                                 indexer.block_size, indexer.local_blocks},
                       {scores});
}

TensorId GraphBuilder::block_index_heads(const StackContext& stack, const std::string& name,
                                         const Expr& heads, TensorId hidden) {
  const NormSpec& spec = stack.spec->norm;
  const Expr dim = dim_of_index(stack);
  const std::string path = "attention.indexer." + name;
  const TensorId projected = project(stack, Part::attention_indexer, {path, heads * dim},
                                     WeightRole::attention, LinearBias::absent, hidden);
  const HeadRows rows{stack.rows(), heads * dim, {}, heads, dim};
  const TensorId normed = emit_in_place(
      Part::attention_indexer, path + "_norm", HeadNorm{spec, QueryKeyNormScope::each_head, rows},
      {projected}, norm_weights(spec, Part::attention_indexer, path + "_norm", {dim}));
  const RopeSpec& rope = stack.attention->rope ? *stack.attention->rope : stack.position->rope;
  const Expr rotary_dim = rope.rotary_dim == 0 ? stack.heads.head_dim : Integer{rope.rotary_dim};
  return emit_in_place(Part::attention_indexer, path + ".rotary",
                       Rotary{rows, {}, rotary_dim, stack.tokens, rope}, {normed});
}

TensorId GraphBuilder::cached_index_keys(const StackContext& stack, TensorId keys) {
  if (stack.keys == KeySource::projections) return keys;
  const Expr dim = dim_of_index(stack);
  const HeadRows row{stack.rows(), dim, {}, Integer{1}, dim};
  const TensorId cache = tensor("attention.indexer.key_cache", {kBatch, Symbol::visible_keys, dim},
                                ElementType::key_cache);
  emit_in_place(Part::attention_indexer, "attention.indexer.key_cache",
                KvCacheAppend{row.elements(), row, Integer{1}, dim, {}}, {keys, cache});
  return cache;
}

void GraphBuilder::read_chosen_keys(TensorId choice, AttentionOperands& operands) const {
  operands.choice = choice;
  operands.pairs = Symbol::chosen_pairs;
  if (options_.attention == AttentionImplementation::fused) {
    operands.shape.keys = Symbol::chosen_keys;
  }
}

}  // namespace headroom::detail
