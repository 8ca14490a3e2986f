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

void drop_prefix(const std::vector<ImageGrid>& grids, std::int64_t prefix, std::int64_t width,
                 const float* from, float* to) {
  for (const ImageGrid& grid : grids) {
    from += prefix * width;
    const std::int64_t floats = grid.patches() * width;
    to = std::copy_n(from, floats, to);
    from += floats;
  }
}

void keep_class_tokens(const std::vector<ImageGrid>& grids, std::int64_t prefix, std::int64_t width,
                       const float* from, float* to) {
  for (const ImageGrid& grid : grids) {
    to = std::copy_n(from, width, to);
    from += (prefix + grid.patches()) * width;
  }
}

void join_rows(const std::vector<const float*>& inputs, std::int64_t rows, std::int64_t width,
               float* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (const float* const input : inputs) to = std::copy_n(input + row * width, width, to);
  }
}

std::int64_t square_side(std::int64_t parts) {
  std::int64_t side = 1;
  while (side * side < parts) ++side;
  return side;
}

namespace {

/// Adds patch number `patch` of a block to the block's row.
void add_patch(PatchRows::Kind kind, const MergeArguments& args, std::int64_t patch,
               const float* from, float* to) {
  const std::int64_t patches = args.side * args.side;
  switch (kind) {
    case PatchRows::Kind::patch_major:
      std::copy_n(from, args.width, to + patch * args.width);
      break;
    case PatchRows::Kind::channel_major:
      for (std::int64_t i = 0; i < args.width; ++i) to[i * patches + patch] = from[i];
      break;
    case PatchRows::Kind::mean:
      for (std::int64_t i = 0; i < args.width; ++i) {
        to[i] = (patch == 0 ? 0.0F : to[i]) + from[i];
        if (patch + 1 == patches) to[i] /= static_cast<float>(patches);
      }
      break;
    case PatchRows::Kind::without_prefix:
    case PatchRows::Kind::class_token:
    case PatchRows::Kind::all:
    case PatchRows::Kind::join:
      break;
  }
}

}  // namespace

void merge_patches(PatchRows::Kind kind, const std::vector<ImageGrid>& grids,
                   const MergeArguments& args, const float* from, float* to) {
  const std::int64_t patches = args.side * args.side;
  const std::int64_t out_width = kind == PatchRows::Kind::mean ? args.width : patches * args.width;
  const std::int64_t* row_of = args.rows.data();
  for (const ImageGrid& grid : grids) {
    for (std::int64_t y = 0; y + args.side <= grid.rows; y += args.side) {
      for (std::int64_t x = 0; x + args.side <= grid.columns; x += args.side, to += out_width) {
        for (std::int64_t patch = 0; patch < patches; ++patch) {
          const std::int64_t place = (y + patch / args.side) * grid.columns + x + patch % args.side;
          add_patch(kind, args, patch, from + row_of[place] * args.width, to);
        }
      }
    }
    row_of += grid.patches();
  }
}

}  // namespace headroom::measured
