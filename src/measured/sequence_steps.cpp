// Steps of convolutions over positions and of recurrences.
#include <algorithm>
#include <memory>

#include "kernels/convolution.h"
#include "kernels/recurrence.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

AlignedVector<float> floats(std::int64_t count) {
  return AlignedVector<float>(static_cast<std::size_t>(count));
}

/// What the steps of a convolution work in: the padded input, and rows that one product multiplies.
struct ConvolutionScratch {
  AlignedVector<float> padded;
  AlignedVector<float> rows;
};

}  // namespace

/// The layers' products for each position of the kernel.
std::vector<std::map<std::int64_t, PackedLinear*>> StepBuilder::taps(std::int64_t kernel) {
  std::vector<std::map<std::int64_t, PackedLinear*>> products;
  products.reserve(static_cast<std::size_t>(kernel));
  for (std::int64_t tap = 0; tap < kernel; ++tap) products.push_back(linears(tap));
  return products;
}

StepBuilder::Run StepBuilder::operator()(const Convolution& op) {
  ConvolutionArguments args;
  args.batch = integer(op.batch);
  args.channels = integer(op.in_channels);
  args.length = integer(op.length);
  args.kernel = integer(op.kernel);
  args.stride = integer(op.stride);
  args.dilation = integer(op.dilation);
  args.in_front = op.masking == Masking::causal ? args.reach() : args.reach() / 2;
  args.layout = op.channels_first ? InputLayout::channels_first : InputLayout::positions_first;
  auto products = taps(args.kernel);
  for (auto& layers : products) {
    for (const auto& [layer, product] : layers) product->prepare(args.rows());
  }
  const float* const x = op.channels_first ? program_.inputs_.audio_features.data() : input(0);
  auto scratch = std::make_shared<ConvolutionScratch>();
  scratch->padded = floats(args.batch * args.padded_length() * args.channels);
  const std::int64_t moved = floats_of(node_->output) + args.rows() * args.stride * args.channels;
  const bool goes_on = op.past == KeySource::cache;
  const std::string held = goes_on ? program_.graph_.tensors[node_->inputs.at(1)].name : "";
  return [=, products = std::move(products), cache = &program_.cache_,
          out = output()](std::int64_t layer) {
    float* const before = goes_on ? cache->data(held, layer) : nullptr;
    float* const padded = scratch->padded.data();
    pad_positions(args, x, before, padded);
    if (goes_on) keep_last_positions(args, padded, before);
    StepCount count{0, moved * kFloat};
    for (std::int64_t tap = 0; tap < args.kernel; ++tap) {
      PackedLinear& product = *products[static_cast<std::size_t>(tap)].at(layer);
      const float* const rows = rows_of_tap(args, tap, padded, scratch->rows);
      count.matrix_flops += product.run(rows, out, args.rows());
      count.bytes += product.weight_bytes(args.rows());
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
  const bool goes_on = op.state == KeySource::cache;
  const std::string held = goes_on ? program_.graph_.tensors[node_->inputs.at(1)].name : "";
  auto state =
      std::make_shared<AlignedVector<float>>(floats(goes_on ? 0 : integer(op.state_elements())));
  auto scratch = std::make_shared<AlignedVector<float>>(floats(args.scratch_floats()));
  const std::int64_t moved = args.batch * args.seq_len * (args.gates_width() + args.width) +
                             2 * args.batch * args.state_width();
  return [=, layers = std::move(layers), cache = &program_.cache_](std::int64_t layer) mutable {
    std::fill(state->begin(), state->end(), 0.0F);
    args.state = goes_on ? cache->data(held, layer) : state->data();
    PackedLinear& hidden = *layers.at(layer);
    const std::int64_t bytes = moved * kFloat + hidden.weight_bytes(args.batch);
    return StepCount{recurrence(args, hidden, scratch->data()), bytes};
  };
}

}  // namespace headroom::measured
