// Steps of mixers with a state of constant size.
#include <algorithm>
#include <memory>

#include "kernels/elementwise.h"
#include "kernels/state_kernels.h"
#include "kernels/time_mix.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

/// Form of a stack's lightning layers, which is one for all.
LightningForm lightning_form_of(const StackSpec& stack) {
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const AttentionSpec& attention = stack.attention_of(variant);
    const auto& layer = attention.state_space;
    if (layer && layer->kind == StateSpaceKind::lightning) return lightning_form(attention);
  }
  return LightningForm::minimax;
}

}  // namespace

StepBuilder::State StepBuilder::state_of(KeySource source, const Expr& elements) {
  if (source == KeySource::cache) {
    const std::string& name = program_.graph_.tensors[node_->inputs.back()].name;
    return
        [name, cache = &program_.cache_](std::int64_t layer) { return cache->data(name, layer); };
  }
  auto zeros = std::make_shared<AlignedVector<float>>(static_cast<std::size_t>(integer(elements)));
  return [zeros](std::int64_t /*layer*/) {
    std::ranges::fill(*zeros, 0.0F);
    return zeros->data();
  };
}

/// Lengths of the sequences that a convolution reads one after the other: the clips of an audio
/// tower, or that of all sequences of a batch at once.
std::vector<std::int64_t> StepBuilder::convolved_sequences(const ShortConvolution& op) const {
  if (!is_audio_tower()) return {integer(op.rows) / integer(op.batch)};
  std::vector<std::int64_t> rows;
  for (const std::int64_t frames : program_.inputs_.audio->clip_frames) {
    rows.push_back(program_.spec_.audio_tower->rows_of_clip(frames));
  }
  return rows;
}

StepBuilder::Run StepBuilder::operator()(const ShortConvolution& op) {
  ShortConvolutionArguments args;
  args.channels = integer(op.channels);
  args.kernel = integer(op.kernel);
  const std::vector<std::int64_t> sequences = convolved_sequences(op);
  const std::string bias = op.bias ? weight_path(1) : "";
  const std::int64_t count = integer(op.elements());
  const std::int64_t moved = 2 * (count + integer(op.state_elements()));
  return [=, weight = weight_path(0), copy_input = input_copy(),
          state = state_of(op.past, op.state_elements()), weights = &program_.weights_,
          kind = op.activation, batch = integer(op.batch), x = output(),
          shared_layers = block_.layers_per_weights](std::int64_t layer) mutable {
    copy_input();
    const std::int64_t stored = layer / shared_layers;
    args.weight = weights->values(weight, stored);
    args.bias = bias.empty() ? nullptr : weights->values(bias, stored);
    args.x = x;
    std::int64_t flops = 0;
    for (const std::int64_t length : sequences) {
      args.batch = batch;
      args.seq_len = length;
      args.state = state(layer);
      flops += short_convolution(args);
      args.x += batch * length * args.channels;
    }
    if (kind != ActivationKind::identity) activate(kind, x, count);
    return StepCount{flops, moved * kFloatBytes};
  };
}

std::int64_t StepBuilder::first_head_of_rank(std::int64_t heads, std::int64_t all) const {
  const RankContext* const rank = program_.rank_;
  return rank == nullptr || heads == all ? 0 : rank->tensor.rank * heads;
}

StepBuilder::Run StepBuilder::operator()(const StateSpaceScan& op) {
  StateSpaceArguments args;
  args.kind = op.kind;
  args.batch = integer(op.batch);
  args.seq_len = integer(op.rows) / args.batch;
  args.heads = integer(op.heads);
  args.head_dim = integer(op.head_dim);
  args.groups = integer(op.groups);
  args.state_size = integer(op.state_size);
  args.least_time_step = static_cast<float>(op.least_time_step);
  args.greatest_time_step = static_cast<float>(op.greatest_time_step);
  const bool lightning = op.kind == StateSpaceKind::lightning;
  if (!lightning) {
    args.all_heads = op.heads.evaluate_int64(program_.whole_sizes_);
    args.first_head = first_head_of_rank(args.heads, args.all_heads);
  }
  const std::int64_t shared = args.groups * args.state_size;
  const std::int64_t rows = args.batch * args.seq_len;
  const auto rows_of = [&](std::size_t index) {
    return TokenRows{input(index), floats_of(node_->inputs[index]) / rows};
  };
  args.x = rows_of(0);
  if (!lightning) args.time_step = rows_of(1);
  args.b = rows_of(op.kind == StateSpaceKind::selective ? 2 : 0);
  args.b.data += integer(op.first_parameter);
  args.c = {args.b.data + shared, args.b.stride};
  args.out = output();
  const std::int64_t moved = rows * (2 * args.heads * args.head_dim + args.heads + 2 * shared) +
                             2 * integer(op.state_elements());
  return [=, bind = scan_weights(op),
          state = state_of(op.state, op.state_elements())](std::int64_t layer) mutable {
    bind(args, layer);
    args.state = state(layer);
    return StepCount{state_space_scan(args), moved * kFloatBytes};
  };
}

