#include "hyper_connections.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "parallel.h"
#include "scalar_math.h"
#include "softmax.h"
#include "tile_multiply.h"

namespace headroom::measured {
namespace {

/// Divides each row of a matrix [n, n] by its sum.
void normalise_rows(std::int64_t n, float eps, float* matrix) {
  for (std::int64_t row = 0; row < n; ++row) {
    float* const first = matrix + row * n;
    const float sum = std::accumulate(first, first + n, 0.0F) + eps;
    for (std::int64_t column = 0; column < n; ++column) first[column] /= sum;
  }
}

void normalise_columns(std::int64_t n, float eps, float* matrix) {
  for (std::int64_t column = 0; column < n; ++column) {
    float sum = eps;
    for (std::int64_t row = 0; row < n; ++row) sum += matrix[row * n + column];
    for (std::int64_t row = 0; row < n; ++row) matrix[row * n + column] /= sum;
  }
}

/// Makes a matrix of logits doubly stochastic.
void sinkhorn(const StreamWeightArguments& args, float* matrix) {
  const std::int64_t n = args.streams;
  softmax_rows(matrix, n, n);
  for (std::int64_t i = 0; i < n * n; ++i) matrix[i] += args.eps;
  normalise_columns(n, args.eps, matrix);
  for (std::int64_t iteration = 1; iteration < args.iterations; ++iteration) {
    normalise_rows(n, args.eps, matrix);
    normalise_columns(n, args.eps, matrix);
  }
}

void weights_of_row(const StreamWeightArguments& args, float* row) {
  const std::int64_t n = args.streams;
  for (std::int64_t i = 0; i < args.stride; ++i) {
    row[i] = row[i] * args.scale[std::min<std::int64_t>(i / n, 2)] + args.base[i];
  }
  for (std::int64_t i = 0; i < n; ++i) row[i] = sigmoid(row[i]) + args.eps;
  if (args.iterations == 0) return;
  for (std::int64_t i = n; i < 2 * n; ++i) row[i] = 2 * sigmoid(row[i]);
  sinkhorn(args, row + 2 * n);
}

}  // namespace

void stream_weights(const StreamWeightArguments& args, float* logits) {
  for (std::int64_t row = 0; row < args.rows; ++row) {
    weights_of_row(args, logits + row * args.stride);
  }
}

void expand_streams(const Streams& sizes, const float* x, float* out) {
  for (std::int64_t i = 0; i < sizes.rows * sizes.streams; ++i) {
    std::copy_n(x + i / sizes.streams * sizes.width, sizes.width, out + i * sizes.width);
  }
}

void sum_streams(const Streams& sizes, const float* weights, std::int64_t stride, const float* x,
                 float* out) {
  const std::int64_t elements = sizes.streams * sizes.width;
#pragma omp parallel for schedule(static) if (sizes.rows * elements >= kSerialElements)
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    float* const to = out + row * sizes.width;
    std::fill_n(to, sizes.width, 0.0F);
    for (std::int64_t stream = 0; stream < sizes.streams; ++stream) {
      add_scaled(weights[row * stride + stream], x + row * elements + stream * sizes.width,
                 sizes.width, to);
    }
  }
}

std::int64_t update_streams(const Streams& sizes, const float* weights, std::int64_t stride,
                            const float* branch, float* x) {
  const std::int64_t n = sizes.streams;
  const std::int64_t elements = n * sizes.width;
#pragma omp parallel for schedule(static) if (sizes.rows * elements >= kSerialElements)
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    float* const streams = x + row * elements;
    const std::vector<float> before(streams, streams + elements);
    const float* const additions = weights + row * stride + n;
    const float* const matrix = additions + n;
    std::fill_n(streams, elements, 0.0F);
    for (std::int64_t k = 0; k < n; ++k) {
      float* const to = streams + k * sizes.width;
      add_scaled(additions[k], branch + row * sizes.width, sizes.width, to);
      for (std::int64_t j = 0; j < n; ++j) {
        add_scaled(matrix[j * n + k], before.data() + j * sizes.width, sizes.width, to);
      }
    }
  }
  return 2 * sizes.rows * n * elements;
}

}  // namespace headroom::measured
