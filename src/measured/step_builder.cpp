// Steps of everything but attention.
#include "step_builder.h"

#include <cmath>
#include <cstring>

#include "headroom/error.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/normalize.h"
#include "kernels/patches.h"
#include "kernels/relative_bias.h"

namespace headroom::measured {
namespace {

constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));

/// Positions as RoBERTa counts them: on from behind the padding token's id, padding itself aside
/// (the family's create_position_ids_from_input_ids).
std::vector<std::int64_t> positions_behind_padding(const TokenInputs& tokens, std::int64_t offset) {
  const std::int64_t padding = offset - 1;
  std::vector<std::int64_t> positions(tokens.ids.size(), padding);
  for (std::int64_t b = 0; b < tokens.batch; ++b) {
    std::int64_t next = offset;
    for (std::int64_t s = 0; s < tokens.seq_len; ++s) {
      const auto at = static_cast<std::size_t>(b * tokens.seq_len + s);
      if (tokens.ids[at] != padding) positions[at] = next++;
    }
  }
  return positions;
}

}  // namespace

StepBuilder::StepBuilder(Program& program, const Block& block) : program_(program), block_(block) {}

StepBuilder::Run StepBuilder::step(const Node& node) {
  node_ = &node;
  return std::visit(*this, node.op);
}

std::int64_t StepBuilder::integer(const Expr& expr) const {
  return static_cast<std::int64_t>(expr.evaluate(program_.sizes_));
}

float* StepBuilder::input(std::size_t index) const {
  return program_.pointer(node_->inputs.at(index));
}

float* StepBuilder::output() const { return program_.pointer(node_->output); }

std::int64_t StepBuilder::floats_of(TensorId tensor) const {
  return integer(program_.graph_.tensors[tensor].elements());
}

const std::string& StepBuilder::weight_path(std::size_t index) const {
  return program_.graph_.weights[node_->weights.at(index)].path;
}

const TokenInputs& StepBuilder::tokens() const {
  return node_->component.stack == StackRole::encoder ? *program_.inputs_.encoder
                                                      : program_.inputs_.main;
}

InputCopy StepBuilder::bring_input() const {
  return {input(0), output(), static_cast<std::size_t>(floats_of(node_->output) * kFloat)};
}

StepBuilder::Run StepBuilder::operator()(const TokenEmbedding& op) {
  const ModelWeights& weights = program_.weights_;
  const TokenInputs& tokens = this->tokens();
  TokenEmbeddingArguments args;
  args.batch = tokens.batch;
  args.seq_len = tokens.seq_len;
  args.width = integer(op.width);
  args.word_row = weights.word_rows(weight_path(0));
  args.ids = tokens.ids.data();
  if (op.scale == EmbeddingScale::sqrt_hidden_size) {
    args.scale = std::sqrt(static_cast<float>(args.width));
  }
  std::size_t next_table = 1;
  std::vector<float> sinusoids;
  std::vector<std::int64_t> positions;
  switch (op.positions) {
    case AddedPositions::none:
      break;
    case AddedPositions::learned:
      args.position_table = weights.values(weight_path(next_table++), 0);
      break;
    case AddedPositions::sinusoidal:
      sinusoids = sinusoidal_positions(program_.lengths_.capacity + tokens.seq_len, args.width);
      break;
  }
  if (program_.spec_.position.offset > 0) {
    positions = positions_behind_padding(tokens, program_.spec_.position.offset);
  }
  if (!op.type_rows.is_zero()) {
    args.type_table = weights.values(weight_path(next_table), 0);
    if (!tokens.type_ids.empty()) args.type_ids = tokens.type_ids.data();
  }
  const bool goes_on = node_->component.stack != StackRole::encoder;
  const std::int64_t moved = args.batch * args.seq_len * args.width * kFloat *
                             static_cast<std::int64_t>(1 + node_->weights.size());
  return [=, this_lengths = &program_.lengths_, out = output(), sinusoids = std::move(sinusoids),
          positions = std::move(positions)](std::int64_t /*layer*/) mutable {
    if (!sinusoids.empty()) args.position_table = sinusoids.data();
    if (!positions.empty()) args.position_ids = positions.data();
    args.first_position = goes_on ? this_lengths->past : 0;
    embed_tokens(args, out);
    return StepCount{0, moved};
  };
}

