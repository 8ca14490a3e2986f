// Steps that only encoders have: disentangled attention, pooling, scales of channels.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "headroom/error.h"
#include "kernels/disentangled.h"
#include "kernels/elementwise.h"
#include "kernels/gated_bias.h"
#include "kernels/pooling.h"
#include "kernels/transformer_xl.h"
#include "step_builder.h"

namespace headroom::measured {

StepBuilder::Run StepBuilder::operator()(const PositionTableRows& op) {
  const std::int64_t count = integer(op.rows * op.width);
  return [=, table = program_.weights_.values(weight_path(0), 0),
          out = output()](std::int64_t /*layer*/) {
    std::copy_n(table, count, out);
    return StepCount{0, 2 * count * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const DisentangledBias& op) {
  DisentangledArguments args;
  args.spec = op.spec;
  args.batch = integer(op.shape.batch);
  args.heads = integer(op.shape.heads);
  args.head_dim = integer(op.shape.head_dim);
  args.tokens = integer(op.shape.queries);
  args.width = integer(op.width);
  args.scale = static_cast<float>(op.scale);
  args.contents = input(0);
  args.row_width = integer(program_.graph_.tensors[node_->inputs[0]].shape.back());
  args.table = input(1);
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < node_->weights.size(); ++i) paths.push_back(weight_path(i));
  const bool has_keys = op.spec.content_to_position || op.spec.shares_projections;
  const auto bind = [=, weights = &program_.weights_,
                     layers = block_.layers_per_weights](std::int64_t layer) {
    std::size_t next = 0;
    const auto values = [&] { return weights->values(paths[next++], layer / layers); };
    DisentangledArguments bound = args;
    if (has_keys) bound.key.weight = values();
    if (has_keys && args.spec.key_bias) bound.key.bias = values();
    if (next < paths.size()) bound.query = PositionProjection{values(), values()};
    return bound;
  };
  auto memory = scratch(bind(block_.layer_of(*node_, 0)).scratch_floats());
  return [=, out = output()](std::int64_t layer) {
    const DisentangledArguments bound = bind(layer);
    const std::int64_t pairs = bound.batch * bound.heads * bound.tokens * bound.tokens;
    return StepCount{disentangled_bias(bound, memory->data(), out), 2 * pairs * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const RelativeSinusoids& op) {
  const RelativeSinusoidArguments args{integer(op.batch), integer(op.positions), integer(op.width),
                                       op.most, op.rows};
  const std::int64_t count = integer(op.elements());
  return [=, out = output()](std::int64_t /*layer*/) {
    fill_relative_sinusoids(args, out);
    return StepCount{0, count * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const TransformerXlBias& op) {
  TransformerXlArguments args;
  args.batch = integer(op.shape.batch);
  args.heads = integer(op.shape.heads);
  args.head_dim = integer(op.shape.head_dim);
  args.tokens = integer(op.shape.queries);
  args.scale = static_cast<float>(op.scale);
  args.contents = input(0);
  args.row_width = integer(program_.graph_.tensors[node_->inputs[0]].shape.back());
  args.positions = input(1);
  const TokenInputs& inputs = tokens();
  if (!inputs.type_ids.empty()) args.segment_ids = inputs.type_ids.data();
  const std::array<std::string, 4> paths{weight_path(0), weight_path(1), weight_path(2),
                                         weight_path(3)};
  const std::int64_t moved =
      floats_of(node_->inputs[0]) + floats_of(node_->inputs[1]) + floats_of(node_->output);
  return [=, weights = &program_.weights_, layers = block_.layers_per_weights,
          memory = scratch(args.scratch_floats()), out = output()](std::int64_t layer) mutable {
    const auto values = [&](std::size_t i) { return weights->values(paths[i], layer / layers); };
    args.content_bias = values(0);
    args.position_bias = values(1);
    args.segment_bias = values(2);
    args.segments = values(3);
    return StepCount{transformer_xl_bias(args, memory->data(), out), moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const GatedPositionBias& op) {
  GatedBiasArguments args;
  args.batch = integer(op.shape.batch);
  args.heads = integer(op.shape.heads);
  args.head_dim = integer(op.shape.head_dim);
  args.tokens = integer(op.shape.queries);
  args.input = input(0);
  args.bias = input(1);
  const std::array<std::string, 3> paths{weight_path(0), weight_path(1), weight_path(2)};
  const std::int64_t moved =
      floats_of(node_->inputs[0]) + floats_of(node_->inputs[1]) + floats_of(node_->output);
  return [=, weights = &program_.weights_, layers = block_.layers_per_weights,
          out = output()](std::int64_t layer) mutable {
    const auto values = [&](std::size_t i) { return weights->values(paths[i], layer / layers); };
    args.weight = values(0);
    args.weight_bias = values(1);
    args.scale = values(2);
    return StepCount{gated_position_bias(args, out), moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const ChannelScale& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t width = integer(op.width);
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < node_->weights.size(); ++i) paths.push_back(weight_path(i));
  return [=, weights = &program_.weights_, statistics = op.statistics, copy_input = input_copy(),
          layers = block_.layers_per_weights, x = output()](std::int64_t layer) {
    copy_input();
    std::vector<const float*> values;
    values.reserve(paths.size());
    for (const std::string& path : paths) values.push_back(weights->values(path, layer / layers));
    for (std::int64_t row = 0; row < rows; ++row) {
      scale_channels(statistics, values, width, x + row * width);
    }
    return StepCount{0, 2 * rows * width * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const SelectToken& op) {
  const TokenInputs& tokens = program_.inputs_.main;
  // The ends of an encoder-decoder's sequences are those of its encoder's tokens.
  const bool by_end = op.pooling == TokenPooling::last_of_id && program_.inputs_.encoder;
  if (by_end && program_.inputs_.encoder->seq_len != tokens.seq_len) {
    throw Error(
        ErrorCode::invalid_input,
        fmt::format("the classifier takes the place of the end among {} encoder tokens, but "
                    "the decoder has {}",
                    program_.inputs_.encoder->seq_len, tokens.seq_len),
        "", "give encoder and decoder equally many tokens");
  }
  const std::int64_t width = integer(program_.graph_.tensors[node_->inputs[0]].shape.back());
  PoolingArguments args{tokens.batch, tokens.seq_len, width, input(0)};
  if (op.pooling == TokenPooling::first_and_mean) args.prefix = 1;
  if (const auto& image = program_.spec_.embedding.image) args.prefix = image->prefix_tokens();
  if (!tokens.key_mask.empty()) args.mask = tokens.key_mask.data();
  args.ids = by_end ? program_.inputs_.encoder->ids.data() : tokens.ids.data();
  args.token_id = op.token_id;
  const std::int64_t moved =
      op.averaged.is_zero() ? 2 * integer(op.elements) : integer(op.averaged + op.elements);
  return [=, pooling = op.pooling, out = output()](std::int64_t /*layer*/) {
    pool_tokens(args, pooling, out);
    return StepCount{0, moved * kFloatBytes};
  };
}

}  // namespace headroom::measured
