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
    case PatchRows::Kind::pack:
    case PatchRows::Kind::pack_blocks:
    case PatchRows::Kind::pack_means:
    case PatchRows::Kind::sound:
    case PatchRows::Kind::mean_of_neighbours:
    case PatchRows::Kind::first_of_neighbours:
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

namespace {

/// The two source positions around an output position, and the weight of the second.
struct Between {
  std::int64_t below = 0;
  std::int64_t above = 0;
  float weight = 0;
};

Between between(std::int64_t output, std::int64_t outputs, std::int64_t inputs) {
  if (outputs == inputs) return {output, output, 0};
  const float scale = static_cast<float>(inputs) / static_cast<float>(outputs);
  const float place = std::max(scale * (static_cast<float>(output) + 0.5F) - 0.5F, 0.0F);
  const auto below = static_cast<std::int64_t>(place);
  return {below, std::min(below + 1, inputs - 1), place - static_cast<float>(below)};
}

}  // namespace

void pack_tiles(const std::vector<ImageTiling>& tilings, const PackArguments& args,
                const float* from, float* to) {
  const std::int64_t tile = args.side * args.side * args.width;
  for (const ImageTiling& tiling : tilings) {
    to = std::copy_n(from, tile, to);
    from += tile;
    const auto patch = [&](std::int64_t row, std::int64_t column) {
      row += tiling.first_row;
      column += tiling.first_column;
      const std::int64_t number = row / args.side * tiling.tile_columns + column / args.side;
      return from + number * tile + (row % args.side * args.side + column % args.side) * args.width;
    };
    for (std::int64_t row = 0; row < tiling.out_rows; ++row) {
      const Between down = between(row, tiling.out_rows, tiling.kept_rows);
      for (std::int64_t column = 0; column < tiling.out_columns; ++column, to += args.width) {
        const Between across = between(column, tiling.out_columns, tiling.kept_columns);
        const float* const corners[] = {
            patch(down.below, across.below), patch(down.below, across.above),
            patch(down.above, across.below), patch(down.above, across.above)};
        for (std::int64_t i = 0; i < args.width; ++i) {
          const float upper = (1 - across.weight) * corners[0][i] + across.weight * corners[1][i];
          const float lower = (1 - across.weight) * corners[2][i] + across.weight * corners[3][i];
          to[i] = (1 - down.weight) * upper + down.weight * lower;
        }
      }
      to = std::copy_n(args.end_of_row, args.width, to);
    }
    from += tiling.tile_rows * tiling.tile_columns * tile;
  }
}

namespace {

constexpr std::int64_t kBlockSide = 2;

/// Writes `rows` × `columns` blocks of tiles in rows of `across` tiles, each row with its end.
float* pack_rows(PatchRows::Kind kind, const ImageGrid& blocks, std::int64_t across,
                 const PackArguments& args, const float* tiles, float* to) {
  const bool means = kind == PatchRows::Kind::pack_means;
  const MergeArguments merge{args.width, kBlockSide, {}};
  const auto order = means ? PatchRows::Kind::mean : PatchRows::Kind::patch_major;
  const std::int64_t out = means ? args.width : kBlockSide * kBlockSide * args.width;
  for (std::int64_t row = 0; row < blocks.rows; ++row) {
    for (std::int64_t column = 0; column < blocks.columns; ++column, to += out) {
      for (std::int64_t patch = 0; patch < kBlockSide * kBlockSide; ++patch) {
        const std::int64_t y = row * kBlockSide + patch / kBlockSide;
        const std::int64_t x = column * kBlockSide + patch % kBlockSide;
        const std::int64_t tile = y / args.side * across + x / args.side;
        const std::int64_t place = (tile * args.side + y % args.side) * args.side + x % args.side;
        add_patch(order, merge, patch, tiles + place * args.width, to);
      }
    }
    to = std::copy_n(args.end_of_row, out, to);
  }
  return to;
}

}  // namespace

void pack_blocks(PatchRows::Kind kind, const std::vector<ImageTiling>& tilings,
                 const PackArguments& args, const float* from, float* to) {
  const std::int64_t tile = args.side * args.side * args.width;
  const std::int64_t out =
      kind == PatchRows::Kind::pack_means ? args.width : kBlockSide * kBlockSide * args.width;
  const std::int64_t blocks = args.side / kBlockSide;
  for (const ImageTiling& tiling : tilings) {
    const float* const tiles = from + tile;
    to = pack_rows(kind, {tiling.out_rows, tiling.out_columns}, tiling.tile_columns, args, tiles,
                   to);
    to = std::copy_n(args.end_of_tiles, out, to);
    to = pack_rows(kind, {blocks, blocks}, 1, args, from, to);
    from = tiles + tiling.tile_rows * tiling.tile_columns * tile;
  }
}

}  // namespace headroom::measured
