#include "disentangled.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "parallel.h"
#include "tile_multiply.h"

namespace headroom::measured {

namespace {

/// Distances of at most half of the buckets have one each; larger ones share buckets on a
/// logarithmic scale.
std::int64_t bucket_of(const DisentangledSpec& spec, std::int64_t distance) {
  const std::int64_t middle = spec.num_buckets / 2;
  const std::int64_t size = std::abs(distance);
  if (size <= middle) return distance;
  const float ratio = static_cast<float>(size) / static_cast<float>(middle);
  const double last = static_cast<double>(spec.max_distance - 1) / static_cast<double>(middle);
  const float range = std::log(static_cast<float>(last));
  const float place = std::ceil(std::log(ratio) / range * static_cast<float>(middle - 1));
  const auto bucket = static_cast<std::int64_t>(place) + middle;
  return distance > 0 ? bucket : -bucket;
}

/// out [heads·head_dim, positions] = weight · tableᵀ + bias
std::int64_t project(const DisentangledArguments& args, const PositionProjection& projection,
                     const float* transposed, float* out) {
  const std::int64_t rows = args.projected_width();
  const std::int64_t positions = args.spec.num_positions;
#pragma omp parallel
  {
    const Range own = thread_range(rows);
    for (std::int64_t row = own.begin; row < own.end; ++row) {
      const float bias = projection.bias == nullptr ? 0.0F : projection.bias[row];
      std::fill_n(out + row * positions, positions, bias);
    }
    if (own.begin < own.end) {
      multiply({projection.weight + own.begin * args.width, args.width, 1}, {transposed, positions},
               {out + own.begin * positions, positions}, {own.size(), positions, args.width},
               Output::accumulate);
    }
  }
  return 2 * rows * positions * args.width;
}

/// Content of a pair that a term reads.
enum class Content { query, key };

/// Adds one term of a head to its bias [tokens, tokens].
std::int64_t add_term(const DisentangledArguments& args, Content content, const float* contents,
                      const float* projected, const std::vector<std::int64_t>& rows, float* scores,
                      float* bias) {
  const std::int64_t tokens = args.tokens;
  const std::int64_t positions = args.spec.num_positions;
#pragma omp parallel
  {
    const Range own = thread_range(tokens);
    if (own.begin < own.end) {
      multiply({contents + own.begin * args.row_width, args.row_width, 1}, {projected, positions},
               {scores + own.begin * positions, positions}, {own.size(), positions, args.head_dim},
               Output::overwrite);
    }
#pragma omp barrier
    for (std::int64_t query = own.begin; query < own.end; ++query) {
      for (std::int64_t key = 0; key < tokens; ++key) {
        const std::int64_t row = rows[static_cast<std::size_t>(query - key + tokens - 1)];
        const std::int64_t token = content == Content::query ? query : key;
        bias[query * tokens + key] += args.scale * scores[token * positions + row];
      }
    }
  }
  return 2 * tokens * positions * args.head_dim;
}

/// The table's keys and queries, each [heads·head_dim, positions]; null without the term.
struct ProjectedTable {
  const float* keys = nullptr;
  const float* queries = nullptr;
  std::int64_t flops = 0;
};

ProjectedTable project_table(const DisentangledArguments& args, float* transposed,
                             float* projected) {
  const std::int64_t positions = args.spec.num_positions;
  for (std::int64_t row = 0; row < positions; ++row) {
    for (std::int64_t i = 0; i < args.width; ++i) {
      transposed[i * positions + row] = args.table[row * args.width + i];
    }
  }
  ProjectedTable table;
  if (args.key.weight != nullptr) {
    table.flops += project(args, args.key, transposed, projected);
    table.keys = projected;
    projected += args.projected_width() * positions;
  }
  if (args.query.weight != nullptr) {
    table.flops += project(args, args.query, transposed, projected);
    table.queries = projected;
  }
  return table;
}

/// Table rows of all distances, from 1 - tokens to tokens - 1.
std::vector<std::int64_t> rows_by_distance(const DisentangledArguments& args) {
  std::vector<std::int64_t> rows;
  for (std::int64_t distance = 1 - args.tokens; distance < args.tokens; ++distance) {
    rows.push_back(position_row(args.spec, distance));
  }
  return rows;
}

}  // namespace

std::int64_t DisentangledArguments::scratch_floats() const {
  const int projections = (key.weight != nullptr ? 1 : 0) + (query.weight != nullptr ? 1 : 0);
  return spec.num_positions * (width + tokens + projections * projected_width());
}

std::int64_t position_row(const DisentangledSpec& spec, std::int64_t distance) {
  const std::int64_t half = spec.num_positions / 2;
  const std::int64_t bucket = spec.num_buckets > 0 ? bucket_of(spec, distance) : distance;
  return std::clamp<std::int64_t>(bucket + half, 0, spec.num_positions - 1);
}

std::int64_t disentangled_bias(const DisentangledArguments& args, float* scratch, float* bias) {
  const std::int64_t positions = args.spec.num_positions;
  float* const scores = scratch + positions * args.width;
  const ProjectedTable table = project_table(args, scratch, scores + positions * args.tokens);
  const std::vector<std::int64_t> rows = rows_by_distance(args);
  std::int64_t flops = table.flops;
  const std::int64_t pairs = args.tokens * args.tokens;
  std::fill_n(bias, args.batch * args.heads * pairs, 0.0F);
  for (std::int64_t batch = 0; batch < args.batch; ++batch) {
    for (std::int64_t head = 0; head < args.heads; ++head) {
      const float* const queries =
          args.contents + batch * args.tokens * args.row_width + head * args.head_dim;
      const float* const keys = queries + args.projected_width();
      float* const own = bias + (batch * args.heads + head) * pairs;
      const std::int64_t first = head * args.head_dim * positions;
      if (args.spec.content_to_position) {
        flops += add_term(args, Content::query, queries, table.keys + first, rows, scores, own);
      }
      if (args.spec.position_to_content) {
        flops += add_term(args, Content::key, keys, table.queries + first, rows, scores, own);
      }
    }
  }
  return flops;
}

}  // namespace headroom::measured
