// Image patches: as the rows of a patch projection, and merged after a tower.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/op.h"
#include "headroom/workload.h"

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

/// Copies the patches of every image, without the `prefix` rows before them.
void drop_prefix(const std::vector<ImageGrid>& grids, std::int64_t prefix, std::int64_t width,
                 const float* from, float* to);

/// Copies the first of the `prefix` rows before the patches of every image.
void keep_class_tokens(const std::vector<ImageGrid>& grids, std::int64_t prefix, std::int64_t width,
                       const float* from, float* to);

/// Puts the features of several layers side by side: inputs [rows, width] -> [rows, n·width].
void join_rows(const std::vector<const float*>& inputs, std::int64_t rows, std::int64_t width,
               float* to);

struct MergeArguments {
  std::int64_t width = 0;  ///< of a patch
  std::int64_t side = 1;   ///< patches of a block, on each side
  /// Row of every patch, image by image, each in raster order.
  std::vector<std::int64_t> rows{};
};

struct PackArguments {
  std::int64_t width = 0;
  std::int64_t side = 0;                ///< patches along each side of a tile
  const float* end_of_row = nullptr;    ///< of the output's width
  const float* end_of_tiles = nullptr;  ///< likewise, where tiles precede the whole
};

/// Packs the patches of every image (PackStep): those of the whole, then the rows of its tiles as
/// one image, each followed by `end_of_row`. Interpolates bilinearly as torch's
/// interpolate(mode="bilinear", align_corners=False).
void pack_tiles(const std::vector<ImageTiling>& tilings, const PackArguments& args,
                const float* from, float* to);

/// Packs blocks of 2 × 2 patches, side by side or as means: the rows of an image's tiles as one
/// image, each followed by `end_of_row`, then `end_of_tiles`, then the rows of the whole likewise.
/// `kind` is pack_blocks or pack_means.
void pack_blocks(PatchRows::Kind kind, const std::vector<ImageTiling>& tilings,
                 const PackArguments& args, const float* from, float* to);

/// The side of a square of `parts` patches.
[[nodiscard]] std::int64_t square_side(std::int64_t parts);

/// Merges blocks of patches: rows of all images -> one row per block. `kind` is a merging kind.
void merge_patches(PatchRows::Kind kind, const std::vector<ImageGrid>& grids,
                   const MergeArguments& args, const float* from, float* to);

}  // namespace headroom::measured
