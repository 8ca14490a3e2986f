// Operators of images and their towers: parts of Op (op.h).
#pragma once

#include <cstdint>

#include "headroom/expr.h"

namespace headroom {

/// Linear projection of image patches; prepends trained tokens to each image and adds positions.
/// `[images, channels, height, width]` -> `[images · prefix + patches, width]`
struct PatchEmbedding {
  Expr images;
  Expr patches;         ///< of all images
  Expr patch_elements;  ///< channels · patch_size²
  Expr width;
  Expr prefix = Integer{1};  ///< trained tokens: the class token and others
  bool bias = true;
  bool positions = true;

  [[nodiscard]] Expr tokens() const { return patches + images * prefix; }
};

/// Rearranges the rows of an image tower. `without_prefix` drops the trained tokens before every
/// image's patches; `class_token` keeps the first of these alone; `all` copies the rows; `join`
/// puts the features of several layers side by side; `pack`, `pack_blocks` and `pack_means` arrange
/// tiles (PackStep);
/// `sound` drops the rows of silence that completes segments of sound; `mean_of_neighbours`
/// averages consecutive rows of each clip, of which `first_of_neighbours` keeps the first; the
/// others merge square blocks of patches (PatchMerge).
/// `[…, width]` -> `[rows, width · parts]`, or `[rows, width]` for a mean.
struct PatchRows {
  enum class Kind {
    without_prefix,
    class_token,
    all,
    join,
    patch_major,
    channel_major,
    mean,
    pack,
    pack_blocks,
    pack_means,
    sound,
    mean_of_neighbours,
    first_of_neighbours,
  };
  Kind kind = Kind::without_prefix;
  Expr rows;  ///< of the output
  Expr width;
  std::int64_t parts = 1;  ///< input rows, or layers, that an output row reads

  [[nodiscard]] Expr elements() const { return rows * Integer{parts} * width; }
  [[nodiscard]] bool packs() const noexcept {
    return kind == Kind::pack || kind == Kind::pack_blocks || kind == Kind::pack_means;
  }
  [[nodiscard]] bool averages() const noexcept {
    return kind == Kind::mean || kind == Kind::mean_of_neighbours;
  }
};

/// Replaces the embeddings of placeholder tokens by the tokens of a tower, or adds these, in place.
/// Inputs: hidden states `[batch, seq, width]` and tokens of images or sound `[rows, width]`, in
/// the order of their placeholders.
struct VisualTokens {
  enum class Kind { replace, add };
  enum class Source { images, audio };
  Kind kind = Kind::replace;
  Expr rows;
  Expr width;
  Source source = Source::images;

  [[nodiscard]] Expr elements() const { return rows * width; }
};

}  // namespace headroom
