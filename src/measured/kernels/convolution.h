// Convolutions over positions as one product for each position of the kernel: the input with zeros,
// or earlier inputs, around it, and the rows of it that one such product multiplies.
#pragma once

#include <cstdint>

#include "aligned.h"

namespace headroom::measured {

enum class InputLayout { channels_first, positions_first };

struct ConvolutionArguments {
  std::int64_t batch = 1;
  std::int64_t channels = 0;
  std::int64_t length = 0;  ///< of the output
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t in_front = 0;  ///< positions in front of the first input
  InputLayout layout = InputLayout::positions_first;

  /// Positions between the first and the last that one output is made of.
  [[nodiscard]] std::int64_t reach() const { return (kernel - 1) * dilation; }
  /// Positions that all outputs together are made of.
  [[nodiscard]] std::int64_t padded_length() const { return (length - 1) * stride + reach() + 1; }
  [[nodiscard]] std::int64_t rows() const { return batch * length; }
};

/// x [batch, channels, stride·length] or [batch, stride·length, channels] -> padded
/// [batch, padded_length, channels], with `before` [batch, in_front, channels] in front, or zeros
/// where that is null.
void pad_positions(const ConvolutionArguments& args, const float* x, const float* before,
                   float* padded);

/// The last `reach` positions of `padded`, which later outputs see. -> [batch, reach, channels]
void keep_last_positions(const ConvolutionArguments& args, const float* padded, float* kept);

/// The rows [batch·length, channels] that position `tap` of the kernel multiplies: where they lie
/// in `padded`, or a copy in `scratch` where they do not lie one behind the other.
[[nodiscard]] const float* rows_of_tap(const ConvolutionArguments& args, std::int64_t tap,
                                       const float* padded, AlignedVector<float>& scratch);

}  // namespace headroom::measured
