// Steps of all operators except attention, embeddings, experts and sequences.
#include "step_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "headroom/error.h"
#include "headroom/expr.h"
#include "kernels/elementwise.h"
#include "kernels/relative_bias.h"

namespace headroom::measured {

StepBuilder::StepBuilder(Program& program, const Block& block) : program_(program), block_(block) {}

StepBuilder::Run StepBuilder::step(const Node& node) {
  node_ = &node;
  return in_rounds(std::visit(*this, node.op));
}

std::int64_t StepBuilder::integer(const Expr& expr) const {
  return expr.evaluate_int64(program_.sizes_);
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

GroupPosition StepBuilder::tensor_position() const {
  return program_.rank_ == nullptr ? GroupPosition{} : program_.rank_->tensor;
}

bool StepBuilder::is_tower() const { return node_->component.stack == StackRole::tower; }

bool StepBuilder::is_audio_tower() const {
  return node_->component.stack == StackRole::audio_tower;
}

const ModelSpec& StepBuilder::spec() const {
  if (is_audio_tower()) return *program_.audio_tower_;
  return is_tower() ? *program_.tower_ : program_.spec_;
}

const TokenInputs& StepBuilder::tokens() const {
  static const TokenInputs kNoTokens{};  // segments of sound have no padding
  if (is_audio_tower()) return kNoTokens;
  return node_->component.stack == StackRole::encoder ? *program_.inputs_.encoder
                                                      : program_.inputs_.main;
}

InputCopy StepBuilder::input_copy() const {
  return {input(0), output(), static_cast<std::size_t>(floats_of(node_->output) * kFloatBytes)};
}

StepBuilder::Run StepBuilder::operator()(const RelativePositionBias& op) {
  RelativeBiasArguments args;
  const bool in_encoder = block_.path.starts_with("encoder");
  args.heads = integer(op.heads);
  args.queries = integer(op.queries);
  args.masking = in_encoder ? Masking::none : Masking::causal;
  args.num_buckets = program_.spec_.position.num_buckets;
  args.max_distance = program_.spec_.position.max_distance;
  if (!op.global_keys.is_zero()) return transient_bias(args, op);
  return [=, path = weight_path(0), weights = &program_.weights_, lengths = &program_.lengths_,
          layers_per_weights = block_.layers_per_weights, keys = integer(op.keys),
          first_query = integer(op.first_query), out = output()](std::int64_t layer) mutable {
    args.table = weights->values(path, layer / layers_per_weights);
    args.past = in_encoder ? first_query : lengths->past;
    args.keys = in_encoder ? keys : args.past + args.queries;
    fill_relative_bias(args, out);
    return StepCount{0, args.heads * args.queries * args.keys * kFloatBytes};
  };
}

std::map<std::int64_t, PackedLinear*> StepBuilder::linears(std::int64_t expert) {
  std::map<std::int64_t, PackedLinear*> layers;
  for (std::int64_t run = 0; run < integer(block_.repeat); ++run) {
    const std::int64_t layer = block_.layer_of(*node_, run);
    layers[layer] = &program_.weights_.linear(weight_path(0), weights_layer(layer), expert);
  }
  return layers;
}

std::shared_ptr<AlignedVector<float>> StepBuilder::scratch(std::int64_t floats) {
  auto buffer = std::make_shared<AlignedVector<float>>(static_cast<std::size_t>(floats));
  program_.kernel_scratch_.push_back(buffer);
  return buffer;
}

StepBuilder::Run StepBuilder::operator()(const Linear& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t in = integer(op.in_features);
  const std::int64_t out = integer(op.out_features);
  const std::int64_t row = op.row_width.is_zero() ? in : integer(op.row_width);
  auto layers = linears();
  for (const auto& [layer, linear] : layers) linear->prepare(rows);
  const std::int64_t bytes =
      rows * (in + out) * kFloatBytes + layers.begin()->second->weight_bytes(rows);
  if (row == in) {
    return [=, x = input(0), y = output(), layers = std::move(layers)](std::int64_t layer) {
      return StepCount{layers.at(layer)->run(x, y, rows), bytes};
    };
  }
  auto dense = std::make_shared<AlignedVector<float>>(static_cast<std::size_t>(rows * in));
  program_.strided_copies_.push_back(dense);
  return [=, x = input(0), y = output(), layers = std::move(layers)](std::int64_t layer) {
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(x + r * row, in, dense->data() + r * in);
    return StepCount{layers.at(layer)->run(dense->data(), y, rows), bytes};
  };
}

/// Weight and bias of a norm in any layer; null if it has none.
struct StepBuilder::NormWeights {
  const ModelWeights* weights = nullptr;
  std::string weight;
  std::string bias;
  std::int64_t layers_per_weights = 1;
  /// 1 + w by layer, for norms that store w (NormWeight::one_plus).
  std::shared_ptr<std::map<std::int64_t, std::vector<float>>> one_plus;

  void bind(NormArguments& args, std::int64_t layer) const {
    const std::int64_t stored_layer = layer / layers_per_weights;
    if (!weight.empty()) args.weight = weights->values(weight, stored_layer);
    if (one_plus) args.weight = one_plus->at(stored_layer).data();
    if (!bias.empty()) args.bias = weights->values(bias, stored_layer);
  }
};

StepBuilder::NormWeights StepBuilder::norm_weights(const NormSpec& spec) {
  NormWeights found{&program_.weights_, {}, {}, block_.layers_per_weights, {}};
  if (spec.weight == NormWeight::none) return found;
  found.weight = weight_path(0);
  if (spec.bias) found.bias = weight_path(1);
  if (spec.weight != NormWeight::one_plus) return found;
  found.one_plus = std::make_shared<std::map<std::int64_t, std::vector<float>>>();
  const Weight& weight = program_.graph_.weights[node_->weights.front()];
  const std::int64_t size = integer(weight.elements());
  for (std::int64_t run = 0; run < integer(block_.repeat); ++run) {
    const std::int64_t stored_layer = block_.weights_of(*node_, run);
    const float* const stored = program_.weights_.values(found.weight, stored_layer);
    std::vector<float>& sum = (*found.one_plus)[stored_layer];
    sum.assign(stored, stored + size);
    for (float& value : sum) value += 1.0F;
  }
  return found;
}

std::int64_t StepBuilder::first_token_of_shard(const Expr& length) const {
  if (length.degree(Symbol::sequence_shard_len) == 0) return 0;
  return program_.rank_->tensor.rank * integer(Symbol::sequence_shard_len);
}

StepBuilder::NormKernel StepBuilder::norm_kernel(const NormSpec& spec, std::int64_t width) const {
  if (node_->inputs.size() > 1) {
    const auto groups = *program_.graph_.tensors[node_->inputs[1]].shape.back().constant();
    return [rows = row_sums(groups, width), sums = input(1)](const NormArguments& norm,
                                                             const float* x, float* out) {
      rms_norm_of(rows, sums, norm, x, out);
    };
  }
  switch (spec.kind) {
    case NormKind::layer_norm:
      return layer_norm;
    case NormKind::rms_norm:
      break;
  }
  return rms_norm;
}

StepBuilder::Run StepBuilder::norm_over_positions(const Norm& op) {
  NormArguments args;
  args.eps = static_cast<float>(op.spec.eps);
  ChannelNormArguments sizes;
  sizes.length = integer(op.width);
  sizes.channels = integer(program_.graph_.tensors[node_->output].shape.back());
  sizes.batch = integer(op.rows) / sizes.channels;
  const std::int64_t elements = sizes.batch * sizes.length * sizes.channels;
  return [=, weights = norm_weights(op.spec), x = input(0),
          out = output()](std::int64_t layer) mutable {
    weights.bind(args, layer);
    channel_norm(sizes, args, x, out);
    return StepCount{0, 2 * elements * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const Norm& op) {
  if (op.axis == NormAxis::positions) return norm_over_positions(op);
  if (op.axis == NormAxis::earlier_rows) return norm_over_earlier_rows(op);
  NormArguments args{integer(op.rows), integer(op.width), nullptr, nullptr,
                     static_cast<float>(op.spec.eps)};
  if (!op.row_width.is_zero()) args.stride = integer(op.row_width);
  return [=, kernel = norm_kernel(op.spec, args.width), weights = norm_weights(op.spec),
          copy_input = input_copy(), x = input(0), out = output()](std::int64_t layer) mutable {
    // The kernel skips the gaps between rows, so they are copied first.
    const bool strided = args.stride != 0;
    if (strided) copy_input();
    weights.bind(args, layer);
    kernel(args, strided ? out : x, out);
    return StepCount{0, 2 * args.rows * args.width * kFloatBytes};
  };
}

std::function<void()> StepBuilder::head_rows_copy(const HeadRows& heads) const {
  const std::int64_t width = integer(heads.row_width);
  const std::int64_t rows = integer(heads.rows);
  const std::int64_t from_width = floats_of(node_->inputs.front()) / rows;
  if (from_width == width) return input_copy();
  const std::int64_t added = width - from_width;
  return [=, from = input(0), to = output()] {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* const source = from + row * from_width;
      float* const target = to + row * width;
      std::copy_n(source, from_width, target);
      std::copy_n(source + from_width - added, added, target + from_width);
    }
  };
}

StepBuilder::Run StepBuilder::operator()(const HeadNorm& op) {
  const std::int64_t rows = integer(op.heads.rows);
  const std::int64_t stride = integer(op.heads.row_width);
  const std::int64_t heads = integer(op.heads.heads);
  const std::int64_t width = integer(op.heads.head_dim);
  NormArguments args{rows, width, nullptr, nullptr, static_cast<float>(op.spec.eps), stride};
  const bool all_heads = op.scope == QueryKeyNormScope::all_heads;
  if (all_heads) args.width = heads * width;
  // One weight row for all heads, or one per head.
  const std::int64_t weight_step = op.scope == QueryKeyNormScope::each_head_own_weight ? width : 0;
  return [=, kernel = norm_kernel(op.spec, heads * width), weights = norm_weights(op.spec),
          copy_rows = head_rows_copy(op.heads),
          x = output() + integer(op.heads.first)](std::int64_t layer) mutable {
    copy_rows();
    weights.bind(args, layer);
    if (all_heads) {
      kernel(args, x, x);
    } else {
      NormArguments head = args;
      for (std::int64_t h = 0; h < heads; ++h) {
        if (args.weight != nullptr) head.weight = args.weight + h * weight_step;
        if (args.bias != nullptr) head.bias = args.bias + h * weight_step;
        kernel(head, x + h * width, x + h * width);
      }
    }
    return StepCount{0, 2 * rows * heads * width * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const Clamp& op) {
  const std::int64_t count = integer(op.elements);
  switch (op.bounds) {
    case LayerBounds::stored:
      return clamp_to_stored(count);
    case LayerBounds::none:
      break;
  }
  return [=, copy_input = input_copy(), limit = static_cast<float>(op.limit),
          x = output()](std::int64_t /*layer*/) {
    copy_input();
    clamp(x, {-limit, limit}, count);
    return StepCount{0, 2 * count * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const Activation& op) {
  const std::int64_t count = integer(op.elements);
  if (op.kind == ActivationKind::xielu) return activation_with_constants(count);
  return [=, copy_input = input_copy(), kind = op.kind, x = output()](std::int64_t /*layer*/) {
    copy_input();
    activate(kind, x, count);
    return StepCount{0, 2 * count * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::activation_with_constants(std::int64_t count) {
  std::array<std::string, 4> paths;
  for (std::size_t i = 0; i < paths.size(); ++i) paths.at(i) = weight_path(i);
  return
      [=, layers = block_.layers_per_weights, paths = std::move(paths),
       weights = &program_.weights_, copy_input = input_copy(), x = output()](std::int64_t layer) {
        copy_input();
        const auto value = [&](const std::string& path) {
          return *weights->values(path, layer / layers);
        };
        xielu({value(paths[0]), value(paths[1]), value(paths[2]), value(paths[3])}, x, count);
        return StepCount{0, 2 * count * kFloatBytes};
      };
}

StepBuilder::Run StepBuilder::operator()(const GatedActivation& op) {
  const std::int64_t width = integer(program_.graph_.tensors[node_->output].shape.back());
  const std::int64_t rows = integer(op.elements) / width;
  if (!op.slices.is_zero()) return activation_of_slice(op);
  return [=, kind = op.kind, cutoff = op.cutoff, limit = op.limit, caps = op.caps,
          gate_up = input(0), out = output()](std::int64_t /*layer*/) {
    if (caps) {
      activate_capped_gates(static_cast<float>(caps->gate), static_cast<float>(caps->up), gate_up,
                            out, rows, width);
    } else if (cutoff) {
      activate_cut_gates(kind, *cutoff, gate_up, out, rows, width);
    } else if (limit > 0) {
      activate_limited_gates(kind, limit, gate_up, out, rows, width);
    } else {
      activate_gated(kind, gate_up, out, rows, width);
    }
    return StepCount{0, 3 * rows * width * kFloatBytes};
  };
}

/// act(gate) · the layer's slice of the second input.
StepBuilder::Run StepBuilder::activation_of_slice(const GatedActivation& op) {
  const std::int64_t width = integer(program_.graph_.tensors[node_->output].shape.back());
  const std::int64_t rows = integer(op.elements) / width;
  const std::int64_t stride = integer(op.slices) * width;
  return [=, kind = op.kind, copy_input = input_copy(), slices = input(1),
          x = output()](std::int64_t layer) {
    copy_input();
    activate(kind, x, rows * width);
    const float* const slice = slices + layer * width;
    for (std::int64_t row = 0; row < rows; ++row) {
      scale_rows(x + row * width, slice + row * stride, 1, width);
    }
    return StepCount{0, 3 * rows * width * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const TrainedScale& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t width = integer(op.width);
  const Weight& weight = program_.graph_.weights[node_->weights.front()];
  const bool one_number = integer(weight.elements()) == 1;
  return [=, path = weight.path, weights = &program_.weights_, copy_input = input_copy(),
          layers = block_.layers_per_weights, x = output()](std::int64_t layer) {
    copy_input();
    const float* const factors = weights->values(path, layer / layers);
    if (one_number) {
      scale(x, *factors, rows * width);
    } else {
      scale_rows(x, factors, rows, width);
    }
    return StepCount{0, 2 * rows * width * kFloatBytes};
  };
}

// Shorter rows, which are repeated, are those of denoisers, and no denoiser runs.
StepBuilder::Run StepBuilder::operator()(const TrainedShift& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t width = integer(op.width);
  return [=, path = program_.graph_.weights[node_->weights.front()].path,
          weights = &program_.weights_, copy_input = input_copy(),
          layers = block_.layers_per_weights, x = output()](std::int64_t layer) {
    copy_input();
    shift_rows(x, weights->values(path, layer / layers), rows, width);
    return StepCount{0, 2 * rows * width * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const ResidualAdd& op) {
  const std::int64_t count = integer(op.elements);
  float* const out = output();
  if (op.multiplier != 1) return scaled_residual(op);
  // The sum may overwrite either addend.
  const float* const other = out == input(0) ? input(1) : input(0);
  const bool needs_copy = out != input(0) && out != input(1);
  return [=, second = input(1), copy_input = input_copy()](std::int64_t /*layer*/) {
    if (needs_copy) copy_input();
    add_residual(out, needs_copy ? second : other, count);
    return StepCount{0, 3 * count * kFloatBytes};
  };
}

/// x + m·f(x). If the sum overwrites f(x), f(x) is scaled in place first.
StepBuilder::Run StepBuilder::scaled_residual(const ResidualAdd& op) {
  const std::int64_t count = integer(op.elements);
  float* const out = output();
  const bool on_branch = out == input(1);
  return [=, factor = static_cast<float>(op.multiplier), copy_input = input_copy(), x = input(0),
          branch = input(1)](std::int64_t /*layer*/) {
    if (on_branch) {
      scale(out, factor, count);
      add_residual(out, x, count);
    } else {
      copy_input();
      add_scaled_residual(out, branch, factor, count);
    }
    return StepCount{0, 3 * count * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const Scale& op) {
  const std::int64_t count = integer(op.elements);
  const auto factor = static_cast<float>(op.factor);
  if (!op.part.row_width.is_zero()) return scaled_part(op);
  return [=, copy_input = input_copy(), x = output()](std::int64_t /*layer*/) {
    copy_input();
    scale(x, factor, count);
    return StepCount{0, 2 * count * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::scaled_part(const Scale& op) {
  const std::int64_t rows = integer(op.part.rows);
  const std::int64_t stride = integer(op.part.row_width);
  const std::int64_t width = integer(op.part.heads * op.part.head_dim);
  return [=, copy_input = input_copy(), factor = static_cast<float>(op.factor),
          x = output() + integer(op.part.first)](std::int64_t /*layer*/) {
    copy_input();
    for (std::int64_t row = 0; row < rows; ++row) scale(x + row * stride, factor, width);
    return StepCount{0, 2 * rows * width * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const SoftCap& op) {
  const std::int64_t count = integer(op.elements);
  return [=, cap = static_cast<float>(op.cap), copy_input = input_copy(),
          x = output()](std::int64_t /*layer*/) {
    copy_input();
    soft_cap(x, cap, count);
    return StepCount{0, 2 * count * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const OutputGate& op) {
  const std::int64_t count = integer(op.elements);
  const std::int64_t gates = integer(op.gate_elements());
  const std::vector<std::int64_t> unseen = rows_without_images();
  const std::int64_t width = program_.spec_.hidden_size;
  return [=, copy_input = input_copy(), kind = op.kind, gate = input(1),
          x = output()](std::int64_t /*layer*/) {
    copy_input();
    if (gates == count) {
      multiply_by_activation(kind, gate, x, count);
    } else {
      multiply_rows_by_activation(kind, gate, x, gates, count / gates);
    }
    for (const std::int64_t row : unseen) std::fill_n(x + row * width, width, 0.0F);
    return StepCount{0, (2 * count + gates) * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const Dropout&) {
  throw Error(ErrorCode::internal, "a training graph cannot be run");
}

StepBuilder::Run StepBuilder::operator()(const CrossEntropy&) {
  throw Error(ErrorCode::internal, "a training graph cannot be run");
}

}  // namespace headroom::measured
