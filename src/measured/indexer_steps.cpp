// Steps of sparse attention's indexer, and operators that are counted and not run.
#include <omp.h>

#include <algorithm>

#include "headroom/error.h"
#include "kernels/block_choice.h"
#include "kernels/indexer.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

/// measure() refuses a model with one of these operators by its ModelSpec::not_run.
[[noreturn]] void refuse() {
  throw Error(ErrorCode::internal, "an operator that is counted only was asked to run");
}

}  // namespace

StepBuilder::Keys StepBuilder::keys_so_far(KeySource source, const Expr& keys,
                                           std::int64_t rate) const {
  const std::int64_t most = integer(keys);
  const bool cached = source == KeySource::cache;
  return [=, lengths = &program_.lengths_](std::int64_t queries) {
    return cached ? std::min(most, (lengths->past + queries) / rate) : most;
  };
}

StepBuilder::Run StepBuilder::operator()(const IndexScores& op) {
  IndexerArguments args;
  args.batch = integer(op.batch);
  args.heads = integer(op.heads);
  args.head_dim = integer(op.head_dim);
  args.queries = integer(op.queries);
  args.key_batch_stride = integer(op.keys) * args.head_dim;
  args.q = input(0);
  const bool separate = op.result == IndexHeads::separate;
  if (!separate) args.weights = input(2);
  const bool cached = op.source == KeySource::cache;
  const float* const projected = cached ? nullptr : input(1);
  return [=, name = program_.graph_.tensors[node_->inputs[1]].name, cache = &program_.cache_,
          keys = keys_so_far(op.source, op.keys, op.rate),
          out = output()](std::int64_t layer) mutable {
    args.k = cached ? cache->data(name, layer) : projected;
    args.keys = keys(args.queries);
    const std::int64_t rows = args.batch * args.queries;
    const std::int64_t keys_read = args.batch * args.keys * args.head_dim;
    const std::int64_t results = args.keys * (separate ? args.heads : 1);
    const std::int64_t weights = separate ? 0 : args.heads;
    const std::int64_t moved = keys_read + rows * (args.heads * args.head_dim + weights + results);
    return StepCount{separate ? index_products(args, out) : index_scores(args, out),
                     moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::select_blocks(const KeySelect& op) {
  IndexerArguments args;
  args.batch = integer(op.batch);
  args.heads = integer(op.heads);
  args.queries = integer(op.queries);
  const BlockChoice choice{op.top_k / op.block_size, op.block_size, op.local_blocks};
  const bool cached = op.source == KeySource::cache;
  return [=, lengths = &program_.lengths_, keys = keys_so_far(op.source, op.keys, 1),
          copy_input = input_copy(), scores = output()](std::int64_t /*layer*/) mutable {
    copy_input();
    args.keys = keys(args.queries);
    args.past = cached ? lengths->past : 0;
    choose_blocks(args, choice, scores);
    const std::int64_t rows = args.batch * args.heads * args.queries;
    return StepCount{0, 2 * rows * args.keys * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const KeySelect& op) {
  if (op.block_size > 1) return select_blocks(op);
  IndexerArguments args;
  args.batch = integer(op.batch);
  args.queries = integer(op.queries);
  if (op.rate == 1) args.key_mask = key_mask(op.source);
  args.rate = op.rate;
  const bool cached = op.source == KeySource::cache;
  return [=, top_k = op.top_k, lengths = &program_.lengths_,
          keys = keys_so_far(op.source, op.keys, op.rate), copy_input = input_copy(),
          scores = output()](std::int64_t /*layer*/) mutable {
    copy_input();
    args.keys = keys(args.queries);
    args.past = cached ? lengths->past : 0;
    choose_keys(args, top_k, scores);
    return StepCount{0, 2 * args.batch * args.queries * args.keys * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const PoolTokens& op) {
  PoolArguments args;
  args.batch = integer(op.batch);
  args.queries = integer(op.queries);
  args.pool_size = op.pool_size;
  args.key_mask = key_mask(op.source);
  const bool cached = op.source == KeySource::cache;
  return [=, lengths = &program_.lengths_, pools = keys_so_far(op.source, op.pools, op.pool_size),
          keys = keys_so_far(op.source, op.keys, 1), choice = input(0),
          out = output()](std::int64_t /*layer*/) mutable {
    args.pools = pools(args.queries);
    args.keys = keys(args.queries);
    args.past = cached ? lengths->past : 0;
    choose_pool_tokens(args, choice, out);
    return StepCount{0, args.batch * args.queries * (args.pools + args.keys) * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::sparse_fused(const FusedAttention& op) {
  const Arguments arguments = attention(op);
  const std::int64_t longest = integer(program_.graph_.tensors[node_->inputs.back()].shape.back());
  AttentionArguments largest = attention_sizes(op.shape);
  largest.keys = longest;
  auto memory = scratch(sparse_attention_scratch_floats(largest, omp_get_max_threads()));
  const bool cached = op.keys == KeySource::cache;
  return [=, keys = keys_so_far(op.keys, Integer{longest}, 1), sinks = sinks(),
          out = output()](std::int64_t layer) mutable {
    AttentionArguments args = arguments(layer);
    args.out = out;
    args.sinks = sinks(layer);
    // Without a cache, the tokens of this pass, which may be fewer than a cache holds.
    args.keys = cached ? keys(args.queries) : args.queries;
    const std::int64_t flops = sparse_attention(args, memory->data());
    const std::int64_t rows = args.batch * args.queries * args.heads;
    // A pair reads a key and a value, which take two FLOPs per element.
    return StepCount{flops,
                     (rows * (args.head_dim + args.value_head_dim) + flops / 2) * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const TimestepFeatures& /*op*/) { refuse(); }
StepBuilder::Run StepBuilder::operator()(const Modulation& /*op*/) { refuse(); }
StepBuilder::Run StepBuilder::operator()(const SequenceRows& /*op*/) { refuse(); }

}  // namespace headroom::measured
