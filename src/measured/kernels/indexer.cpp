#include "indexer.h"

#include <omp.h>

#include <algorithm>

#include "parallel.h"
#include "softmax.h"
#include "tile_multiply.h"

namespace headroom::measured {
namespace {

/// Attention of one query of one head; returns the number of keys that it reads.
std::int64_t attend(const AttentionArguments& args, std::int64_t batch, std::int64_t head,
                    std::int64_t query, float* scores) {
  const std::int64_t kv_head = head * args.kv_heads / args.heads;
  const float* const choice =
      choice_of_row(args, (batch * args.heads + head) * args.queries + query);
  const float* const q =
      args.q + batch * args.q_batch_stride + query * args.q_stride + head * args.head_dim;
  const float* const k = args.k + batch * args.k_batch_stride + kv_head * args.k_head_stride;
  const float* const v = args.v + batch * args.v_batch_stride + kv_head * args.v_head_stride;
  float* const out = args.out + batch * args.out_batch_stride + query * args.out_stride +
                     head * args.value_head_dim;
  std::int64_t chosen = 0;
  for (std::int64_t key = 0; key < args.keys; ++key) {
    if (choice[key] == 0) scores[chosen++] = dot(q, k + key * args.k_stride, args.head_dim);
  }
  softmax({.keys = chosen,
           .visible = chosen,
           .scale = args.scale,
           .sink = args.sinks == nullptr ? nullptr : args.sinks + head},
          scores);
  std::fill_n(out, args.value_head_dim, 0.0F);
  std::int64_t next = 0;
  for (std::int64_t key = 0; key < args.keys; ++key) {
    if (choice[key] != 0) continue;
    add_scaled(scores[next++], v + key * args.v_stride, args.value_head_dim, out);
  }
  return chosen;
}

}  // namespace

const float* choice_of_row(const AttentionArguments& args, std::int64_t row) {
  const std::int64_t batch = row / args.queries / args.heads;
  const std::int64_t head = args.first_head + row / args.queries % args.heads;
  const std::int64_t chooser = args.choosers == 1 ? 0 : head / args.heads_per_chooser;
  const std::int64_t query = row % args.queries;
  return args.choice + ((batch * args.choosers + chooser) * args.queries + query) * args.keys;
}

std::int64_t sparse_attention_scratch_floats(const AttentionArguments& args, int threads) {
  return threads * args.keys;
}

std::int64_t sparse_attention(const AttentionArguments& args, float* scratch) {
  const std::int64_t rows = args.batch * args.heads * args.queries;
  std::int64_t pairs = 0;
#pragma omp parallel for schedule(static) reduction(+ : pairs) if (rows * args.keys >= kSerialElements)
  for (std::int64_t row = 0; row < rows; ++row) {
    float* const scores = scratch + omp_get_thread_num() * args.keys;
    pairs += attend(args, row / args.queries / args.heads, row / args.queries % args.heads,
                    row % args.queries, scores);
  }
  return 2 * pairs * (args.head_dim + args.value_head_dim);
}

}  // namespace headroom::measured
