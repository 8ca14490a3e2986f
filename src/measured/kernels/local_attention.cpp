#include "local_attention.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "softmax.h"
#include "tile_multiply.h"

namespace headroom::measured {
namespace {

/// Scratch of one head.
struct HeadMemory {
  float* queries;    ///< [chunk, head_dim]
  float* keys;       ///< [head_dim, context]
  float* values;     ///< [context, head_dim]
  float* positions;  ///< [head_dim, positions]
  float* scores;     ///< [chunk, context]
  float* relative;   ///< [chunk, positions]
};

HeadMemory memory_of(const LocalAttentionArguments& args, float* scratch) {
  HeadMemory memory{};
  memory.queries = scratch;
  memory.keys = memory.queries + args.chunk * args.head_dim;
  memory.values = memory.keys + args.context() * args.head_dim;
  memory.positions = memory.values + args.context() * args.head_dim;
  memory.scores = memory.positions + args.positions * args.head_dim;
  memory.relative = memory.scores + args.chunk * args.context();
  return memory;
}

/// A chunk of a clip, in one head.
struct ChunkPlace {
  std::int64_t head = 0;
  std::int64_t clip_begin = 0;  ///< among all rows
  std::int64_t clip_rows = 0;
  std::int64_t first = 0;    ///< of the chunk's rows in its clip
  std::int64_t queries = 0;  ///< fewer in a clip's last chunk
};

/// Row `row` of the clip, in the chunk's head.
const float* row_of(const LocalAttentionArguments& args, const ChunkPlace& at, const float* rows,
                    std::int64_t row) {
  return rows + (at.clip_begin + row) * args.row_width() + at.head * args.head_dim;
}

/// softplus(scale)/(ln 2·√head_dim) of dimension `i`.
float query_factor(const LocalAttentionArguments& args, std::int64_t i) {
  const double trained = std::log1p(std::exp(static_cast<double>(args.scale[i])));
  return static_cast<float>(trained / std::numbers::ln2 /
                            std::sqrt(static_cast<double>(args.head_dim)));
}

/// ln(1 + e)/ln 2, or 1.
float key_factor(ConformerKeys keys) {
  switch (keys) {
    case ConformerKeys::scaled:
      return static_cast<float>(std::log1p(std::numbers::e) / std::numbers::ln2);
    case ConformerKeys::plain:
      break;
  }
  return 1;
}

/// Columns that a query sees in a chunk far from the ends of its clip.
struct SeenColumns {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

SeenColumns seen_columns(const LocalAttentionArguments& args, std::int64_t query) {
  const std::int64_t own = query + args.earlier;
  switch (args.keys) {
    case ConformerKeys::scaled:
      return {query + 1, own + std::max<std::int64_t>(args.later - 1, 0)};
    case ConformerKeys::plain:
      break;
  }
  return {query, own + args.later};
}

/// Copies the chunk's queries, scaled, and its keys, scaled, and values; zeros outside the clip.
void gather(const LocalAttentionArguments& args, const ChunkPlace& at, const HeadMemory& memory) {
  const float scaled_by = key_factor(args.keys);
  const std::int64_t dim = args.head_dim;
  const std::int64_t context = args.context();
  for (std::int64_t i = 0; i < dim; ++i) {
    const float factor = query_factor(args, i);
    for (std::int64_t query = 0; query < at.queries; ++query) {
      memory.queries[query * dim + i] = factor * row_of(args, at, args.query, at.first + query)[i];
    }
  }
  for (std::int64_t column = 0; column < context; ++column) {
    const std::int64_t row = at.first - args.earlier + column;
    const bool inside = row >= 0 && row < at.clip_rows;
    const float* const key = inside ? row_of(args, at, args.key, row) : nullptr;
    const float* const value = inside ? row_of(args, at, args.value, row) : nullptr;
    for (std::int64_t i = 0; i < dim; ++i) {
      memory.keys[i * context + column] = inside ? scaled_by * key[i] : 0;
      memory.values[column * dim + i] = inside ? value[i] : 0;
    }
  }
}

/// Adds the scores of the positions and turns a query's scores into probabilities. Column j of
/// query i is `earlier` + i - j rows before it, whose position key is number j - i.
void finish_row(const LocalAttentionArguments& args, const ChunkPlace& at, std::int64_t query,
                const float* relative, float* scores) {
  const std::int64_t context = args.context();
  const std::int64_t end = std::min(context, query + args.positions);
  for (std::int64_t column = query; column < end; ++column) {
    scores[column] += relative[column - query];
  }
  SoftmaxRow row;
  row.keys = context;
  row.soft_cap = args.soft_cap;
  const std::int64_t before_clip = args.earlier - at.first;
  const SeenColumns seen = seen_columns(args, query);
  row.first = std::max(seen.first, before_clip);
  row.visible = std::min({context, seen.last + 1, before_clip + at.clip_rows});
  softmax(row, scores);
}

void attend(const LocalAttentionArguments& args, const ChunkPlace& at, const HeadMemory& memory,
            float* out) {
  const std::int64_t dim = args.head_dim;
  const std::int64_t context = args.context();
  gather(args, at, memory);
  const TileLeft queries{memory.queries, dim, 1};
  multiply(queries, {memory.keys, context}, {memory.scores, context}, {at.queries, context, dim},
           Output::overwrite);
  multiply(queries, {memory.positions, args.positions}, {memory.relative, args.positions},
           {at.queries, args.positions, dim}, Output::overwrite);
  for (std::int64_t query = 0; query < at.queries; ++query) {
    finish_row(args, at, query, memory.relative + query * args.positions,
               memory.scores + query * context);
  }
  float* const to = out + (at.clip_begin + at.first) * args.row_width() + at.head * dim;
  multiply({memory.scores, context, 1}, {memory.values, dim}, {to, args.row_width()},
           {at.queries, dim, context}, Output::overwrite);
}

void attend_head(const LocalAttentionArguments& args, std::int64_t head, const HeadMemory& memory,
                 float* out) {
  for (std::int64_t position = 0; position < args.positions; ++position) {
    const float* const key = args.position_key + position * args.row_width() + head * args.head_dim;
    for (std::int64_t i = 0; i < args.head_dim; ++i) {
      memory.positions[i * args.positions + position] = key[i];
    }
  }
  std::int64_t begin = 0;
  for (const std::int64_t rows : args.clips) {
    for (std::int64_t first = 0; first < rows; first += args.chunk) {
      attend(args, {head, begin, rows, first, std::min(args.chunk, rows - first)}, memory, out);
    }
    begin += rows;
  }
}

}  // namespace

std::int64_t local_attention(const LocalAttentionArguments& args, float* scratch, float* out) {
#pragma omp parallel for schedule(static)
  for (std::int64_t head = 0; head < args.heads; ++head) {
    attend_head(args, head, memory_of(args, scratch + head * args.scratch_of_head()), out);
  }
  std::int64_t rows = 0;
  for (const std::int64_t of_clip : args.clips) rows += of_clip;
  return 2 * rows * args.row_width() * (2 * args.context() + args.positions);
}

}  // namespace headroom::measured
