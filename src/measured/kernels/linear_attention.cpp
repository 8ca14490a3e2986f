#include "linear_attention.h"

#include <algorithm>
#include <span>
#include <vector>

#include "linear_attention_head.h"
#include "parallel.h"
#include "tile_multiply.h"
#include "vector_math.h"

namespace headroom::measured {

namespace {

using simd::kLanes;

/// Tokens per block. All heads process a block before the next, so that its rows, which interleave
/// the heads, stay in cache.
constexpr std::int64_t kTokens = 128;
constexpr std::int64_t kCausalTokens = 32;

/// Calls body(tokens) for blocks of `at_once` of `count` tokens.
template <class Body>
void for_tokens(std::int64_t count, std::int64_t at_once, const Body& body) {
  for (std::int64_t begin = 0; begin < count; begin += at_once) {
    body(Range{begin, std::min(count, begin + at_once)});
  }
}

/// Adds keys without padding to S and Z.
void add_run(const LinearAttentionHead& head, Range keys) {
  const AttentionArguments& args = head.args;
  multiply({head.key(keys.begin), 1, args.k_stride}, {head.value(keys.begin), args.v_stride},
           {head.s, args.value_head_dim}, {args.head_dim, args.value_head_dim, keys.size()},
           Output::accumulate);
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    add_scaled(1, head.key(key), args.head_dim, head.z);
  }
}

/// Adds keys to S and Z, in runs without padding.
void add_keys(const LinearAttentionHead& head, Range keys) {
  std::int64_t begin = keys.begin;
  for (std::int64_t key = keys.begin; key <= keys.end; ++key) {
    if (key < keys.end && !head.is_padding(key)) continue;
    if (begin < key) add_run(head, {begin, key});
    begin = key + 1;
  }
}

/// Computes the outputs of some queries of one member of a KV group.
void compute_outputs(const LinearAttentionHead& head, std::int64_t member, Range queries) {
  const AttentionArguments& args = head.args;
  multiply({head.query(queries.begin, member), args.q_stride, 1}, {head.s, args.value_head_dim},
           {head.out(queries.begin, member), args.out_stride},
           {queries.size(), args.value_head_dim, args.head_dim}, Output::overwrite);
  for (std::int64_t token = queries.begin; token < queries.end; ++token) {
    head.normalize(token, member);
  }
}

/// Heads of one sequence.
using Heads = std::span<const LinearAttentionHead>;

void attend_bidirectionally(Heads heads) {
  const AttentionArguments& args = heads.front().args;
  for (const LinearAttentionHead& head : heads) {
    std::fill_n(head.s, args.head_dim * args.value_head_dim, 0.0F);
    std::fill_n(head.z, args.head_dim, 0.0F);
  }
  for_tokens(args.keys, kTokens, [&](Range keys) {
    for (const LinearAttentionHead& head : heads) add_keys(head, keys);
  });
  for_tokens(args.queries, kTokens, [&](Range queries) {
    for (const LinearAttentionHead& head : heads) {
      for (std::int64_t member = 0; member < head.group(); ++member)
        compute_outputs(head, member, queries);
    }
  });
}

void attend_causally(Heads heads) {
  for_tokens(heads.front().args.queries, kCausalTokens, [&](Range tokens) {
    for (const LinearAttentionHead& head : heads) attend_causally(head, tokens);
  });
}

std::int64_t head_state_floats(const AttentionArguments& args) {
  return args.head_dim * (args.value_head_dim + 1);
}

}  // namespace

std::int64_t linear_attention_state_floats(const AttentionArguments& args) {
  return args.batch * args.kv_heads * head_state_floats(args);
}

std::int64_t linear_attention(const AttentionArguments& args, float eps, float* state) {
  const auto head_at = [&](std::int64_t head) -> LinearAttentionHead {
    float* const s = state + head * head_state_floats(args);
    return {args,
            head / args.kv_heads,
            head % args.kv_heads,
            eps,
            s,
            s + args.head_dim * args.value_head_dim};
  };
  // Each thread processes its heads, those of one sequence together.
#pragma omp parallel
  {
    const Range own = thread_range(args.batch * args.kv_heads);
    std::vector<LinearAttentionHead> heads;
    for (std::int64_t head = own.begin; head < own.end; ++head) {
      heads.push_back(head_at(head));
      if (head + 1 < own.end && (head + 1) % args.kv_heads != 0) continue;
      if (args.causal) {
        attend_causally(heads);
      } else {
        attend_bidirectionally(heads);
      }
      heads.clear();
    }
  }
  const std::int64_t product = 2 * args.head_dim * args.value_head_dim;
  return args.batch * (args.kv_heads * args.keys * product +
                       args.heads * args.queries * (product + 2 * args.head_dim));
}

}  // namespace headroom::measured
