#include "patches.h"

#include <algorithm>

namespace headroom::measured {

namespace {

/// Copies one patch whose upper left corner in the first channel is `from`.
float* copy_patch(const PatchArguments& args, const float* from, float* to) {
  const std::int64_t p = args.patch_size;
  for (std::int64_t channel = 0; channel < args.channels; ++channel) {
    for (std::int64_t y = 0; y < p; ++y) {
      to = std::copy_n(from + (channel * args.height + y) * args.width, p, to);
    }
  }
  return to;
}

}  // namespace

void extract_patches(const PatchArguments& args, const float* image, float* rows) {
  const std::int64_t p = args.patch_size;
  for (std::int64_t item = 0; item < args.batch; ++item) {
    const float* from = image + item * args.channels * args.height * args.width;
    for (std::int64_t y = 0; y + p <= args.height; y += p) {
      for (std::int64_t x = 0; x + p <= args.width; x += p) {
        rows = copy_patch(args, from + y * args.width + x, rows);
      }
    }
  }
}

}  // namespace headroom::measured