StepBuilder::ScanWeights StepBuilder::scan_weights(const StateSpaceScan& op) const {
  if (op.kind == StateSpaceKind::lightning) {
    auto decays = std::make_shared<std::vector<float>>();
    const std::int64_t heads = op.heads.evaluate_int64(program_.whole_sizes_);
    return [decays, heads, first = first_head_of_rank(integer(op.heads), heads),
            layers = program_.spec_.main_stack().num_layers,
            form = lightning_form_of(program_.spec_.main_stack())](StateSpaceArguments& args,
                                                                   std::int64_t layer) {
      *decays = lightning_decays(heads, layer, layers, form);
      args.decay = decays->data() + first;
    };
  }
  const bool biased = op.kind == StateSpaceKind::dual;
  const std::size_t first = biased ? 1 : 0;
  return
      [bias = biased ? weight_path(0) : "", a_log = weight_path(first), d = weight_path(first + 1),
       weights = &program_.weights_,
       shared_layers = block_.layers_per_weights](StateSpaceArguments& args, std::int64_t layer) {
        const std::int64_t stored = layer / shared_layers;
        args.dt_bias = bias.empty() ? nullptr : weights->values(bias, stored);
        args.a_log = weights->values(a_log, stored);
        args.d = weights->values(d, stored);
      };
}

StepBuilder::Run StepBuilder::time_mix_step(const GatedDelta& op) {
  TimeMixArguments args;
  args.update = op.update;
  args.batch = integer(op.batch);
  const std::int64_t rows = integer(op.rows);
  args.seq_len = rows / args.batch;
  args.heads = integer(op.heads);
  args.key_dim = integer(op.key_dim);
  args.value_dim = integer(op.value_dim);
  const bool removes = op.update == StateUpdate::two_vectors;
  args.receptance = input(0);
  args.key = input(1);
  args.value = input(2);
  args.decay = removes ? input(3) : nullptr;
  args.rate = removes ? input(4) : nullptr;
  args.out = output();
  const Expr elements = op.batch * op.heads * op.key_dim * op.value_dim;
  const std::int64_t row = (removes ? 4 : 2) * args.key_dim + 2 * args.value_dim;
  const std::int64_t moved = rows * args.heads * row + 2 * integer(elements);
  return [=, first = weight_path(0), second = weight_path(1), state = state_of(op.state, elements),
          memory = scratch(args.scratch_floats()), weights = &program_.weights_,
          shared_layers = block_.layers_per_weights](std::int64_t layer) mutable {
    args.first = weights->values(first, layer / shared_layers);
    args.second = weights->values(second, layer / shared_layers);
    args.state = state(layer);
    return StepCount{time_mix(args, memory->data()), moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const ValueBonus& op) {
  ValueBonusArguments args;
  args.rows = integer(op.rows);
  args.heads = integer(op.heads);
  args.key_dim = integer(op.key_dim);
  args.value_dim = integer(op.value_dim);
  args.receptance = input(1);
  args.key = input(2);
  args.value = input(3);
  args.rate = input(4);
  args.out = output();
  const std::int64_t moved = 3 * integer(op.key_elements() + op.value_elements());
  return [=, copy_input = input_copy(), replacement = weight_path(0), bonus = weight_path(1),
          weights = &program_.weights_,
          shared_layers = block_.layers_per_weights](std::int64_t layer) mutable {
    copy_input();
    args.replacement = weights->values(replacement, layer / shared_layers);
    args.bonus = weights->values(bonus, layer / shared_layers);
    add_value_bonus(args);
    return StepCount{0, moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const GatedDelta& op) {
  if (op.update != StateUpdate::delta) return time_mix_step(op);
  GatedDeltaArguments args;
  args.batch = integer(op.batch);
  const std::int64_t rows = integer(op.rows);
  args.seq_len = rows / args.batch;
  args.key_heads = integer(op.key_heads);
  args.heads = integer(op.heads);
  args.key_dim = integer(op.key_dim);
  args.value_dim = integer(op.value_dim);
  const std::int64_t keys = args.key_heads * args.key_dim;
  const std::int64_t row = 2 * keys + args.heads * args.value_dim;
  args.query = {input(0), row};
  args.key = {input(0) + keys, row};
  args.value = {input(0) + 2 * keys, row};
  args.decay = op.decay;
  args.strength = static_cast<float>(op.strength);
  args.decay_bound = static_cast<float>(op.decay_bound);
  switch (op.decay) {
    case DeltaDecay::each_head:
      args.beta = {input(1), 2 * args.heads};
      args.alpha = {input(1) + args.heads, 2 * args.heads};
      break;
    case DeltaDecay::each_key_dim:
      args.beta = {input(1), args.heads};
      args.alpha = {input(2), args.heads * args.key_dim};
      break;
  }
  args.out = output();
  const Expr elements = op.batch * op.heads * op.key_dim * op.value_dim;
  const std::int64_t moved =
      rows * (row + args.heads * (1 + args.value_dim) + integer(op.decays())) +
      2 * integer(elements);
  auto scratch =
      std::make_shared<AlignedVector<float>>(static_cast<std::size_t>(args.scratch_floats()));
  return [=, dt_bias = weight_path(0), a_log = weight_path(1), state = state_of(op.state, elements),
          weights = &program_.weights_,
          shared_layers = block_.layers_per_weights](std::int64_t layer) mutable {
    args.dt_bias = weights->values(dt_bias, layer / shared_layers);
    args.a_log = weights->values(a_log, layer / shared_layers);
    args.state = state(layer);
    return StepCount{gated_delta(args, scratch->data()), moved * kFloatBytes};
  };
}

}  // namespace headroom::measured
