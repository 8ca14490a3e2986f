#include "transformer_xl.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "parallel.h"
#include "tile_multiply.h"

namespace headroom::measured {
namespace {

float dot_of(const float* a, const float* b, std::int64_t count) {
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

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
/// of all positions, of which the one at `tokens` is for the query's own.
void add_row(const TransformerXlArguments& args, const Head& head, std::int64_t query,
             const float* positions, float* row) {
  const float* const q = head.queries + query * args.row_width;
  std::array<float, 2> of_segment{};
  for (std::size_t i = 0; i < of_segment.size(); ++i) {
    of_segment[i] = dot_of(q, head.segments[i], args.head_dim) +
                    dot_of(head.segment_bias, head.segments[i], args.head_dim);
  }
  for (std::int64_t key = 0; key < args.tokens; ++key) {
    const bool same =
        head.segment_ids == nullptr || head.segment_ids[query] == head.segment_ids[key];
    const float content =
        dot_of(head.content_bias, head.keys + key * args.row_width, args.head_dim);
    const float position = positions[args.tokens - query + key];
    row[key] = args.scale * (content + position + of_segment[same ? 0 : 1]);
  }
}

/// The keys of all positions of one head, [head_dim, 2·tokens].
void transpose_positions(const TransformerXlArguments& args, std::int64_t batch, std::int64_t head,
                         float* transposed) {
  const std::int64_t positions = 2 * args.tokens;
  const std::int64_t width = args.heads * args.head_dim;
  const float* const from = args.positions + batch * positions * width + head * args.head_dim;
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t i = 0; i < args.head_dim; ++i) {
      transposed[i * positions + position] = from[position * width + i];
    }
  }
}

/// One head of one sequence, whose positions are transposed.
void add_head(const TransformerXlArguments& args, const Head& head, const float* transposed,
              float* biased, float* scores, float* bias) {
  const std::int64_t positions = 2 * args.tokens;
#pragma omp parallel
  {
    const Range own = thread_range(args.tokens);
    for (std::int64_t query = own.begin; query < own.end; ++query) {
      const float* const q = head.queries + query * args.row_width;
      for (std::int64_t i = 0; i < args.head_dim; ++i) {
        biased[query * args.head_dim + i] = q[i] + head.position_bias[i];
      }
    }
    if (own.begin < own.end) {
      multiply({biased + own.begin * args.head_dim, args.head_dim, 1}, {transposed, positions},
               {scores + own.begin * positions, positions}, {own.size(), positions, args.head_dim},
               Output::overwrite);
    }
    for (std::int64_t query = own.begin; query < own.end; ++query) {
      add_row(args, head, query, scores + query * positions, bias + query * args.tokens);
    }
  }
}

}  // namespace

void fill_relative_sinusoids(const RelativeSinusoidArguments& args, float* out) {
  constexpr double kBase = 10000;
  const std::int64_t half = args.width / 2;
  for (std::int64_t row = 0; row < args.positions; ++row) {
    std::int64_t distance = args.positions / 2 - row;
    if (args.most > 0) distance = std::clamp(distance, -args.most, args.most);
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = 2 * static_cast<double>(i) / static_cast<double>(args.width);
      // In float32 like the reference code.
      const auto frequency = static_cast<float>(1 / std::pow(kBase, exponent));
      const float angle = static_cast<float>(distance) * frequency;
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
  float* const scores = scratch;
  float* const transposed = scores + args.tokens * positions;
  float* const biased = transposed + args.head_dim * positions;
  const std::int64_t pairs = args.tokens * args.tokens;
  for (std::int64_t batch = 0; batch < args.batch; ++batch) {
    for (std::int64_t head = 0; head < args.heads; ++head) {
      transpose_positions(args, batch, head, transposed);
      add_head(args, head_of(args, batch, head), transposed, biased, scores,
               bias + (batch * args.heads + head) * pairs);
    }
  }
  const std::int64_t of_head =
      2 * (args.tokens * args.head_dim * (positions + kSegments) + pairs * kSegments);
  return args.batch * args.heads * of_head;
}

}  // namespace headroom::measured
