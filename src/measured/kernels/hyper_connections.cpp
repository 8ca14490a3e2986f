#include "hyper_connections.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "aligned.h"
#include "elementwise.h"
#include "parallel.h"
#include "tile_multiply.h"
#include "transpose.h"
#include "vector_math.h"

namespace headroom::measured {
namespace {

using simd::Floats;
using simd::kLanes;

/// Weights of kLanes tokens at a time, one lane each: `[stride]` vectors.
class TokenWeights {
 public:
  explicit TokenWeights(const StreamWeightArguments& args)
      : args_(args), values_(static_cast<std::size_t>(args.stride * kLanes)) {}

  /// Replaces the logits of at most kLanes tokens.
  void run(float* logits, std::int64_t tokens) {
    read(logits, tokens);
    const std::int64_t n = args_.streams;
    for (std::int64_t i = 0; i < n; ++i) set(i, simd::sigmoid(at(i)) + args_.eps);
    for (std::int64_t i = n; i < std::min(2 * n, args_.stride); ++i) {
      set(i, args_.addition_scale * simd::sigmoid(at(i)) + args_.addition_eps);
    }
    if (args_.iterations > 0) sinkhorn();
    transpose<RowEnd::exact>(
        args_.stride, tokens, [&](std::int64_t i) { return values_.data() + i * kLanes; },
        [&](std::int64_t token) { return logits + token * args_.stride; });
  }

 private:
  /// Elements of a row or of a column of the matrix: `first`, then every `step`.
  struct Line {
    std::int64_t first;
    std::int64_t step;
  };

  [[nodiscard]] Floats at(std::int64_t i) const { return simd::load(values_.data() + i * kLanes); }
  void set(std::int64_t i, Floats value) { simd::store(values_.data() + i * kLanes, value); }

  void read(const float* logits, std::int64_t tokens) {
    transpose<RowEnd::padded>(
        tokens, args_.stride, [&](std::int64_t token) { return logits + token * args_.stride; },
        [&](std::int64_t i) { return values_.data() + i * kLanes; });
    for (std::int64_t i = 0; i < args_.stride; ++i) {
      const float scale = args_.scale[std::min<std::int64_t>(i / args_.streams, 2)];
      set(i, at(i) * scale + args_.base[i]);
    }
  }

  [[nodiscard]] Line row(std::int64_t number) const { return {(2 + number) * args_.streams, 1}; }
  [[nodiscard]] Line column(std::int64_t number) const {
    return {2 * args_.streams + number, args_.streams};
  }

  /// Divides a line by its sum.
  void normalise(const Line& line) {
    Floats sum = simd::broadcast(args_.eps);
    for_each(line, [&](std::int64_t i) { sum += at(i); });
    const Floats factor = 1.0F / sum;
    for_each(line, [&](std::int64_t i) { set(i, at(i) * factor); });
  }

  void softmax(const Line& line) {
    Floats largest = at(line.first);
    for_each(line, [&](std::int64_t i) { largest = simd::max(largest, at(i)); });
    Floats sum = {};
    for_each(line, [&](std::int64_t i) {
      set(i, simd::exp(at(i) - largest));
      sum += at(i);
    });
    const Floats factor = 1.0F / sum;
    for_each(line, [&](std::int64_t i) { set(i, at(i) * factor + args_.eps); });
  }

  /// Makes the matrices of logits doubly stochastic.
  void sinkhorn() {
    const std::int64_t n = args_.streams;
    for (std::int64_t i = 0; i < n; ++i) softmax(row(i));
    for (std::int64_t i = 0; i < n; ++i) normalise(column(i));
    for (std::int64_t iteration = 1; iteration < args_.iterations; ++iteration) {
      for (std::int64_t i = 0; i < n; ++i) normalise(row(i));
      for (std::int64_t i = 0; i < n; ++i) normalise(column(i));
    }
  }

  template <class Body>
  void for_each(const Line& line, const Body& body) const {
    for (std::int64_t i = 0; i < args_.streams; ++i) body(line.first + i * line.step);
  }

  const StreamWeightArguments& args_;
  AlignedVector<float> values_;
};

}  // namespace

void stream_weights(const StreamWeightArguments& args, float* logits) {
#pragma omp parallel if (args.rows * args.stride >= kSerialElements)
  {
    TokenWeights weights(args);
#pragma omp for schedule(static)
    for (std::int64_t row = 0; row < args.rows; row += kLanes) {
      weights.run(logits + row * args.stride, std::min(kLanes, args.rows - row));
    }
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

void mean_of_streams(const Streams& sizes, const float* x, float* out) {
  const std::int64_t elements = sizes.streams * sizes.width;
#pragma omp parallel for schedule(static) if (sizes.rows * elements >= kSerialElements)
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    float* const to = std::copy_n(x + row * elements, sizes.width, out + row * sizes.width);
    float* const first = to - sizes.width;
    for (std::int64_t stream = 1; stream < sizes.streams; ++stream) {
      add_residual(first, x + row * elements + stream * sizes.width, sizes.width);
    }
    scale(first, 1.0F / static_cast<float>(sizes.streams), sizes.width);
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

void add_to_streams(const Streams& sizes, const float* weights, std::int64_t stride,
                    const float* branch, float* x) {
  const std::int64_t elements = sizes.streams * sizes.width;
#pragma omp parallel for schedule(static) if (sizes.rows * elements >= kSerialElements)
  for (std::int64_t row = 0; row < sizes.rows; ++row) {
    const float* const additions = weights + row * stride + sizes.streams;
    for (std::int64_t k = 0; k < sizes.streams; ++k) {
      add_scaled(additions[k], branch + row * sizes.width, sizes.width,
                 x + row * elements + k * sizes.width);
    }
  }
}

namespace {

/// Score of one row of a stream.
float stream_score(const AttendArguments& args, const float* row) {
  double squares = 0;
  double product = 0;
  for (std::int64_t i = 0; i < args.width; ++i) {
    const auto value = static_cast<double>(row[i]);
    squares += value * value;
    product += value * static_cast<double>(args.norm[i]) * static_cast<double>(args.projection[i]);
  }
  const double mean = squares / static_cast<double>(args.width);
  return static_cast<float>(product / std::sqrt(mean + static_cast<double>(args.eps)));
}

void attend_row(const AttendArguments& args, std::int64_t row, float* out) {
  std::vector<float> probabilities;
  for (const float* const stream : args.streams) {
    probabilities.push_back(stream_score(args, stream + row * args.width));
  }
  const float most = *std::ranges::max_element(probabilities);
  float sum = 0;
  for (float& probability : probabilities) {
    probability = std::exp(probability - most);
    sum += probability;
  }
  std::fill_n(out, args.width, 0.0F);
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    add_scaled(probabilities[i] / sum, args.streams[i] + row * args.width, args.width, out);
  }
}

}  // namespace

std::int64_t attend_streams(const AttendArguments& args, float* out) {
  const auto elements = std::ssize(args.streams) * args.rows * args.width;
#pragma omp parallel for schedule(static) if (elements >= kSerialElements)
  for (std::int64_t row = 0; row < args.rows; ++row) attend_row(args, row, out + row * args.width);
  return 2 * elements;
}

}  // namespace headroom::measured
