// Image patches as the rows of a patch projection.
#pragma once

#include <cstdint>

namespace headroom::measured {

struct PatchArguments {
  std::int64_t batch = 1;
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t patch_size = 0;  ///< p; incomplete patches at the right and lower edges are dropped
};

/// Extracts patches: image [batch, channels, height, width] -> rows [batch, patches, channels·p·p],
/// patches in raster order, each in the order of a convolution's weight [out, channels, p, p].
void extract_patches(const PatchArguments& args, const float* image, float* rows);

}  // namespace headroom::measured
