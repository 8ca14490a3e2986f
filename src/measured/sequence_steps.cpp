// Steps of convolutions over positions, and of recurrent layers.
#include <algorithm>
#include <memory>

#include "kernels/convolution.h"
#include "kernels/recurrence.h"
#include "sound_inputs.h"
#include "step_builder.h"

namespace headroom::measured {

std::vector<std::map<std::int64_t, PackedLinear*>> StepBuilder::tap_linears(std::int64_t count) {
  std::vector<std::map<std::int64_t, PackedLinear*>> by_tap;
  by_tap.reserve(static_cast<std::size_t>(count));
  for (std::int64_t tap = 0; tap < count; ++tap) by_tap.push_back(linears(tap));
  return by_tap;
}

ConvolutionArguments StepBuilder::convolution_sizes(const Convolution& op) const {
  ConvolutionArguments args;
  args.batch = integer(op.batch);
  args.channels = integer(op.in_channels);
  args.length = integer(op.length);
  args.kernel = integer(op.kernel);
  args.stride = integer(op.stride);
  args.dilation = integer(op.dilation);
  args.inputs = integer(op.inputs());
  args.layout = op.channels_first ? InputLayout::channels_first : InputLayout::positions_first;
  if (op.masking == Masking::causal) {
    args.left_padding = args.reach();
    return args;
  }
  switch (op.padding) {
    case ConvolutionPadding::odd_at_end:
      args.left_padding = args.reach() / 2;
      break;
    case ConvolutionPadding::odd_in_front:
      args.left_padding = (args.reach() + 1) / 2;
      break;
    case ConvolutionPadding::none:
      break;
  }
  return args;
}

StepBuilder::Run StepBuilder::grouped_convolution(const Convolution& op) {
  const ConvolutionArguments args = convolution_sizes(op);
  const std::int64_t group_channels = integer(op.group_channels);
  const std::int64_t groups = args.channels / group_channels;
  const std::int64_t out_channels = integer(op.out_channels);
  const std::int64_t width = out_channels / groups;
  const std::int64_t rows = args.rows();
  auto layers_by_group = tap_linears(groups);
  for (auto& layers : layers_by_group) {
    for (const auto& [layer, linear] : layers) linear->prepare(rows);
  }
  auto padded = scratch(args.batch * args.padded_length() * args.channels);
  auto gathered = scratch(rows * (group_channels * args.kernel + width));
  const std::int64_t moved = floats_of(node_->output) + args.batch * args.inputs * args.channels;
  return [=, layers_by_group = std::move(layers_by_group), x = input(0),
          out = output()](std::int64_t layer) {
    pad_positions(args, x, nullptr, padded->data());
    float* const of_group = gathered->data() + rows * group_channels * args.kernel;
    StepCount count{0, moved * kFloatBytes};
    for (std::int64_t group = 0; group < groups; ++group) {
      PackedLinear& linear = *layers_by_group[static_cast<std::size_t>(group)].at(layer);
      gather_group(args, group_channels, group, padded->data(), gathered->data());
      count.matrix_flops += linear.run(gathered->data(), of_group, rows);
      count.bytes += linear.weight_bytes(rows);
      scatter_group(rows, width, out_channels, group, of_group, out);
    }
    return count;
  };
}

StepBuilder::Run StepBuilder::operator()(const Convolution& op) {
  if (op.is_grouped()) return grouped_convolution(op);
  const ConvolutionArguments args = convolution_sizes(op);
  auto linears_by_tap = tap_linears(args.kernel);
  for (auto& layers : linears_by_tap) {
    for (const auto& [layer, linear] : layers) linear->prepare(args.rows());
  }
  const ModelInputs& inputs = program_.inputs_;
  const std::vector<float>& sound =
      is_audio_tower() ? inputs.audio->features : inputs.audio_features;
  const float* const x = op.channels_first ? sound.data() : input(0);
  auto padded_input = scratch(args.batch * args.padded_length() * args.channels);
  auto tap_rows = scratch(0);  // rows_of_tap resizes it where it copies
  const std::int64_t moved = floats_of(node_->output) + args.batch * args.inputs * args.channels;
  const bool uses_cache = op.past == KeySource::cache;
  const std::string cache_name =
      uses_cache ? program_.graph_.tensors[node_->inputs.at(1)].name : "";
  const std::uint8_t* const mask = tokens().key_mask.empty() ? nullptr : tokens().key_mask.data();
  std::vector<std::int64_t> sound_frames;  // of each segment, if some are completed with silence
  if (is_audio_tower() && !op.channels_first) {
    sound_frames = segment_frames(*program_.spec_.audio_tower, *inputs.audio);
  }
  return [=, linears_by_tap = std::move(linears_by_tap), sound_frames = std::move(sound_frames),
          cache = &program_.cache_, out = output()](std::int64_t layer) {
    float* const cached = uses_cache ? cache->data(cache_name, layer) : nullptr;
    float* const padded = padded_input->data();
    pad_positions(args, x, cached, padded);
    if (mask != nullptr) zero_padding(args, mask, padded);
    if (!sound_frames.empty()) zero_silence(args, sound_frames, padded);
    if (uses_cache) store_last_positions(args, padded, cached);
    StepCount count{0, moved * kFloatBytes};
    for (std::int64_t tap = 0; tap < args.kernel; ++tap) {
      PackedLinear& linear = *linears_by_tap[static_cast<std::size_t>(tap)].at(layer);
      const float* const rows = rows_of_tap(args, tap, padded, *tap_rows);
      count.matrix_flops += linear.run(rows, out, args.rows());
      count.bytes += linear.weight_bytes(args.rows());
    }
    return count;
  };
}

StepBuilder::Run StepBuilder::operator()(const GridConvolution& op) {
  switch (op.items) {
    case GridItems::rows_of_clips:
    case GridItems::later_rows_of_clips:
      return convolve_clips(op);
    case GridItems::grids:
      break;
  }
  const GridArguments in{op.rows, op.columns, op.in_channels};
  const GridArguments outputs{op.out_rows(), op.out_columns(), op.out_channels};
  const bool reorders = op.order == GridOrder::rows_last;
  const std::int64_t batch = integer(op.batch);
  const std::int64_t places = op.places();
  const std::int64_t item_in = op.rows * op.columns * op.in_channels;
  const std::int64_t item_out = places * op.out_channels;
  PackedLinear* const linear = linears().begin()->second;
  linear->prepare(places);
  auto gathered = scratch(places * op.inputs() + (reorders ? item_out : 0));
  const float* const x = op.reads_sound ? program_.inputs_.audio->features.data() : input(0);
  const std::int64_t bytes =
      batch * ((item_in + item_out) * kFloatBytes + linear->weight_bytes(places));
  return [=, behind = places * op.inputs(), to = output()](std::int64_t /*layer*/) {
    StepCount count{0, bytes};
    for (std::int64_t item = 0; item < batch; ++item) {
      float* const out = to + item * item_out;
      float* const result = reorders ? gathered->data() + behind : out;
      gather_places(in, x + item * item_in, gathered->data());
      count.matrix_flops += linear->run(gathered->data(), result, places);
      if (reorders) rows_to_end(outputs, result, out);
    }
    return count;
  };
}

StepBuilder::Run StepBuilder::operator()(const Recurrence& op) {
  RecurrenceArguments args;
  args.cell = op.cell;
  args.batch = integer(op.batch);
  args.seq_len = integer(op.seq_len);
  args.width = integer(op.width);
  args.inputs = input(0);
  args.out = output();
  auto layers = linears();
  for (const auto& [layer, hidden] : layers) hidden->prepare(args.batch);
  const bool uses_cache = op.state == KeySource::cache;
  const std::string cache_name =
      uses_cache ? program_.graph_.tensors[node_->inputs.at(1)].name : "";
  auto state = scratch(uses_cache ? 0 : integer(op.state_elements()));
  auto gates = scratch(args.scratch_floats());
  const std::int64_t moved = args.batch * args.seq_len * (args.gates_width() + args.width) +
                             2 * args.batch * args.state_width();
  return [=, layers = std::move(layers), cache = &program_.cache_](std::int64_t layer) mutable {
    std::fill(state->begin(), state->end(), 0.0F);
    args.state = uses_cache ? cache->data(cache_name, layer) : state->data();
    PackedLinear& hidden = *layers.at(layer);
    const std::int64_t bytes = moved * kFloatBytes + hidden.weight_bytes(args.batch);
    return StepCount{recurrence(args, hidden, gates->data()), bytes};
  };
}

}  // namespace headroom::measured
