// Steps of image models and towers: patches, their rearrangement, and visual tokens.
#include <algorithm>
#include <cstring>

#include "headroom/error.h"
#include "kernels/elementwise.h"
#include "kernels/patches.h"
#include "kernels/position_table.h"
#include "sound_inputs.h"
#include "step_builder.h"
#include "tile_inputs.h"

namespace headroom::measured {
namespace {

/// The table with the row of the class token before all others; empty if it is there already.
std::vector<float> class_first(const ImageSpec& image, const float* table, std::int64_t width) {
  switch (image.class_position) {
    case ClassPosition::first:
      return {};
    case ClassPosition::last:
      break;
  }
  const float* const last = table + image.num_patches() * width;
  std::vector<float> ordered(last, last + width);
  ordered.insert(ordered.end(), table, last);
  return ordered;
}

/// Positions of an image's patches in raster order, trained tokens first.
std::vector<float> raster_positions(const ModelSpec& spec, const float* table,
                                    const ImageGrid& grid) {
  const ImageSpec& image = *spec.embedding.image;
  const std::int64_t width = spec.hidden_size;
  if (spec.position.table == PositionTable::rows_and_columns) {
    return sum_of_tables(table, spec.position.max_position_embeddings, width, grid);
  }
  const std::int64_t side = image.image_size / image.patch_size;
  const PositionGrid trained{side, side, image.placed_prefix_tokens(), width};
  const std::vector<float> ordered = class_first(image, table, width);
  return interpolate_positions(trained, ordered.empty() ? table : ordered.data(), grid.rows,
                               grid.columns, image.interpolation);
}

/// Positions of every image, row after row of the tower.
std::vector<float> positions_of(const ModelSpec& spec, const float* table,
                                const std::vector<ImageGrid>& grids) {
  const ImageSpec& image = *spec.embedding.image;
  const std::int64_t width = spec.hidden_size;
  std::vector<float> positions;
  for (const ImageGrid& grid : grids) {
    const std::vector<float> own = raster_positions(spec, table, grid);
    const auto patches = own.begin() + image.placed_prefix_tokens() * width;
    positions.insert(positions.end(), own.begin(), patches);
    positions.insert(positions.end(), static_cast<std::size_t>(image.registers * width), 0.0F);
    for (const PatchPlace& place : patch_places(image, grid)) {
      const auto row = patches + (place.row * grid.columns + place.column) * width;
      positions.insert(positions.end(), row, row + width);
    }
  }
  return positions;
}

/// Copies patches that are stored by blocks in raster order to their rows of the tower.
void copy_patches(const ImageSpec& image, const std::vector<ImageGrid>& grids, const float* patches,
                  float* rows) {
  const std::int64_t elements = image.patch_elements();
  ImageSpec stored = image;
  stored.window_blocks = 0;
  const std::vector<std::int64_t> to = rows_of_patches(image, grids);
  std::vector<std::int64_t> from = rows_of_patches(stored, grids);
  for (std::size_t patch = 0; patch < to.size(); ++patch) {
    std::copy_n(patches + from[patch] * elements, elements, rows + to[patch] * elements);
  }
  if (image.range == PixelRange::normalised) return;
  const std::int64_t floats = std::ssize(to) * elements;
  std::transform(rows, rows + floats, rows, [](float value) { return 2 * (value - 0.5F); });
}

/// Cuts every image into the rows of its patches.
void cut_images(const ImageSpec& image, const std::vector<ImageSize>& sizes, const float* pixels,
                float* rows) {
  for (const ImageSize& size : sizes) {
    extract_patches({1, image.num_channels, size.height, size.width, image.patch_size}, pixels,
                    rows);
    pixels += image.num_channels * size.height * size.width;
    rows += grid_of(size, image).patches() * image.patch_elements();
  }
}

/// Moves the patches of every image behind its trained tokens. All patches stand at the end of
/// `out`.
void insert_prefix(const std::vector<const float*>& tokens, const std::vector<ImageGrid>& grids,
                   std::int64_t width, float* out) {
  if (tokens.empty()) return;
  const auto prefix = std::ssize(tokens);
  const float* patches = out + std::ssize(grids) * prefix * width;
  for (const ImageGrid& grid : grids) {
    const std::int64_t floats = grid.patches() * width;
    std::memmove(out + prefix * width, patches, static_cast<std::size_t>(floats * kFloatBytes));
    for (const float* const token : tokens) out = std::copy_n(token, width, out);
    out += floats;
    patches += floats;
  }
}

}  // namespace

std::vector<ImageSize> StepBuilder::images() const {
  const ModelInputs& inputs = program_.inputs_;
  if (is_tower()) return inputs.images->sizes;
  const ImageSize size = inputs.image_size(*spec().embedding.image);
  return std::vector<ImageSize>(static_cast<std::size_t>(inputs.main.batch), size);
}

std::vector<ImageGrid> StepBuilder::grids() const {
  std::vector<ImageGrid> grids;
  for (const ImageSize& size : images()) {
    grids.push_back(grid_of(size, *spec().embedding.image));
  }
  return grids;
}

std::vector<ImageRows> StepBuilder::image_rows(ImageScope scope) const {
  if (is_audio_tower()) {
    return rows_of_clips(*program_.spec_.audio_tower, program_.inputs_.audio->clip_frames);
  }
  if (!is_tower()) return {};
  if (reads_canvases()) {
    return rows_of_canvases(*program_.spec_.tower, program_.inputs_.images->tilings);
  }
  return rows_of_images(*spec().embedding.image, grids(), scope);
}

StepBuilder::Run StepBuilder::operator()(const PatchEmbedding& op) {
  const ModelWeights& weights = program_.weights_;
  const ImageSpec& image = *spec().embedding.image;
  const std::int64_t width = integer(op.width);
  const std::int64_t elements = integer(op.patch_elements);
  const std::int64_t rows = integer(op.patches);
  const std::int64_t token_count = integer(op.tokens());
  PackedLinear* const projection = &weights.linear(weight_path(0), 0);
  projection->prepare(rows);
  std::size_t next = op.bias ? 2 : 1;
  std::vector<const float*> tokens;
  for (std::int64_t i = 0; i < image.placed_prefix_tokens(); ++i) {
    tokens.push_back(weights.values(weight_path(next++), 0));
  }
  if (image.registers > 0) {
    const float* const registers = weights.values(weight_path(next++), 0);
    for (std::int64_t i = 0; i < image.registers; ++i) tokens.push_back(registers + i * width);
  }
  std::vector<float> positions;
  if (op.positions) {
    positions = positions_of(spec(), weights.values(weight_path(next), 0), grids());
  }
  const std::vector<float>& pixels =
      is_tower() ? program_.inputs_.images->pixels : program_.inputs_.pixel_values;
  return
      [=, sizes = images(), all_grids = grids(), out = output(), from = pixels.data(),
       positions = std::move(positions), cut = scratch(rows * elements)](std::int64_t /*layer*/) {
        if (image.pixels == PixelLayout::patches) {
          copy_patches(image, all_grids, from, cut->data());
        } else {
          cut_images(image, sizes, from, cut->data());
        }
        float* const projected = out + (token_count - rows) * width;
        const std::int64_t flops = projection->run(cut->data(), projected, rows);
        insert_prefix(tokens, all_grids, width, out);
        if (!positions.empty()) add_residual(out, positions.data(), token_count * width);
        return StepCount{flops, (2 * rows * (elements + width) + elements * width) * kFloatBytes};
      };
}

StepBuilder::Run StepBuilder::mean_of_neighbours(const PatchRows& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t width = integer(op.width);
  const std::int64_t bytes = (integer(op.elements()) + rows * width) * kFloatBytes;
  const AudioTowerSpec& tower = *program_.spec_.audio_tower;
  std::vector<std::int64_t> clips;  // rows of each
  for (const std::int64_t frames : program_.inputs_.audio->clip_frames) {
    const bool apart = tower.attended_segments == 0;
    clips.push_back(apart ? tower.segments_of_clip(frames) * tower.segment_positions
                          : tower.rows_of_clip(frames));
  }
  return [=, parts = op.parts, clips = std::move(clips), in = input(0),
          out = output()](std::int64_t /*layer*/) {
    const float* from = in;
    float* to = out;
    for (const std::int64_t of_clip : clips) {
      for (std::int64_t row = 0; row + parts <= of_clip; row += parts, to += width) {
        std::copy_n(from + row * width, width, to);
        for (std::int64_t i = 1; i < parts; ++i) add_residual(to, from + (row + i) * width, width);
      }
      from += of_clip * width;
    }
    scale(out, 1.0F / static_cast<float>(parts), rows * width);
    return StepCount{0, bytes};
  };
}

StepBuilder::Run StepBuilder::keep_sound(const PatchRows& op) {
  const std::int64_t width = integer(op.width);
  const std::int64_t bytes = 2 * integer(op.elements()) * kFloatBytes;
  const AudioTowerSpec& tower = *program_.spec_.audio_tower;
  const std::vector<std::int64_t> frames = segment_frames(tower, *program_.inputs_.audio);
  // Rows of all segments, of the encoder or of its projector, which may have grouped them.
  const std::int64_t all_rows = floats_of(node_->inputs[0]) / width / std::ssize(frames);
  std::vector<std::int64_t> segments;  // rows of sound of each
  segments.reserve(frames.size());
  for (const std::int64_t of_segment : frames) {
    segments.push_back(tower.rows_of_segment(of_segment) * all_rows / tower.segment_positions);
  }
  return
      [=, segments = std::move(segments), in = input(0), out = output()](std::int64_t /*layer*/) {
        const float* from = in;
        float* to = out;
        for (const std::int64_t rows : segments) {
          to = std::copy_n(from, rows * width, to);
          from += all_rows * width;
        }
        return StepCount{0, bytes};
      };
}

StepBuilder::Run StepBuilder::operator()(const PatchRows& op) {
  if (op.kind == PatchRows::Kind::mean_of_neighbours) return mean_of_neighbours(op);
  if (op.kind == PatchRows::Kind::first_of_neighbours) return first_of_neighbours(op);
  if (op.kind == PatchRows::Kind::sound) return keep_sound(op);
  if (reads_canvases()) {
    return op.kind == PatchRows::Kind::join ? join_channels(op) : copy_tiles(op);
  }
  const std::int64_t width = integer(op.width);
  const std::int64_t rows = integer(op.rows);
  const std::int64_t bytes = (integer(op.elements()) + floats_of(node_->output)) * kFloatBytes;
  const std::int64_t prefix = spec().embedding.image->prefix_tokens();
  std::vector<const float*> inputs;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) inputs.push_back(input(i));
  const MergeArguments args{width, square_side(op.parts),
                            rows_of_patches(*spec().embedding.image, grids())};
  const bool packs = op.packs();
  PackArguments pack{width};
  const auto end = [&](std::size_t i) {
    return i < node_->weights.size() ? program_.weights_.values(weight_path(i), 0) : nullptr;
  };
  pack.end_of_row = end(0);
  pack.end_of_tiles = end(1);
  const ImageSpec& image = *spec().embedding.image;
  pack.side = packs ? image.image_size / image.patch_size : 0;
  const std::vector<ImageTiling> tilings =
      packs ? program_.inputs_.images->tilings : std::vector<ImageTiling>();
  return [=, kind = op.kind, all_grids = grids(), out = output()](std::int64_t /*layer*/) {
    switch (kind) {
      case PatchRows::Kind::all:
        std::copy_n(inputs.front(), rows * width, out);
        break;
      case PatchRows::Kind::without_prefix:
        drop_prefix(all_grids, prefix, width, inputs.front(), out);
        break;
      case PatchRows::Kind::class_token:
        keep_class_tokens(all_grids, prefix, width, inputs.front(), out);
        break;
      case PatchRows::Kind::join:
        join_rows(inputs, rows, width, out);
        break;
      case PatchRows::Kind::pack:
        pack_tiles(tilings, pack, inputs.front(), out);
        break;
      case PatchRows::Kind::pack_blocks:
      case PatchRows::Kind::pack_means:
        pack_blocks(kind, tilings, pack, inputs.front(), out);
        break;
      case PatchRows::Kind::sound:  // steps of their own
      case PatchRows::Kind::mean_of_neighbours:
      case PatchRows::Kind::first_of_neighbours:
        break;
      case PatchRows::Kind::patch_major:
      case PatchRows::Kind::channel_major:
      case PatchRows::Kind::mean:
        merge_patches(kind, all_grids, args, inputs.front(), out);
        break;
    }
    return StepCount{0, bytes};
  };
}