StepBuilder::Run StepBuilder::operator()(const PatchEmbedding& op) {
  const ModelWeights& weights = program_.weights_;
  const ImageSpec& image = *program_.spec_.embedding.image;
  const PatchArguments args{integer(op.batch), image.num_channels, image.image_size,
                            image.image_size, image.patch_size};
  const std::int64_t width = integer(op.width);
  const std::int64_t patches = integer(op.patches);
  const std::int64_t elements = integer(op.patch_elements);
  const std::int64_t rows = args.batch * patches;
  const auto count = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  PackedLinear* const projection = &weights.linear(weight_path(0), 0);
  projection->prepare(rows);
  return [=, class_token = weights.values(weight_path(2), 0),
          positions = weights.values(weight_path(3), 0), out = output(),
          pixels = program_.inputs_.pixel_values.data(),
          cut = std::vector<float>(count(rows * elements)),
          projected = std::vector<float>(count(rows * width))](std::int64_t /*layer*/) mutable {
    extract_patches(args, pixels, cut.data());
    const std::int64_t flops = projection->run(cut.data(), projected.data(), rows);
    for (std::int64_t b = 0; b < args.batch; ++b) {
      float* const image_out = out + b * (patches + 1) * width;
      std::memcpy(image_out, class_token, count(width * kFloat));
      std::memcpy(image_out + width, projected.data() + b * patches * width,
                  count(patches * width * kFloat));
      add_residual(image_out, positions, (patches + 1) * width);
    }
    return StepCount{flops, (2 * rows * (elements + width) + elements * width) * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const RelativePositionBias& op) {
  RelativeBiasArguments args;
  const bool in_encoder = block_.path == "encoder";
  args.heads = integer(op.heads);
  args.queries = integer(op.queries);
  args.masking = in_encoder ? Masking::none : Masking::causal;
  args.num_buckets = program_.spec_.position.num_buckets;
  args.max_distance = program_.spec_.position.max_distance;
  args.table = program_.weights_.values(weight_path(0), 0);
  return [=, lengths = &program_.lengths_, out = output()](std::int64_t /*layer*/) mutable {
    args.past = in_encoder ? 0 : lengths->past;
    args.keys = args.past + args.queries;
    fill_relative_bias(args, out);
    return StepCount{0, args.heads * args.queries * args.keys * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const Linear& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t in = integer(op.in_features);
  const std::int64_t out = integer(op.out_features);
  const ModelWeights& weights = program_.weights_;
  const std::string path = weight_path(0);
  std::vector<PackedLinear*> layers;
  for (std::int64_t layer = 0; layer < integer(block_.repeat); ++layer) {
    layers.push_back(&weights.linear(path, layer));
    layers.back()->prepare(rows);
  }
  const std::int64_t bytes = rows * (in + out) * kFloat + layers.front()->weight_bytes(rows);
  return [=, x = input(0), y = output(), layers = std::move(layers)](std::int64_t layer) {
    return StepCount{layers[static_cast<std::size_t>(layer)]->run(x, y, rows), bytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const Norm& op) {
  const StackSpec& stack = program_.spec_.main_stack();
  NormArguments args{integer(op.rows), integer(op.width), nullptr, nullptr,
                     static_cast<float>(stack.norm.eps)};
  const std::string weight = weight_path(0);
  const std::string bias = op.bias ? weight_path(1) : std::string();
  const auto kernel = op.kind == NormKind::layer_norm ? layer_norm : rms_norm;
  return
      [=, weights = &program_.weights_, x = input(0), out = output()](std::int64_t layer) mutable {
        args.weight = weights->values(weight, layer);
        if (!bias.empty()) args.bias = weights->values(bias, layer);
        kernel(args, x, out);
        return StepCount{0, 2 * args.rows * args.width * kFloat};
      };
}

StepBuilder::Run StepBuilder::operator()(const Activation& op) {
  const std::int64_t count = integer(op.elements);
  return [=, bring = bring_input(), kind = op.kind, x = output()](std::int64_t /*layer*/) {
    bring();
    activate(kind, x, count);
    return StepCount{0, 2 * count * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const GatedActivation& op) {
  const std::int64_t width = integer(program_.graph_.tensors[node_->output].shape.back());
  const std::int64_t rows = integer(op.elements) / width;
  return [=, kind = op.kind, gate_up = input(0), out = output()](std::int64_t /*layer*/) {
    activate_gated(kind, gate_up, out, rows, width);
    return StepCount{0, 3 * rows * width * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const ResidualAdd& op) {
  const std::int64_t count = integer(op.elements);
  float* const out = output();
  // The sum takes the place of either summand.
  const float* const other = out == input(0) ? input(1) : input(0);
  const bool neither = out != input(0) && out != input(1);
  return [=, second = input(1), bring = bring_input()](std::int64_t /*layer*/) {
    if (neither) bring();
    add_residual(out, neither ? second : other, count);
    return StepCount{0, 3 * count * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const SelectToken&) {
  const TokenInputs& tokens = program_.inputs_.main;
  const std::int64_t width = program_.spec_.hidden_size;
  return [=, batch = tokens.batch, seq_len = tokens.seq_len, x = input(0),
          out = output()](std::int64_t /*layer*/) {
    for (std::int64_t b = 0; b < batch; ++b) {
      std::memcpy(out + b * width, x + b * seq_len * width,
                  static_cast<std::size_t>(width * kFloat));
    }
    return StepCount{0, 2 * batch * width * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const Scale& op) {
  const std::int64_t count = integer(op.elements);
  const float factor = 1.0F / std::sqrt(static_cast<float>(program_.spec_.hidden_size));
  return [=, bring = bring_input(), x = output()](std::int64_t /*layer*/) {
    bring();
    scale(x, factor, count);
    return StepCount{0, 2 * count * kFloat};
  };
}

StepBuilder::Run StepBuilder::operator()(const Dropout&) {
  throw Error(ErrorCode::internal, "a training graph cannot be run");
}

StepBuilder::Run StepBuilder::operator()(const CrossEntropy&) {
  throw Error(ErrorCode::internal, "a training graph cannot be run");
}

}  // namespace headroom::measured
