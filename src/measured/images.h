// Images of a run as rows of an image tower, and the visual tokens that they become.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "headroom/workload.h"
#include "inputs.h"
#include "kernels/attention.h"
#include "kernels/rotary.h"

namespace headroom::measured {

/// Consecutive images or windows of equal length among the rows of a tower.
struct ImageRows {
  std::int64_t first_row = 0;
  std::int64_t first_pair = 0;  ///< pairs of rows of one image, of the images before
  std::int64_t images = 0;
  std::int64_t rows = 0;  ///< of each
  std::int64_t first_query = 0;
  std::int64_t queries = 0;   ///< of each: all its rows, or its probe
  std::int64_t sequence = 0;  ///< of the keys, where the queries are tokens that see images
  std::shared_ptr<const std::vector<std::uint8_t>> key_mask{};  ///< [rows], 0: unseen; null: none
};

/// Grid of patches of an image of this size; incomplete patches are dropped.
[[nodiscard]] ImageGrid grid_of(const ImageSize& size, const ImageSpec& image);

/// Points of the rows of all images, prefix tokens included, in the order of the tower's rows.
[[nodiscard]] std::vector<PatchPoint> points_of(const ImageSpec& image,
                                                PatchCoordinates coordinates,
                                                std::span<const ImageGrid> grids);

/// Row of every patch, image by image, each in raster order.
[[nodiscard]] std::vector<std::int64_t> rows_of_patches(const ImageSpec& image,
                                                        std::span<const ImageGrid> grids);

/// Positions of a prompt's tokens on three axes, [batch, seq_len], and how far the positions of
/// later tokens are shifted, [batch].
struct AxisPositions {
  std::vector<AxisPosition> of_tokens;
  std::vector<std::int64_t> shifts;
};

/// Tokens of text count on all axes. Those of an image stand at one time; their rows and columns
/// count from it, and the text goes on after the largest (arXiv 2409.12191, section 2.1). `grids`
/// are those of the visual tokens.
[[nodiscard]] AxisPositions axis_positions(const TokenInputs& tokens,
                                           std::span<const ImageGrid> grids);

/// Those of a model with such positions and images; empty for others.
[[nodiscard]] std::optional<AxisPositions> axis_positions(const ModelSpec& spec,
                                                          const ModelInputs& inputs);

/// Shifts of the positions of tokens after the prompt `inputs`; empty: none.
[[nodiscard]] std::vector<std::int64_t> shifts_after(const ModelSpec& spec,
                                                     const ModelInputs& inputs);

/// Splits the rows of images with these grids into images, prefix tokens included, or windows.
[[nodiscard]] std::vector<ImageRows> rows_of_images(const ImageSpec& image,
                                                    std::span<const ImageGrid> grids,
                                                    ImageScope scope);

/// Splits the rows of an audio tower into runs of segments that see each other.
[[nodiscard]] std::vector<ImageRows> rows_of_clips(const AudioTowerSpec& tower,
                                                   std::span<const std::int64_t> clip_frames);

/// Keys that each token sees in spite of the causal mask, [batch, seq_len].
[[nodiscard]] std::vector<KeySpan> key_spans(const TokenInputs& tokens, Lookahead lookahead);

}  // namespace headroom::measured
