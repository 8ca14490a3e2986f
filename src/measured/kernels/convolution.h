// Convolutions over positions, as one matrix product per tap: the padded input, and the rows of it
// that each tap multiplies.
#pragma once

#include <cstdint>
#include <span>

#include "aligned.h"

namespace headroom::measured {

enum class InputLayout { channels_first, positions_first };

struct ConvolutionArguments {
  std::int64_t batch = 1;
  std::int64_t channels = 0;
  std::int64_t length = 0;  ///< of the output, in positions
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t left_padding = 0;  ///< positions of padding before the input
  InputLayout layout = InputLayout::positions_first;
  std::int64_t inputs = 0;  ///< input positions of a sequence; 0: stride·length

  /// Distance between the first and last input position of one output.
  [[nodiscard]] std::int64_t reach() const { return (kernel - 1) * dilation; }
  /// Input positions, padding included, that all outputs read.
  [[nodiscard]] std::int64_t padded_length() const { return (length - 1) * stride + reach() + 1; }
  [[nodiscard]] std::int64_t rows() const { return batch * length; }
  [[nodiscard]] std::int64_t input_length() const { return inputs == 0 ? stride * length : inputs; }
};

/// Pads x [batch, channels, inputs] or [batch, inputs, channels] to
/// padded [batch, padded_length, channels]. `cached` [batch, left_padding, channels] comes before
/// x; null means zeros.
void pad_positions(const ConvolutionArguments& args, const float* x, const float* cached,
                   float* padded);

/// Sets the positions of padding tokens in `padded` to zero; `mask` is [batch, length], 0 for
/// padding. Requires stride 1.
void zero_padding(const ConvolutionArguments& args, const std::uint8_t* mask, float* padded);

/// Sets the positions of each sequence in `padded` after its first `lengths` inputs to zero.
void zero_silence(const ConvolutionArguments& args, std::span<const std::int64_t> lengths,
                  float* padded);

/// Stores the last `reach` positions of `padded`, which later outputs read, to
/// state [batch, reach, channels].
void store_last_positions(const ConvolutionArguments& args, const float* padded, float* state);

/// Rows [batch·length, channels] that tap `tap` multiplies: in place in `padded` if they are
/// contiguous, else copied to `scratch`.
[[nodiscard]] const float* rows_of_tap(const ConvolutionArguments& args, std::int64_t tap,
                                       const float* padded, AlignedVector<float>& scratch);

/// Values [batch·length, group_channels, kernel] that the outputs of group `group` read: its
/// channels at every tap.
void gather_group(const ConvolutionArguments& args, std::int64_t group_channels, std::int64_t group,
                  const float* padded, float* gathered);

/// Rows and columns of a grid, and its channels.
struct GridArguments {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t channels = 1;
  std::int64_t rows_before = 1;  ///< of zeros, before the first row
};

/// Values that the outputs of a 3 × 3 convolution with stride 2 and padding read of `grid`,
/// [rows, columns, channels]: gathered [output places, channels, 9].
void gather_places(const GridArguments& args, const float* grid, float* gathered);

/// Rows of a convolution's output.
struct OutputRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// gather_places of some rows of the output; rows behind the last one read zeros alone.
void gather_places(const GridArguments& args, OutputRows rows, const float* grid, float* gathered);

/// Reorders places [rows, columns, channels] to out [columns, channels, rows].
void rows_to_end(const GridArguments& args, const float* places, float* out);

/// Stores rows [rows, width] of group `group` into the rows [rows, out_channels] of `out`.
void scatter_group(std::int64_t rows, std::int64_t width, std::int64_t out_channels,
                   std::int64_t group, const float* from, float* out);

/// A direction [channels, taps] becomes a weight: each tap is divided by its norm over all channels
/// and multiplied by its length (arXiv 1602.07868, eq. 2).
void normalise_taps(std::int64_t taps, const float* lengths, std::span<float> direction);

}  // namespace headroom::measured
