// Sound cut into the rows that a convolution over time multiplies.
#pragma once

#include <cstdint>

namespace headroom::measured {

enum class SoundLayout { channels_first, time_first };

struct ConvolutionArguments {
  std::int64_t batch = 1;
  std::int64_t channels = 0;
  std::int64_t length = 0;  ///< of the output
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  SoundLayout layout = SoundLayout::time_first;
};

/// x [batch, channels, stride·length] or [batch, stride·length, channels] -> rows
/// [batch, length, channels, kernel], zero beyond the ends, kernel / 2 on each side.
void extract_windows(const ConvolutionArguments& args, const float* x, float* rows);

}  // namespace headroom::measured
