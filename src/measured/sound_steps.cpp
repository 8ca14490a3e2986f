// Steps of a Conformer on clips of sound: its 2-D convolutions, attention and bounds.
#include "kernels/cumulative_norm.h"
#include "kernels/elementwise.h"
#include "kernels/local_attention.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

/// A clip's rows of a grid that begins with `segment` segments of other clips.
struct ClipGrid {
  std::int64_t segment = 0;
  std::int64_t segments = 0;
  std::int64_t rows = 0;  ///< of sound; silence completes the last segment
};

/// Clips behind as many convolutions as make rows of `segment_rows` of a segment's frames.
std::vector<ClipGrid> clip_grids(const AudioTowerSpec& tower,
                                 const std::vector<std::int64_t>& clip_frames,
                                 std::int64_t segment_rows) {
  std::vector<ClipGrid> grids;
  std::int64_t segment = 0;
  for (const std::int64_t frames : clip_frames) {
    ClipGrid grid{segment, tower.segments_of_clip(frames), frames};
    for (std::int64_t rows = tower.segment_frames; rows > segment_rows; rows /= 2) {
      grid.rows = (grid.rows + 1) / 2;
    }
    segment += grid.segments;
    grids.push_back(grid);
  }
  return grids;
}

}  // namespace

StepBuilder::Run StepBuilder::convolve_clips(const GridConvolution& op) {
  const std::int64_t places = op.places();
  const std::int64_t rows = op.out_rows();
  const std::int64_t item_in = op.rows * op.columns * op.in_channels;
  const std::int64_t item_out = places * op.out_channels;
  PackedLinear* const linear = linears().begin()->second;
  linear->prepare(places);
  const SegmentInputs& sound = *program_.inputs_.audio;
  const float* const x = op.reads_sound ? sound.features.data() : input(0);
  const std::int64_t bytes =
      integer(op.batch) * ((item_in + item_out) * kFloatBytes + linear->weight_bytes(places));
  return [=, clips = clip_grids(*program_.spec_.audio_tower, sound.clip_frames, op.rows),
          columns = op.columns, channels = op.in_channels,
          before = op.items == GridItems::later_rows_of_clips ? 0 : 1,
          gathered = scratch(places * op.inputs()), to = output()](std::int64_t /*layer*/) {
    StepCount count{0, bytes};
    for (const ClipGrid& clip : clips) {
      const float* const grid = x + clip.segment * item_in;
      for (std::int64_t segment = 0; segment < clip.segments; ++segment) {
        gather_places({clip.rows, columns, channels, before}, {segment * rows, rows}, grid,
                      gathered->data());
        count.matrix_flops +=
            linear->run(gathered->data(), to + (clip.segment + segment) * item_out, places);
      }
    }
    return count;
  };
}

StepBuilder::Run StepBuilder::norm_over_earlier_rows(const Norm& op) {
  NormArguments norm;
  norm.width = integer(op.width);
  norm.eps = static_cast<float>(op.spec.eps);
  const std::int64_t channels =
      program_.graph_.tensors[node_->output].shape.back().evaluate_int64(program_.whole_sizes_);
  const AudioTowerSpec& tower = *program_.spec_.audio_tower;
  const std::vector<std::int64_t>& frames = program_.inputs_.audio->clip_frames;
  std::int64_t segments = 0;
  for (const std::int64_t of_clip : frames) segments += tower.segments_of_clip(of_clip);
  const std::int64_t of_segment = integer(op.rows) / segments;
  return [=, clips = clip_grids(tower, frames, of_segment), path = weight_path(0),
          weights = &program_.weights_, layers = block_.layers_per_weights, rows = integer(op.rows),
          x = input(0), out = output()](std::int64_t layer) mutable {
    norm.weight = weights->values(path, layer / layers);
    for (const ClipGrid& clip : clips) {
      const std::int64_t first = clip.segment * of_segment * norm.width;
      norm.rows = clip.rows;
      cumulative_norm(norm, channels, x + first, out + first);
      const std::int64_t silent = clip.segments * of_segment - clip.rows;
      std::fill_n(out + first + clip.rows * norm.width, silent * norm.width, 0.0F);
    }
    return StepCount{0, 2 * rows * norm.width * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::first_of_neighbours(const PatchRows& op) {
  const std::int64_t width = integer(op.width);
  const std::int64_t bytes = 2 * integer(op.elements()) * kFloatBytes;
  const AudioTowerSpec& tower = *program_.spec_.audio_tower;
  std::vector<std::int64_t> clips;  // rows of each
  for (const std::int64_t frames : program_.inputs_.audio->clip_frames) {
    clips.push_back(tower.rows_of_clip(frames));
  }
  return [=, step = tower.grouped_rows(), clips = std::move(clips), in = input(0),
          out = output()](std::int64_t /*layer*/) {
    const float* from = in;
    float* to = out;
    for (const std::int64_t rows : clips) {
      for (std::int64_t row = 0; row < rows; row += step) {
        to = std::copy_n(from + row * width, width, to);
      }
      from += rows * width;
    }
    return StepCount{0, bytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const LocalAttention& op) {
  LocalAttentionArguments args;
  args.heads = integer(op.heads);
  args.head_dim = integer(op.head_dim);
  args.chunk = op.chunk;
  args.earlier = op.earlier;
  args.later = op.later;
  args.positions = op.positions;
  args.soft_cap = static_cast<float>(op.soft_cap);
  args.keys = op.keys;
  args.query = input(0);
  args.key = input(1);
  args.value = input(2);
  args.position_key = input(3);
  std::vector<std::int64_t> clips;
  for (const std::int64_t frames : program_.inputs_.audio->clip_frames) {
    clips.push_back(program_.spec_.audio_tower->rows_of_clip(frames));
  }
  const std::int64_t moved = 4 * integer(op.query_elements()) + floats_of(node_->inputs[3]);
  return [=, clips = std::move(clips), path = weight_path(0), weights = &program_.weights_,
          layers = block_.layers_per_weights, memory = scratch(args.scratch_floats()),
          out = output()](std::int64_t layer) mutable {
    args.clips = clips;
    args.scale = weights->values(path, layer / layers);
    return StepCount{local_attention(args, memory->data(), out), moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::clamp_to_stored(std::int64_t count) {
  return [=, least = weight_path(0), greatest = weight_path(1), weights = &program_.weights_,
          layers = block_.layers_per_weights, copy_input = input_copy(),
          x = output()](std::int64_t layer) {
    copy_input();
    const std::int64_t stored = layer / layers;
    clamp(x, {*weights->values(least, stored), *weights->values(greatest, stored)}, count);
    return StepCount{0, 2 * count * kFloatBytes};
  };
}

}  // namespace headroom::measured
