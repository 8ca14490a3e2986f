// Steps of element-wise recurrences, and of the operators that feed them.
#include "kernels/linear_recurrence.h"
#include "step_builder.h"

namespace headroom::measured {

StepBuilder::Run StepBuilder::operator()(const GatedLinearRecurrence& op) {
  GatedRecurrenceArguments args;
  args.batch = integer(op.batch);
  args.seq_len = integer(op.rows) / args.batch;
  args.heads = integer(op.heads);
  args.head_dim = integer(op.head_dim);
  args.x = input(0);
  args.out = output();
  const std::int64_t moved = 2 * (integer(op.elements()) + integer(op.state_elements()));
  const auto values = [this](std::size_t index) {
    return [path = weight_path(index), weights = &program_.weights_,
            shared_layers = block_.layers_per_weights](std::int64_t layer) {
      return weights->values(path, layer / shared_layers);
    };
  };
  return [=, input_gate = values(0), input_bias = values(1), recurrent_gate = values(2),
          recurrent_bias = values(3), decay = values(4), lengths = &program_.lengths_,
          state = state_of(op.state, op.state_elements()),
          memory = scratch(args.scratch_floats())](std::int64_t layer) mutable {
    args.first_position = lengths->past;
    args.input_gate = input_gate(layer);
    args.input_gate_bias = input_bias(layer);
    args.recurrent_gate = recurrent_gate(layer);
    args.recurrent_gate_bias = recurrent_bias(layer);
    args.decay = decay(layer);
    args.state = state(layer);
    return StepCount{gated_linear_recurrence(args, memory->data()), moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const TokenShift& op) {
  TokenShiftArguments args;
  args.batch = integer(op.batch);
  args.seq_len = integer(op.rows) / args.batch;
  args.width = integer(op.width);
  args.x = input(0);
  args.out = output();
  const std::int64_t moved = 2 * (integer(op.elements()) + integer(op.state_elements()));
  return [=, state = state_of(op.past, op.state_elements())](std::int64_t layer) mutable {
    args.state = state(layer);
    token_shift(args);
    return StepCount{0, moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const TokenMix& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t width = integer(op.width);
  if (op.weight == MixWeight::gate) {
    return
        [=, x = input(0), y = input(1), share = input(2), out = output()](std::int64_t /*layer*/) {
          gate_mix(x, y, share, out, rows * width);
          return StepCount{0, 4 * rows * width * kFloatBytes};
        };
  }
  return
      [=, path = weight_path(0), weights = &program_.weights_, layers = block_.layers_per_weights,
       x = input(0), shifted = input(1), out = output()](std::int64_t layer) {
        token_mix(x, shifted, weights->values(path, layer / layers), out, rows, width);
        return StepCount{0, 3 * rows * width * kFloatBytes};
      };
}

StepBuilder::Run StepBuilder::operator()(const WeightedKeyValue& op) {
  WeightedKeyValueArguments args;
  args.batch = integer(op.batch);
  args.seq_len = integer(op.rows) / args.batch;
  args.width = integer(op.width);
  args.key = input(0);
  args.value = input(1);
  args.out = output();
  const std::int64_t moved = 3 * integer(op.elements()) + 2 * integer(op.state_elements());
  return [=, decay = weight_path(0), bonus = weight_path(1), weights = &program_.weights_,
          layers = block_.layers_per_weights,
          state = state_of(op.state, op.state_elements())](std::int64_t layer) mutable {
    args.decay = weights->values(decay, layer / layers);
    args.bonus = weights->values(bonus, layer / layers);
    args.state = state(layer);
    weighted_key_value(args);
    return StepCount{0, moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const Concatenate& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t first = integer(op.first);
  const std::int64_t second = integer(op.second);
  return [=, x = input(0), y = input(1), out = output()](std::int64_t /*layer*/) {
    concatenate_rows(x, first, y, second, out, rows);
    return StepCount{0, 2 * rows * (first + second) * kFloatBytes};
  };
}

}  // namespace headroom::measured
