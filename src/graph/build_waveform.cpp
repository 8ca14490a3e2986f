// Embeds audio samples: convolutions, a projection, and positions from a convolution.
#include <fmt/format.h>

#include "builder.h"

namespace headroom::detail {

TensorId GraphBuilder::embed_waveform(const StackContext& stack) {
  const WaveformSpec& spec = *spec_.embedding.waveform;
  // As WaveformSpec::fewest_inputs, of every layer.
  std::vector<Expr> lengths{stack.tokens};
  for (std::size_t i = spec.layers.size(); i-- > 0;) {
    const WaveformLayer& layer = spec.layers[i];
    lengths.insert(lengths.begin(), (lengths.front() - Integer{1}) * Integer{layer.stride} +
                                        Integer{layer.kernel_size});
  }
  TensorId hidden = tensor("input_values", {kBatch, Integer{1}, lengths.front()});
  graph_.inputs.push_back(hidden);
  begin_block("embeddings", stack.role, Integer{1}, hidden);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    hidden = waveform_layer(i, lengths[i + 1], hidden);
  }
  hidden = project_waveform(stack, hidden);
  return finish_embedding(stack, convolve_positions(stack, hidden));
}

TensorId GraphBuilder::waveform_layer(std::size_t index, const Expr& length, TensorId input) {
  const WaveformSpec& spec = *spec_.embedding.waveform;
  const WaveformLayer& layer = spec.layers[index];
  const std::int64_t before = index == 0 ? 1 : spec.layers[index - 1].channels;
  const Expr channels = Integer{layer.channels};
  const std::string path = fmt::format("convolutions.{}", index);
  Convolution op{
      kBatch, Integer{before}, channels, Integer{layer.kernel_size}, Integer{layer.stride},
      length, index == 0};
  op.bias = spec.bias;
  op.padding = ConvolutionPadding::none;
  std::vector<WeightId> weights{weight(Part::embeddings, path + ".weight",
                                       {channels, Integer{before}, op.kernel},
                                       WeightRole::embedding)};
  if (spec.bias) {
    weights.push_back(weight(Part::embeddings, path + ".bias", {channels}, WeightRole::embedding));
  }
  TensorId hidden = emit(Part::embeddings, path, std::move(op), {input}, std::move(weights),
                         {kBatch, length, channels});
  const NormSpec norm_spec{NormKind::layer_norm, true, 1e-5};
  switch (spec.norm) {
    case WaveformNorm::first_group:
      if (index == 0) {
        hidden = emit_in_place(
            Part::embeddings, path + ".norm",
            Norm{norm_spec, kBatch * channels, length, {}, NormAxis::positions}, {hidden},
            norm_weights(norm_spec, Part::embeddings, path + ".norm", {channels}));
      }
      break;
    case WaveformNorm::every_layer:
      hidden =
          norm(norm_spec, path + ".norm", Norm{norm_spec, kBatch * length, channels, {}}, hidden);
      break;
  }
  return emit_in_place(Part::embeddings, path + ".activation",
                       Activation{spec.activation, kBatch * length * channels}, {hidden});
}

TensorId GraphBuilder::project_waveform(const StackContext& stack, TensorId features) {
  const WaveformSpec& spec = *spec_.embedding.waveform;
  const Expr channels = Integer{spec.layers.back().channels};
  const NormSpec& norm_spec = stack.spec->norm;
  if (spec.projection_norm) {
    features =
        norm(norm_spec, "projection_norm", Norm{norm_spec, stack.rows(), channels, {}}, features);
  }
  const LinearParts projection{Part::embeddings,
                               "projection",
                               WeightRole::embedding,
                               stack.rows(),
                               channels,
                               {{"projection", Symbol::hidden_size}},
                               true};
  return linear(projection, features, hidden_shape(stack));
}

/// A batch norm of a copy of `hidden`, which the residual still needs.
TensorId GraphBuilder::batch_norm(const StackContext& stack, TensorId hidden) {
  std::vector<WeightId> weights;
  for (const char* const name : {"weight", "bias", "mean", "variance"}) {
    weights.push_back(weight(Part::embeddings, std::string("position_norm.") + name,
                             {Symbol::hidden_size}, WeightRole::norm));
  }
  for (std::size_t i = 2; i < weights.size(); ++i) {
    graph_.weights[weights[i]].kind = WeightKind::buffer;
  }
  ChannelScale op{stack.rows(), Symbol::hidden_size, ChannelScale::Statistics::batch_norm};
  return emit(Part::embeddings, "position_norm", std::move(op), {hidden}, std::move(weights),
              hidden_shape(stack));
}

TensorId GraphBuilder::convolve_positions(const StackContext& stack, TensorId hidden) {
  const WaveformSpec& spec = *spec_.embedding.waveform;
  const Expr width = Symbol::hidden_size;
  Convolution op{kBatch,     width,       width, Integer{spec.position_kernel_size},
                 Integer{1}, stack.tokens};
  op.group_channels = Integer{spec_.hidden_size / spec.position_groups};
  op.padding = ConvolutionPadding::odd_in_front;
  const auto add = [&](const std::string& name, std::vector<Expr> shape) {
    return weight(Part::embeddings, "position_convolution." + name, std::move(shape),
                  WeightRole::embedding);
  };
  std::vector<WeightId> weights{add("weight", {width, op.group_channels, op.kernel}),
                                add("bias", {width})};
  TensorId input = hidden;
  switch (spec.position_norm) {
    case PositionNorm::weight:
      op.weight = ConvolutionWeight::normalised_taps;
      weights.push_back(add("length.weight", {Integer{1}, Integer{1}, op.kernel}));
      break;
    case PositionNorm::batch:
      input = batch_norm(stack, hidden);
      break;
  }
  TensorId positions = emit(Part::embeddings, "position_convolution", std::move(op), {input},
                            std::move(weights), hidden_shape(stack));
  positions = emit_in_place(Part::embeddings, "position_convolution.activation",
                            Activation{spec.activation, stack.rows() * width}, {positions});
  return emit_in_place(Part::embeddings, "position_convolution.residual",
                       ResidualAdd{stack.rows() * width}, {hidden, positions});
}

}  // namespace headroom::detail
