#include "convolution.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "parallel.h"

namespace headroom::measured {
namespace {

/// Copies one sequence's inputs, as many as the outputs read.
void copy_inputs(const ConvolutionArguments& args, const float* x, float* to) {
  const std::int64_t inputs = args.input_length();
  const std::int64_t count = std::min(inputs, args.padded_length() - args.left_padding);
  switch (args.layout) {
    case InputLayout::positions_first:
      std::copy_n(x, count * args.channels, to);
      return;
    case InputLayout::channels_first:
      for (std::int64_t place = 0; place < count; ++place) {
        for (std::int64_t channel = 0; channel < args.channels; ++channel) {
          *to++ = x[channel * inputs + place];
        }
      }
      return;
  }
}

}  // namespace

void pad_positions(const ConvolutionArguments& args, const float* x, const float* cached,
                   float* padded) {
  const std::int64_t inputs = args.input_length() * args.channels;
  const std::int64_t front = args.left_padding * args.channels;
  const std::int64_t all = args.padded_length() * args.channels;
#pragma omp parallel for schedule(static) if (args.batch * all >= kSerialElements)
  for (std::int64_t item = 0; item < args.batch; ++item) {
    float* const to = padded + item * all;
    if (cached != nullptr) {
      std::copy_n(cached + item * front, front, to);
    } else {
      std::fill_n(to, front, 0.0F);
    }
    copy_inputs(args, x + item * inputs, to + front);
    const std::int64_t end = std::min(all, front + inputs);
    std::fill_n(to + end, all - end, 0.0F);
  }
}

void zero_padding(const ConvolutionArguments& args, const std::uint8_t* mask, float* padded) {
  for (std::int64_t b = 0; b < args.batch; ++b) {
    float* const first = padded + (b * args.padded_length() + args.left_padding) * args.channels;
    for (std::int64_t i = 0; i < args.length; ++i) {
      if (mask[b * args.length + i] != 0) continue;
      std::fill_n(first + i * args.channels, args.channels, 0.0F);
    }
  }
}

void zero_silence(const ConvolutionArguments& args, std::span<const std::int64_t> lengths,
                  float* padded) {
  const std::int64_t all = args.padded_length();
  for (const std::int64_t length : lengths) {
    const std::int64_t end = std::min(all, args.left_padding + length);
    std::fill_n(padded + end * args.channels, (all - end) * args.channels, 0.0F);
    padded += all * args.channels;
  }
}

void store_last_positions(const ConvolutionArguments& args, const float* padded, float* state) {
  const std::int64_t all = args.padded_length() * args.channels;
  const std::int64_t last = args.reach() * args.channels;
  for (std::int64_t item = 0; item < args.batch; ++item) {
    std::copy_n(padded + (item + 1) * all - last, last, state + item * last);
  }
}

const float* rows_of_tap(const ConvolutionArguments& args, std::int64_t tap, const float* padded,
                         AlignedVector<float>& scratch) {
  const float* const first = padded + tap * args.dilation * args.channels;
  if (args.batch == 1 && args.stride == 1) return first;
  scratch.resize(static_cast<std::size_t>(args.rows() * args.channels));
  const std::int64_t item_step = args.padded_length() * args.channels;
  const std::int64_t row_step = args.stride * args.channels;
#pragma omp parallel for collapse(2) \
    schedule(static) if (args.rows() * args.channels >= kSerialElements)
  for (std::int64_t item = 0; item < args.batch; ++item) {
    for (std::int64_t row = 0; row < args.length; ++row) {
      std::copy_n(first + item * item_step + row * row_step, args.channels,
                  scratch.data() + (item * args.length + row) * args.channels);
    }
  }
  return scratch.data();
}

void gather_group(const ConvolutionArguments& args, std::int64_t group_channels, std::int64_t group,
                  const float* padded, float* gathered) {
  const std::int64_t width = group_channels * args.kernel;
#pragma omp parallel for collapse(2) schedule(static) if (args.rows() * width >= kSerialElements)
  for (std::int64_t item = 0; item < args.batch; ++item) {
    for (std::int64_t row = 0; row < args.length; ++row) {
      const float* const first = padded +
                                 (item * args.padded_length() + row * args.stride) * args.channels +
                                 group * group_channels;
      float* const to = gathered + (item * args.length + row) * width;
      for (std::int64_t tap = 0; tap < args.kernel; ++tap) {
        const float* const from = first + tap * args.dilation * args.channels;
        for (std::int64_t c = 0; c < group_channels; ++c) to[c * args.kernel + tap] = from[c];
      }
    }
  }
}

void scatter_group(std::int64_t rows, std::int64_t width, std::int64_t out_channels,
                   std::int64_t group, const float* from, float* out) {
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(from + row * width, width, out + row * out_channels + group * width);
  }
}

void normalise_taps(std::int64_t taps, const float* lengths, std::span<float> direction) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(taps, 1));
  std::vector<double> squares(count);
  for (std::size_t i = 0; i < direction.size(); ++i) {
    const auto value = static_cast<double>(direction[i]);
    squares[i % count] += value * value;
  }
  std::vector<float> factors(count);
  for (std::size_t tap = 0; tap < count; ++tap) {
    factors[tap] = static_cast<float>(static_cast<double>(lengths[tap]) / std::sqrt(squares[tap]));
  }
  for (std::size_t i = 0; i < direction.size(); ++i) direction[i] *= factors[i % count];
}

void gather_places(const GridArguments& args, const float* grid, float* gathered) {
  gather_places(args, {0, (args.rows + 1) / 2}, grid, gathered);
}

void gather_places(const GridArguments& args, OutputRows rows, const float* grid, float* gathered) {
  constexpr std::int64_t kSide = 3;
  for (std::int64_t row = 2 * rows.first; row < 2 * (rows.first + rows.count); row += 2) {
    if (row >= args.rows) {
      const std::int64_t places = (2 * (rows.first + rows.count) - row) / 2;
      const std::int64_t values = (args.columns + 1) / 2 * args.channels * kSide * kSide;
      std::fill_n(gathered, places * values, 0.0F);
      return;
    }
    for (std::int64_t column = 0; column < args.columns; column += 2) {
      for (std::int64_t tap = 0; tap < kSide * kSide; ++tap) {
        const std::int64_t from_row = row + tap / kSide - args.rows_before;
        const std::int64_t from_column = column + tap % kSide - 1;
        const bool inside =
            from_row >= 0 && from_row < args.rows && from_column >= 0 && from_column < args.columns;
        const float* const place = grid + (from_row * args.columns + from_column) * args.channels;
        for (std::int64_t channel = 0; channel < args.channels; ++channel) {
          gathered[channel * kSide * kSide + tap] = inside ? place[channel] : 0.0F;
        }
      }
      gathered += args.channels * kSide * kSide;
    }
  }
}

void rows_to_end(const GridArguments& args, const float* places, float* out) {
  for (std::int64_t column = 0; column < args.columns; ++column) {
    for (std::int64_t channel = 0; channel < args.channels; ++channel) {
      for (std::int64_t row = 0; row < args.rows; ++row) {
        *out++ = places[(row * args.columns + column) * args.channels + channel];
      }
    }
  }
}

}  // namespace headroom::measured
