// Index scores: products of all heads' queries with a tile of keys at a time, summed over the heads
// while they are in cache.
#include <algorithm>
#include <array>
#include <cmath>

#include "indexer.h"
#include "parallel.h"
#include "tile_multiply.h"
#include "transpose.h"

namespace headroom::measured {
namespace {

constexpr std::int64_t kTransposedSteps = 512;  // dimensions of a transposed tile of keys
constexpr std::int64_t kQueryBlock = 64;        // queries per block of work
constexpr std::int64_t kProductRows = 64;       // of a block of products, which then stays in L1

/// Queries with one tile of keys. Rows are the heads of the queries, in order.
struct ScoreTile {
  const IndexerArguments& args;
  Range keys;
  std::int64_t rows;
  const float* q;        ///< [rows, head_dim]
  const float* weights;  ///< [rows]
  const float* k;        ///< [keys, head_dim]
  float* scores;         ///< [queries, keys], at the tile's first key
};

using Transposed = std::array<float, kTransposedSteps * kTileColumns>;
using Products = std::array<float, kProductRows * kTileColumns>;

void transpose_keys(const ScoreTile& tile, std::int64_t step, std::int64_t steps, Transposed& to) {
  transpose<RowEnd::padded>(
      tile.keys.size(), steps,
      [&](std::int64_t key) { return tile.k + key * tile.args.head_dim + step; },
      [&](std::int64_t i) { return to.data() + i * kTileColumns; });
}

/// products [rows, kTileColumns] = q·k. Keys of more than kTransposedSteps dimensions are
/// transposed in pieces for every block of rows, others once.
void multiply_rows(const ScoreTile& tile, Range rows, Transposed& transposed, Products& products) {
  const std::int64_t dim = tile.args.head_dim;
  for (std::int64_t step = 0; step < dim; step += kTransposedSteps) {
    const std::int64_t steps = std::min(kTransposedSteps, dim - step);
    if (rows.begin == 0 || dim > kTransposedSteps) transpose_keys(tile, step, steps, transposed);
    multiply_padded({tile.q + rows.begin * dim + step, dim, 1}, {transposed.data(), kTileColumns},
                    {products.data(), kTileColumns}, {rows.size(), tile.keys.size(), steps},
                    step == 0 ? Output::overwrite : Output::accumulate);
  }
}

/// Adds w·ReLU(product) of every row to the scores of its query.
void add_weighted(const ScoreTile& tile, Range rows, const Products& products) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const product = products.data() + (row - rows.begin) * kTileColumns;
    float* const to = tile.scores + row / tile.args.heads * tile.args.keys;
    const float weight = tile.weights[row];
    for (std::int64_t key = 0; key < tile.keys.size(); ++key) {
      to[key] += weight * std::max(product[key], 0.0F);
    }
  }
}

void score(const ScoreTile& tile) {
  alignas(64) Transposed transposed;
  alignas(64) Products products;
  const IndexerArguments& args = tile.args;
  const std::int64_t queries = tile.rows / args.heads;
  for (std::int64_t query = 0; query < queries; ++query) {
    std::fill_n(tile.scores + query * args.keys, tile.keys.size(), 0.0F);
  }
  for (std::int64_t row = 0; row < tile.rows; row += kProductRows) {
    const Range rows{row, std::min(tile.rows, row + kProductRows)};
    multiply_rows(tile, rows, transposed, products);
    add_weighted(tile, rows, products);
  }
  const float scale = 1.0F / std::sqrt(static_cast<float>(args.heads * args.head_dim));
  for (std::int64_t query = 0; query < queries; ++query) {
    multiply_row(scale, tile.keys.size(), tile.scores + query * args.keys);
  }
}

ScoreTile tile_of(const IndexerArguments& args, std::int64_t batch, Range queries, Range keys,
                  float* scores) {
  const std::int64_t query = batch * args.queries + queries.begin;
  return {args,
          keys,
          queries.size() * args.heads,
          args.q + query * args.heads * args.head_dim,
          args.weights + query * args.heads,
          args.k + batch * args.key_batch_stride + keys.begin * args.head_dim,
          scores + query * args.keys + keys.begin};
}

}  // namespace

std::int64_t index_scores(const IndexerArguments& args, float* scores) {
  const std::int64_t products = args.batch * args.queries * args.heads * args.keys;
#pragma omp parallel for collapse(3) schedule(static) if (products >= kSerialElements)
  for (std::int64_t batch = 0; batch < args.batch; ++batch) {
    for (std::int64_t query = 0; query < args.queries; query += kQueryBlock) {
      for (std::int64_t key = 0; key < args.keys; key += kTileColumns) {
        score(tile_of(args, batch, {query, std::min(args.queries, query + kQueryBlock)},
                      {key, std::min(args.keys, key + kTileColumns)}, scores));
      }
    }
  }
  return 2 * products * (args.head_dim + 1);
}

std::int64_t index_products(const IndexerArguments& args, float* scores) {
  AttentionArguments attention;
  attention.batch = args.batch;
  attention.heads = args.heads;
  attention.kv_heads = 1;
  attention.head_dim = args.head_dim;
  attention.queries = args.queries;
  attention.keys = args.keys;
  attention.q = args.q;
  attention.k = args.k;
  attention.q_stride = args.heads * args.head_dim;
  attention.q_batch_stride = args.queries * attention.q_stride;
  attention.k_stride = args.head_dim;
  attention.k_batch_stride = args.key_batch_stride;
  return attention_scores(attention, scores);
}

}  // namespace headroom::measured