std::vector<StepBuilder::PlacedRow> StepBuilder::rows_of_shard(
    const std::vector<std::int64_t>& rows) const {
  const std::int64_t length = program_.inputs_.main.seq_len;
  const Expr& tokens = program_.graph_.tensors[node_->output].shape[1];
  const std::int64_t held = integer(tokens);
  const std::int64_t first = first_token_of_shard(tokens);
  std::vector<PlacedRow> placed;
  placed.reserve(rows.size());
  for (std::int64_t i = 0; const std::int64_t row : rows) {
    const std::int64_t token = row % length - first;
    if (token >= 0 && token < held) placed.push_back({i, row / length * held + token});
    ++i;
  }
  return placed;
}

StepBuilder::Run StepBuilder::operator()(const VisualTokens& op) {
  const std::int64_t width = integer(op.width);
  const TokenInputs& tokens = program_.inputs_.main;
  const bool sound = op.source == VisualTokens::Source::audio;
  const std::vector<std::int64_t>& rows = sound ? tokens.audio_rows : tokens.visual_rows;
  if (std::ssize(rows) != integer(op.rows)) {
    throw Error(ErrorCode::internal, "images or sound without placeholders", program_.spec_.name);
  }
  const std::vector<PlacedRow> placed = rows_of_shard(rows);
  const bool adds = op.kind == VisualTokens::Kind::add;
  return [=, copy_input = input_copy(), from = input(1), out = output()](std::int64_t /*layer*/) {
    copy_input();
    for (const PlacedRow& row : placed) {
      const float* const token = from + row.from * width;
      float* const to = out + row.to * width;
      if (adds) {
        add_residual(to, token, width);
      } else {
        std::copy_n(token, width, to);
      }
    }
    return StepCount{0, (adds ? 3 : 2) * std::ssize(placed) * width * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::patch_positions(const PositionEmbedding& op) {
  if (reads_canvases()) return tile_positions(op);
  const std::int64_t floats = integer(op.tokens) * integer(op.width);
  std::vector<float> positions =
      positions_of(spec(), program_.weights_.values(weight_path(0), 0), grids());
  return [=, copy_input = input_copy(), x = output(),
          positions = std::move(positions)](std::int64_t /*layer*/) {
    copy_input();
    add_residual(x, positions.data(), floats);
    return StepCount{0, 3 * floats * kFloatBytes};
  };
}

void StepBuilder::apply_lookahead(AttentionArguments& args, Lookahead lookahead) {
  spans_.reset();
  const bool decodes = program_.graph_.options.phase == Phase::decode;
  if (lookahead == Lookahead::none || decodes || is_tower()) return;
  spans_ = std::make_shared<const std::vector<KeySpan>>(key_spans(tokens(), lookahead));
  args.spans = spans_->data();
}

}  // namespace headroom::measured
