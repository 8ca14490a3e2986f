#include "normalize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "parallel.h"
#include "simd.h"

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

/// Sums f(i, lanes in use) over a row. Independent sums hide the latency of additions.
template <class Function>
float sum_over(std::int64_t width, const Function& f) {
  constexpr std::size_t kSums = 4;
  constexpr std::int64_t kStep = static_cast<std::int64_t>(kSums) * kLanes;
  std::array<Floats, kSums> sums = {};
  std::int64_t i = 0;
  for (; i + kStep <= width; i += kStep) {
    simd::unroll<kSums>(
        [&](auto s) { sums[s] += f(i + static_cast<std::int64_t>(s) * kLanes, kLanes); });
  }
  for (; i < width; i += kLanes) sums[0] += f(i, std::min(kLanes, width - i));
  return simd::sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

Floats load_lanes(const float* from, std::int64_t count) {
  return count == kLanes ? simd::load(from) : simd::load_first(from, count);
}

void store_lanes(float* to, Floats value, std::int64_t count) {
  if (count == kLanes) {
    simd::store(to, value);
  } else {
    simd::store_first(to, value, count);
  }
}

/// The first `count` lanes; the others are zero.
Floats keep_first(Floats value, std::int64_t count) {
  return simd::lane_indices() < static_cast<std::int32_t>(count) ? value : Floats{};
}

/// out = (x - mean) · factor · weight + bias for one row.
void normalise_row(const NormArguments& norm, const float* x, float mean, float factor,
                   float* out) {
  for (std::int64_t i = 0; i < norm.width; i += kLanes) {
    const std::int64_t count = std::min(kLanes, norm.width - i);
    Floats value = (load_lanes(x + i, count) - mean) * factor;
    if (norm.weight != nullptr) value = value * load_lanes(norm.weight + i, count);
    if (norm.bias != nullptr) value += load_lanes(norm.bias + i, count);
    store_lanes(out + i, value, count);
  }
}

void layer_norm_row(const NormArguments& norm, const float* x, float* out) {
  const auto width = static_cast<float>(norm.width);
  const float mean =
      sum_over(norm.width, [&](std::int64_t i, std::int64_t n) { return load_lanes(x + i, n); }) /
      width;
  const float squares = sum_over(norm.width, [&](std::int64_t i, std::int64_t n) {
    const Floats centred = keep_first(load_lanes(x + i, n) - mean, n);
    return centred * centred;
  });
  normalise_row(norm, x, mean, 1.0F / std::sqrt(squares / width + norm.eps), out);
}

float squares_of(const float* x, std::int64_t width) {
  return sum_over(width, [&](std::int64_t i, std::int64_t n) {
    const Floats value = load_lanes(x + i, n);
    return value * value;
  });
}

void rms_norm_row(const NormArguments& norm, const float* x, float* out) {
  const float mean_square = squares_of(x, norm.width) / static_cast<float>(norm.width);
  normalise_row(norm, x, 0.0F, 1.0F / std::sqrt(mean_square + norm.eps), out);
}

void add_row(float* x, const float* r, std::int64_t width) {
  for (std::int64_t i = 0; i < width; i += kLanes) {
    const std::int64_t count = std::min(kLanes, width - i);
    store_lanes(x + i, load_lanes(x + i, count) + load_lanes(r + i, count), count);
  }
}

/// Calls body(row offset) for every row; threads share the rows.
template <class Body>
void for_rows(const NormArguments& norm, const Body& body) {
#pragma omp parallel for if (norm.rows * norm.width >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < norm.rows; ++row) {
    body(row * (norm.stride == 0 ? norm.width : norm.stride));
  }
}

}  // namespace

void layer_norm(const NormArguments& norm, const float* x, float* out) {
  for_rows(norm, [&](std::int64_t at) { layer_norm_row(norm, x + at, out + at); });
}

void rms_norm(const NormArguments& norm, const float* x, float* out) {
  for_rows(norm, [&](std::int64_t at) { rms_norm_row(norm, x + at, out + at); });
}

void sum_squares(const RowSums& rows, const NormArguments& norm, const float* x, float* sums) {
  std::fill_n(sums, norm.rows * rows.groups, 0.0F);
  const std::int64_t stride = norm.stride == 0 ? norm.width : norm.stride;
  for_rows(norm, [&](std::int64_t at) {
    sums[at / stride * rows.groups + rows.group] = squares_of(x + at, norm.width);
  });
}

void rms_norm_of(const RowSums& rows, const float* sums, const NormArguments& norm, const float* x,
                 float* out) {
  const std::int64_t stride = norm.stride == 0 ? norm.width : norm.stride;
  for_rows(norm, [&](std::int64_t at) {
    const float squares = sums[at / stride * rows.groups + rows.group];
    const float mean_square = squares / static_cast<float>(rows.features);
    normalise_row(norm, x + at, 0.0F, 1.0F / std::sqrt(mean_square + norm.eps), out + at);
  });
}

void unit_length(std::int64_t rows, std::int64_t width, float* x) {
  const NormArguments row{1, width, nullptr, nullptr, 0};
  for (float* const end = x + rows * width; x != end; x += width) {
    normalise_row(row, x, 0.0F, 1.0F / std::sqrt(squares_of(x, width)), x);
  }
}

void channel_norm(const ChannelNormArguments& sizes, const NormArguments& norm, const float* x,
                  float* out) {
  const auto channels = static_cast<std::size_t>(sizes.channels);
  const auto length = static_cast<double>(sizes.length);
#pragma omp parallel for schedule(static)
  for (std::int64_t item = 0; item < sizes.batch; ++item) {
    const std::int64_t begin = item * sizes.length * sizes.channels;
    const std::int64_t end = begin + sizes.length * sizes.channels;
    std::vector<double> mean(channels);
    std::vector<double> squares(channels);
    const auto channel_of = [&](std::int64_t i) {
      return static_cast<std::size_t>((i - begin) % sizes.channels);
    };
    for (std::int64_t i = begin; i < end; ++i) mean[channel_of(i)] += static_cast<double>(x[i]);
    for (double& value : mean) value /= length;
    for (std::int64_t i = begin; i < end; ++i) {
      const double centred = static_cast<double>(x[i]) - mean[channel_of(i)];
      squares[channel_of(i)] += centred * centred;
    }
    for (double& value : squares) {
      value = 1 / std::sqrt(value / length + static_cast<double>(norm.eps));
    }
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t c = channel_of(i);
      const auto value = static_cast<float>((static_cast<double>(x[i]) - mean[c]) * squares[c]);
      out[i] = value * norm.weight[c] + norm.bias[c];
    }
  }
}

void add_layer_norm(const NormArguments& norm, float* x, const float* r, float* out) {
  for_rows(norm, [&](std::int64_t at) {
    add_row(x + at, r + at, norm.width);
    layer_norm_row(norm, x + at, out + at);
  });
}

void add_rms_norm(const NormArguments& norm, float* x, const float* r, float* out) {
  for_rows(norm, [&](std::int64_t at) {
    add_row(x + at, r + at, norm.width);
    rms_norm_row(norm, x + at, out + at);
  });
}

}  // namespace headroom::measured
