// Steps of a tower that reads all tiles of an image at once, and of the layers that attend to it
// (tiled_tower.h).
#include <algorithm>
#include <cmath>

#include "headroom/tiled_tower.h"
#include "kernels/elementwise.h"
#include "step_builder.h"
#include "tile_inputs.h"

namespace headroom::measured {

bool StepBuilder::reads_canvases() const {
  return program_.spec_.tower && headroom::reads_canvases(*program_.spec_.tower);
}

std::vector<ImageRows> StepBuilder::rows_of_cross_attention() const {
  const ModelInputs& inputs = program_.inputs_;
  if (!attends_to_images(program_.spec_) || !inputs.images) return {};
  return tokens_by_images(program_.spec_, inputs);
}

/// Source: full_text_row_masked_out_mask, transformers, models/mllama.
std::vector<std::int64_t> StepBuilder::rows_without_images() const {
  const bool gates_network = node_->component.part == Part::mlp_down;
  const bool is_prompt = program_.inputs_.images && attends_to_images(program_.spec_);
  return gates_network && is_prompt ? rows_before_images(tokens()) : std::vector<std::int64_t>();
}

/// Rows of a table that stand behind each other, tile after tile.
struct StepBuilder::TileTable {
  std::vector<const float*> of_tile;  ///< the first row of each tile
  std::int64_t rows = 0;              ///< of each tile in the tower
  std::int64_t first = 0;             ///< of those that are added to
  std::int64_t step = 0;              ///< floats from the row of one to that of the next
};

StepBuilder::TileTable StepBuilder::tile_table(const PositionEmbedding& op) const {
  const TowerSpec& tower = *program_.spec_.tower;
  const std::int64_t width = integer(op.width);
  const std::vector<ImageTiling>& canvases = program_.inputs_.images->tilings;
  const auto tiles = std::ssize(canvases) * tower.most_tiles;
  const std::int64_t cycle = integer(op.seq_len);
  const bool by_canvas = cycle != rows_of_tile(tower);
  TileTable table;
  table.rows = floats_of(node_->output) / width / tiles;
  table.first = table.rows - integer(op.tokens) / tiles;
  table.step = cycle == tower.most_tiles ? 0 : width;
  const float* const stored = program_.weights_.values(weight_path(0), 0);
  for (const ImageTiling& canvas : canvases) {
    const std::int64_t number = by_canvas ? number_of_canvas(tower, canvas) : 0;
    for (std::int64_t tile = 0; tile < tower.most_tiles; ++tile) {
      const std::int64_t row = number * cycle + (by_canvas ? tile * cycle / tower.most_tiles : 0);
      table.of_tile.push_back(stored + row * width);
    }
  }
  return table;
}

/// Adds tanh(g) times the rows of a table that depends on an image's canvas, else 1 - tanh(g) times
/// them. Source: MllamaPrecomputedPositionEmbedding, transformers, models/mllama.
StepBuilder::Run StepBuilder::tile_positions(const PositionEmbedding& op) {
  const std::int64_t width = integer(op.width);
  const bool by_canvas = integer(op.seq_len) != rows_of_tile(*program_.spec_.tower);
  const std::int64_t moved = 3 * integer(op.tokens) * width * kFloatBytes;
  return [=, table = tile_table(op), gate = input(1), copy_input = input_copy(),
          x = output()](std::int64_t /*layer*/) {
    copy_input();
    const float factor = by_canvas ? std::tanh(*gate) : 1 - std::tanh(*gate);
    float* to = x;
    for (const float* const first : table.of_tile) {
      const float* from = first;
      for (std::int64_t row = table.first; row < table.rows; ++row, from += table.step) {
        add_scaled_residual(to + row * width, from, factor, width);
      }
      to += table.rows * width;
    }
    return StepCount{0, moved};
  };
}

/// Copies the rows of every tile, completed with zeros or cut to as many as the output has.
StepBuilder::Run StepBuilder::copy_tiles(const PatchRows& op) {
  const auto tiles = std::ssize(grids());
  const std::int64_t given = floats_of(node_->inputs[0]) / tiles;
  const std::int64_t wanted = integer(op.elements()) / tiles;
  const std::int64_t kept = std::min(given, wanted);
  const std::int64_t bytes = 2 * tiles * wanted * kFloatBytes;
  return [=, in = input(0), out = output()](std::int64_t /*layer*/) {
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      float* const end = std::copy_n(in + tile * given, kept, out + tile * wanted);
      std::fill_n(end, wanted - kept, 0.0F);
    }
    return StepCount{0, bytes};
  };
}

/// The last layer's rows, then those of others channel by channel.
StepBuilder::Run StepBuilder::join_channels(const PatchRows& op) {
  const std::int64_t width = integer(op.width);
  const std::int64_t rows = integer(op.rows);
  const std::int64_t others = op.parts - 1;
  const std::int64_t bytes = 2 * integer(op.elements()) * kFloatBytes;
  std::vector<const float*> inputs;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) inputs.push_back(input(i));
  return [=, inputs = std::move(inputs), out = output()](std::int64_t /*layer*/) {
    for (std::int64_t row = 0; row < rows; ++row) {
      float* const to = out + row * width * (1 + others);
      std::copy_n(inputs.front() + row * width, width, to);
      for (std::int64_t i = 0; i < width * others; ++i) {
        to[width + i] = inputs[static_cast<std::size_t>(1 + i % others)][row * width + i / others];
      }
    }
    return StepCount{0, bytes};
  };
}

}  // namespace headroom::measured
