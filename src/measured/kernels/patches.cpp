#include "patches.h"

#include <algorithm>

#include "parallel.h"

namespace headroom::measured {

namespace {

/// Copies one patch; `from` is its upper left corner in the first channel.
void copy_patch(const PatchArguments& args, const float* from, float* to) {
  const std::int64_t p = args.patch_size;
  for (std::int64_t channel = 0; channel < args.channels; ++channel) {
    for (std::int64_t y = 0; y < p; ++y) {
      to = std::copy_n(from + (channel * args.height + y) * args.width, p, to);
    }
  }
}

}  // namespace

void extract_patches(const PatchArguments& args, const float* image, float* rows) {
  const std::int64_t p = args.patch_size;
  const std::int64_t down = args.height / p;
  const std::int64_t across = args.width / p;
  const std::int64_t image_floats = args.channels * args.height * args.width;
  const std::int64_t patch_floats = args.channels * p * p;
#pragma omp parallel for collapse(2) \
    schedule(static) if (args.batch * image_floats >= kSerialElements)
  for (std::int64_t item = 0; item < args.batch; ++item) {
    for (std::int64_t y = 0; y < down; ++y) {
      const float* const from = image + item * image_floats + y * p * args.width;
      float* const to = rows + (item * down + y) * across * patch_floats;
      for (std::int64_t x = 0; x < across; ++x) {
        copy_patch(args, from + x * p, to + x * patch_floats);
      }
    }
  }
}

}  // namespace headroom::measured
