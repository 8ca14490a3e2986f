#include "transformer_xl.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "parallel.h"
#include "tile_multiply.h"
#include "transpose.h"

namespace headroom::measured {
namespace {

/// Operands of one head of one sequence.
struct Head {
  const float* queries;       ///< rows of row_width
  const float* keys;          ///< likewise
  const float* content_bias;  ///< [head_dim], as the two below
  const float* position_bias;
  const float* segment_bias;
  std::array<const float*, 2> segments;  ///< [head_dim] each
  const std::int64_t* segment_ids;       ///< [tokens], or null
};

Head head_of(const TransformerXlArguments& args, std::int64_t batch, std::int64_t head) {
  const std::int64_t first = head * args.head_dim;
  const std::int64_t width = args.heads * args.head_dim;
  const float* const row = args.contents + batch * args.tokens * args.row_width + first;
  const std::int64_t* const ids =
      args.segment_ids == nullptr ? nullptr : args.segment_ids + batch * args.tokens;
  return {row,
          row + width,
          args.content_bias + first,
          args.position_bias + first,
          args.segment_bias + first,
          {args.segments + first, args.segments + width + first},
          ids};
}

/// Adds the terms of one query to its row of biases. `positions` are its dot products with the keys
/// of all positions, of which the one at `tokens` is for the query's own; `contents` are those of
/// the content bias with the keys.
void add_row(const TransformerXlArguments& args, const Head& head, std::int64_t query,
             const float* positions, const float* contents, float* row) {
  const float* const q = head.queries + query * args.row_width;
  std::array<float, 2> of_segment{};
  for (std::size_t i = 0; i < of_segment.size(); ++i) {
    of_segment[i] = dot(q, head.segments[i], args.head_dim) +
                    dot(head.segment_bias, head.segments[i], args.head_dim);
  }
  const float* const own = positions + args.tokens - query;
  if (head.segment_ids == nullptr) {
    for (std::int64_t key = 0; key < args.tokens; ++key) {
      row[key] = args.scale * (contents[key] + own[key] + of_segment[0]);
    }
    return;
  }
  for (std::int64_t key = 0; key < args.tokens; ++key) {
    const bool same = head.segment_ids[query] == head.segment_ids[key];
    // As an index, `same` is miscompiled by GCC 12 for Arm.
    const float segment = same ? of_segment[0] : of_segment[1];
    row[key] = args.scale * (contents[key] + own[key] + segment);
  }
}

/// The keys of all positions of one head, [head_dim, 2·tokens].
void transpose_positions(const TransformerXlArguments& args, std::int64_t batch, std::int64_t head,
                         float* transposed) {
  const std::int64_t positions = 2 * args.tokens;
  const std::int64_t width = args.heads * args.head_dim;
  const float* const from = args.positions + batch * positions * width + head * args.head_dim;
  transpose<RowEnd::exact>(
      positions, args.head_dim, [&](std::int64_t position) { return from + position * width; },
      [&](std::int64_t i) { return transposed + i * positions; });
}

/// Scratch of one head, whose positions are transposed.
struct HeadScratch {
  float* scores;      ///< [tokens, 2·tokens]
  float* transposed;  ///< [head_dim, 2·tokens]
  float* biased;      ///< [tokens, head_dim]
  float* contents;    ///< [tokens]
};

HeadScratch scratch_of(const TransformerXlArguments& args, float* scratch) {
  const std::int64_t positions = 2 * args.tokens;
  float* const transposed = scratch + args.tokens * positions;
  float* const biased = transposed + args.head_dim * positions;
  return {scratch, transposed, biased, biased + args.tokens * args.head_dim};
}

void add_head(const TransformerXlArguments& args, const Head& head, const HeadScratch& scratch,
              float* bias) {
  const std::int64_t positions = 2 * args.tokens;
  const std::int64_t dim = args.head_dim;
#pragma omp parallel
  {
    const Range own = thread_range(args.tokens);
    for (std::int64_t token = own.begin; token < own.end; ++token) {
      const float* const q = head.queries + token * args.row_width;
      float* const to = scratch.biased + token * dim;
      for (std::int64_t i = 0; i < dim; ++i) to[i] = q[i] + head.position_bias[i];
      scratch.contents[token] = dot(head.content_bias, head.keys + token * args.row_width, dim);
    }
    if (own.begin < own.end) {
      multiply({scratch.biased + own.begin * dim, dim, 1}, {scratch.transposed, positions},
               {scratch.scores + own.begin * positions, positions}, {own.size(), positions, dim},
               Output::overwrite);
    }
#pragma omp barrier
    for (std::int64_t query = own.begin; query < own.end; ++query) {
      add_row(args, head, query, scratch.scores + query * positions, scratch.contents,
              bias + query * args.tokens);
    }
  }
}

}  // namespace

void fill_relative_sinusoids(const RelativeSinusoidArguments& args, float* out) {
  constexpr double kBase = 10000;
  const bool earlier = args.rows == SinusoidRows::earlier;
  const std::int64_t half = args.width / 2;
  const std::int64_t steps = earlier ? std::max<std::int64_t>(half - 1, 1) : half;
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < half; ++i) {
    const double exponent = static_cast<double>(i) / static_cast<double>(steps);
    // In float32 like the reference code.
    frequencies.push_back(static_cast<float>(1 / std::pow(kBase, exponent)));
  }
  const std::int64_t first = earlier ? args.positions - 1 : args.positions / 2;
  for (std::int64_t row = 0; row < args.positions; ++row) {
    std::int64_t distance = first - row;
    if (args.most > 0) distance = std::clamp(distance, -args.most, args.most);
    for (std::int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(distance) * frequencies[static_cast<std::size_t>(i)];
      out[row * args.width + i] = std::sin(angle);
      out[row * args.width + half + i] = std::cos(angle);
    }
  }
  const std::int64_t size = args.positions * args.width;
  for (std::int64_t item = 1; item < args.batch; ++item) std::copy_n(out, size, out + item * size);
}

std::int64_t transformer_xl_bias(const TransformerXlArguments& args, float* scratch, float* bias) {
  constexpr std::int64_t kSegments = 2;
  const std::int64_t positions = 2 * args.tokens;
  const HeadScratch memory = scratch_of(args, scratch);
  const std::int64_t pairs = args.tokens * args.tokens;
  for (std::int64_t batch = 0; batch < args.batch; ++batch) {
    for (std::int64_t head = 0; head < args.heads; ++head) {
      transpose_positions(args, batch, head, memory.transposed);
      add_head(args, head_of(args, batch, head), memory,
               bias + (batch * args.heads + head) * pairs);
    }
  }
  const std::int64_t of_head =
      2 * (args.tokens * args.head_dim * (positions + kSegments) + pairs * kSegments);
  return args.batch * args.heads * of_head;
}

}  // namespace headroom::measured
