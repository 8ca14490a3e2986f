#include "altup.h"

#include <algorithm>
#include <cmath>

#include "elementwise.h"

namespace headroom::measured {
namespace {

float mean_square(const float* row, std::int64_t width) {
  float sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += row[i] * row[i];
  return sum / static_cast<float>(width);
}

/// Factor that gives `row` the root mean square `target`.
float matching_factor(float target, const float* row, std::int64_t width) {
  constexpr float kLeast = 1e-5F;  // of the mean square (transformers, Gemma3nTextModel)
  return target / std::sqrt(std::max(mean_square(row, width), kLeast));
}

}  // namespace

void altup_stack(const AltUpArguments& args, std::span<const float* const> inputs, float* out) {
  std::copy_n(inputs[0], args.stream_floats(), out);
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const std::int64_t first = row * args.width;
    const float target = std::sqrt(mean_square(inputs[0] + first, args.width));
    for (std::size_t stream = 1; stream < inputs.size(); ++stream) {
      const float* const from = inputs[stream] + first;
      float* const to = out + static_cast<std::int64_t>(stream) * args.stream_floats() + first;
      const float factor = matching_factor(target, from, args.width);
      for (std::int64_t i = 0; i < args.width; ++i) to[i] = from[i] * factor;
    }
  }
}

void altup_merge(const AltUpArguments& args, std::span<const float* const> inputs, float* out) {
  const float share = 1.0F / static_cast<float>(args.streams);
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const std::int64_t first = row * args.width;
    const float target = std::sqrt(mean_square(inputs[0] + first, args.width));
    float* const to = out + first;
    if (to != inputs[0] + first) std::copy_n(inputs[0] + first, args.width, to);
    for (std::size_t stream = 1; stream < inputs.size(); ++stream) {
      const float* const from = inputs[stream] + first;
      const float factor = matching_factor(target, from, args.width);
      for (std::int64_t i = 0; i < args.width; ++i) to[i] += from[i] * factor;
    }
    for (std::int64_t i = 0; i < args.width; ++i) to[i] *= share;
  }
}

void altup_select(const AltUpArguments& args, const float* streams, float* out) {
  std::copy_n(streams + args.index * args.stream_floats(), args.stream_floats(), out);
}

std::int64_t altup_predict(const AltUpArguments& args, const float* streams,
                           const float* coefficients, float* out) {
  std::int64_t flops = 0;
  for (std::int64_t stream = 0; stream < args.streams; ++stream) {
    for (std::int64_t row = 0; row < args.rows; ++row) {
      const std::int64_t first = row * args.width;
      float* const to = out + stream * args.stream_floats() + first;
      std::copy_n(streams + stream * args.stream_floats() + first, args.width, to);
      const float* const factors = coefficients + (row * args.streams + stream) * args.streams;
      for (std::int64_t from = 0; from < args.streams; ++from, flops += 2 * args.width) {
        const float* const other = streams + from * args.stream_floats() + first;
        for (std::int64_t i = 0; i < args.width; ++i) to[i] += factors[from] * other[i];
      }
    }
  }
  return flops;
}

void altup_correct(const AltUpArguments& args, const float* activated, const float* coefficients,
                   float* streams) {
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const std::int64_t first = row * args.width;
    const float* const factors = coefficients + row * args.streams;
    for (std::int64_t i = 0; i < args.width; ++i) {
      const float active = streams[args.index * args.stream_floats() + first + i];
      const float innovation = activated[first + i] - active;
      for (std::int64_t stream = 0; stream < args.streams; ++stream) {
        streams[stream * args.stream_floats() + first + i] += innovation * (factors[stream] + 1.0F);
      }
    }
  }
}

void altup_spread(const AltUpArguments& args, const float* added, float* streams) {
  for (std::int64_t stream = 1; stream < args.streams; ++stream) {
    add_residual(streams + stream * args.stream_floats(), added, args.stream_floats());
  }
}

}  // namespace headroom::measured
