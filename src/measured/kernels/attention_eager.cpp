#include <algorithm>
#include <array>

#include "attention.h"
#include "parallel.h"
#include "simd.h"
#include "softmax.h"
#include "tile_multiply.h"
#include "transpose.h"

namespace headroom::measured {

namespace {

constexpr std::int64_t kSteps = 128;            // of a transposed tile of K, which then stays in L1
constexpr std::int64_t kTransposedSteps = 512;  // transposed at once
constexpr std::int64_t kQueryBlock = 128;       // queries per block of work
constexpr std::int64_t kKeyBlock = 128;  // keys of a packed tile of V, which then stays in L1
constexpr std::int64_t kMinTransposedQueries = 4;  // queries from which transposing K pays
constexpr std::int64_t kMinPackedQueries = 32;     // queries from which packing V pays

const float* query_of(const AttentionArguments& args, std::int64_t batch_head) {
  return args.q + batch_head / args.heads * args.q_batch_stride +
         batch_head % args.heads * args.head_dim;
}

const float* key_of(const AttentionArguments& args, std::int64_t batch_head) {
  return args.k + batch_head / args.heads * args.k_batch_stride +
         batch_head % args.heads * args.kv_heads / args.heads * args.k_head_stride;
}

const float* value_of(const AttentionArguments& args, std::int64_t batch_head) {
  return args.v + batch_head / args.heads * args.v_batch_stride +
         batch_head % args.heads * args.kv_heads / args.heads * args.v_head_stride;
}

float* out_of(const AttentionArguments& args, std::int64_t batch_head) {
  return args.out + batch_head / args.heads * args.out_batch_stride +
         batch_head % args.heads * args.value_head_dim;
}

/// Adds the scores of some queries with a transposed tile of keys, over some steps of head_dim.
void score_transposed(const AttentionArguments& args, const float* q, const float* transposed,
                      TileExtent extent, Output output, float* scores) {
  for (std::int64_t step = 0; step < extent.steps; step += kSteps) {
    const std::int64_t steps = std::min(kSteps, extent.steps - step);
    multiply_padded({q + step, args.q_stride, 1}, {transposed + step * kTileColumns, kTileColumns},
                    {scores, args.keys}, {extent.rows, extent.columns, steps},
                    step == 0 ? output : Output::accumulate);
  }
}

/// Scores of all queries with one tile of keys, which is transposed first.
void score_tile(const AttentionArguments& args, std::int64_t batch_head, Range keys,
                float* scores) {
  alignas(64) std::array<float, kTransposedSteps * kTileColumns> transposed;
  const float* q = query_of(args, batch_head);
  const float* k = key_of(args, batch_head) + keys.begin * args.k_stride;
  for (std::int64_t step = 0; step < args.head_dim; step += kTransposedSteps) {
    const std::int64_t steps = std::min(kTransposedSteps, args.head_dim - step);
    transpose<RowEnd::padded>(
        keys.size(), steps, [&](std::int64_t key) { return k + key * args.k_stride + step; },
        [&](std::int64_t i) { return transposed.data() + i * kTileColumns; });
    // A block of queries at a time, so that its scores stay in cache from step to step.
    for (std::int64_t query = 0; query < args.queries; query += kQueryBlock) {
      const std::int64_t queries = std::min(kQueryBlock, args.queries - query);
      score_transposed(args, q + query * args.q_stride + step, transposed.data(),
                       {queries, keys.size(), steps},
                       step == 0 ? Output::overwrite : Output::accumulate,
                       scores + query * args.keys + keys.begin);
    }
  }
}

/// Query heads of a KV head.
Range group_of(const AttentionArguments& args, std::int64_t kv_head) {
  const std::int64_t group = args.heads / args.kv_heads;
  return {kv_head * group, (kv_head + 1) * group};
}

/// Scores of few queries with some keys of one KV head, one dot product each.
void score_few(const AttentionArguments& args, std::int64_t batch, std::int64_t kv_head, Range keys,
               float* scores) {
  const Range heads = group_of(args, kv_head);
  const float* const q = args.q + batch * args.q_batch_stride;
  const float* const k = args.k + batch * args.k_batch_stride + kv_head * args.k_head_stride;
  float* const to = scores + batch * args.heads * args.queries * args.keys;
  for (std::int64_t key = keys.begin; key < keys.end; ++key) {
    for (std::int64_t head = heads.begin; head < heads.end; ++head) {
      for (std::int64_t query = 0; query < args.queries; ++query) {
        to[(head * args.queries + query) * args.keys + key] =
            dot(q + query * args.q_stride + head * args.head_dim, k + key * args.k_stride,
                args.head_dim);
      }
    }
  }
}

/// Context of few queries, for heads of one KV head.
void context_few(const AttentionArguments& args, std::int64_t batch, std::int64_t kv_head,
                 Range heads, const float* probabilities) {
  const float* const p = probabilities + batch * args.heads * args.queries * args.keys;
  const float* const v = args.v + batch * args.v_batch_stride + kv_head * args.v_head_stride;
  float* const out = args.out + batch * args.out_batch_stride;
  const auto for_rows = [&](const auto& body) {
    for (std::int64_t head = heads.begin; head < heads.end; ++head) {
      for (std::int64_t query = 0; query < args.queries; ++query) {
        body(out + query * args.out_stride + head * args.value_head_dim,
             p + (head * args.queries + query) * args.keys);
      }
    }
  };
  for_rows([&](float* row, const float*) { std::fill_n(row, args.value_head_dim, 0.0F); });
  for (std::int64_t key = 0; key < args.keys; ++key) {
    for_rows([&](float* row, const float* weights) {
      add_scaled(weights[key], v + key * args.v_stride, args.value_head_dim, row);
    });
  }
}

/// Context of some queries of one head. Rows of V lie a whole token row apart and so map to few
/// cache sets and many pages; tiles of V are packed and reused for all queries.
void context_packed(const AttentionArguments& args, std::int64_t batch_head, Range queries,
                    const float* probabilities) {
  alignas(64) std::array<float, kKeyBlock * kTileColumns> packed;
  float* const out = out_of(args, batch_head) + queries.begin * args.out_stride;
  for (std::int64_t column = 0; column < args.value_head_dim; column += kTileColumns) {
    const std::int64_t columns = std::min(kTileColumns, args.value_head_dim - column);
    const float* const v = value_of(args, batch_head) + column;
    for (std::int64_t key = 0; key < args.keys; key += kKeyBlock) {
      const std::int64_t keys = std::min(kKeyBlock, args.keys - key);
      for (std::int64_t i = 0; i < keys; ++i) {
        std::copy_n(v + (key + i) * args.v_stride, columns, packed.data() + i * kTileColumns);
      }
      multiply({probabilities + queries.begin * args.keys + key, args.keys, 1},
               {packed.data(), kTileColumns}, {out + column, args.out_stride},
               {queries.size(), columns, keys}, key == 0 ? Output::overwrite : Output::accumulate);
    }
  }
}

/// Context of some queries of one head, reading V in place.
void context_in_place(const AttentionArguments& args, std::int64_t batch_head, Range queries,
                      const float* probabilities) {
  multiply({probabilities + queries.begin * args.keys, args.keys, 1},
           {value_of(args, batch_head), args.v_stride},
           {out_of(args, batch_head) + queries.begin * args.out_stride, args.out_stride},
           {queries.size(), args.value_head_dim, args.keys}, Output::overwrite);
}

std::int64_t pairs(const AttentionArguments& args) {
  return args.batch * args.heads * args.queries * args.keys;
}

/// Returns whether the work is worth more than one thread; every pair reads a row of keys or
/// values.
bool is_parallel(const AttentionArguments& args) {
  return pairs(args) * args.head_dim >= kSerialElements;
}

/// Bias of one row of the scores [batch, heads, queries, keys], or an indexer's choice, which
/// excludes one; null for none.
const float* bias_of_row(const AttentionArguments& args, std::int64_t row) {
  if (args.choice != nullptr) return choice_of_row(args, row);
  if (args.bias == nullptr) return nullptr;
  const std::int64_t rows = args.heads * args.queries;
  return args.bias + row / rows * args.bias_batch_stride + row % rows * args.keys;
}

/// Prefetches what softmax reads of a row. Inlined like the prefetches (see simd.h).
[[gnu::always_inline]] inline void prefetch_row(const AttentionArguments& args, const float* scores,
                                                std::int64_t row) {
  simd::prefetch_to_write(scores + row * args.keys, args.keys);
  if (args.bias != nullptr) simd::prefetch_to_read(bias_of_row(args, row), args.keys);
}

}  // namespace

std::int64_t visible_keys(const AttentionArguments& args, std::int64_t batch, std::int64_t query) {
  const std::int64_t own = args.past + query;
  std::int64_t end = args.causal ? std::min(args.keys, own + 1) : args.keys;
  if (args.spans != nullptr) {
    end = std::max(end, args.past + args.spans[batch * args.queries + query].end);
  }
  const bool looks_ahead = args.window.kind == WindowKind::centred;
  return looks_ahead ? std::min(end, own + args.window.size + 1) : end;
}

std::optional<std::int64_t> alibi_query(const AttentionArguments& args, std::int64_t query) {
  if (!args.slopes_of_distance) return std::nullopt;
  return args.past + query;
}

std::int64_t first_key(const AttentionArguments& args, std::int64_t batch, std::int64_t query) {
  const std::int64_t own = args.past + query;
  const std::int64_t size = args.window.size;
  std::int64_t first = 0;
  switch (args.window.kind) {
    case WindowKind::none:
      return 0;
    case WindowKind::sliding:
      first = std::max<std::int64_t>(0, own + 1 - size);
      break;
    case WindowKind::chunked:
      first = own / size * size;
      break;
    case WindowKind::centred:
      first = std::max<std::int64_t>(0, own - size);
      break;
  }
  if (args.spans == nullptr) return first;
  return std::min(first, args.past + args.spans[batch * args.queries + query].begin);
}

std::int64_t attention_scores(const AttentionArguments& args, float* scores) {
  if (args.queries < kMinTransposedQueries) {
#pragma omp parallel for collapse(3) schedule(static) if (is_parallel(args))
    for (std::int64_t batch = 0; batch < args.batch; ++batch) {
      for (std::int64_t kv_head = 0; kv_head < args.kv_heads; ++kv_head) {
        for (std::int64_t key = 0; key < args.keys; key += kTileColumns) {
          score_few(args, batch, kv_head, {key, std::min(args.keys, key + kTileColumns)}, scores);
        }
      }
    }
    return 2 * pairs(args) * args.head_dim;
  }
#pragma omp parallel for collapse(2) schedule(static) if (is_parallel(args))
  for (std::int64_t head = 0; head < args.batch * args.heads; ++head) {
    for (std::int64_t key = 0; key < args.keys; key += kTileColumns) {
      const Range keys = {key, std::min(args.keys, key + kTileColumns)};
      score_tile(args, head, keys, scores + head * args.queries * args.keys);
    }
  }
  return 2 * pairs(args) * args.head_dim;
}

void attention_softmax(const AttentionArguments& args, float* scores) {
  const std::int64_t rows = args.batch * args.heads * args.queries;
#pragma omp parallel for schedule(static) if (pairs(args) >= kSerialElements)
  for (std::int64_t row = 0; row < rows; ++row) {
    // Prefetch the next row during this one: it has left the cache since it was written.
    if (row + 1 < rows) prefetch_row(args, scores, row + 1);
    const std::int64_t query = row % args.queries;
    const std::int64_t head = row / args.queries % args.heads;
    const std::int64_t batch = row / args.queries / args.heads;
    softmax({.keys = args.keys,
             .visible = visible_keys(args, batch, query),
             .first = first_key(args, batch, query),
             .scale = args.scale,
             .soft_cap = args.soft_cap,
             .slope = args.slopes == nullptr ? 0.0F : args.slopes[head],
             .alibi_order = args.alibi_order,
             .query = alibi_query(args, query),
             .sink = args.sinks == nullptr ? nullptr : args.sinks + head,
             .bias = bias_of_row(args, row),
             .key_mask = args.key_mask == nullptr ? nullptr : args.key_mask + batch * args.keys},
            scores + row * args.keys);
  }
}

std::int64_t attention_context(const AttentionArguments& args, const float* probabilities) {
  if (args.queries < kMinTransposedQueries) {
#pragma omp parallel if (is_parallel(args))
    for (std::int64_t batch = 0; batch < args.batch; ++batch) {
      const Range own = thread_range(args.heads);
      for (std::int64_t kv_head = 0; kv_head < args.kv_heads; ++kv_head) {
        const Range group = group_of(args, kv_head);
        const Range heads = {std::max(own.begin, group.begin), std::min(own.end, group.end)};
        if (heads.begin < heads.end) context_few(args, batch, kv_head, heads, probabilities);
      }
    }
    return 2 * pairs(args) * args.value_head_dim;
  }
#pragma omp parallel for collapse(2) schedule(static) if (is_parallel(args))
  for (std::int64_t head = 0; head < args.batch * args.heads; ++head) {
    for (std::int64_t query = 0; query < args.queries; query += kQueryBlock) {
      const Range queries = {query, std::min(args.queries, query + kQueryBlock)};
      const float* const own = probabilities + head * args.queries * args.keys;
      if (args.queries >= kMinPackedQueries) {
        context_packed(args, head, queries, own);
      } else {
        context_in_place(args, head, queries, own);
      }
    }
  }
  return 2 * pairs(args) * args.value_head_dim;
}

}  // namespace headroom::measured
