// Time mixing of RWKV-4 (arXiv 2305.13048, section 3.1), and channel mixing of all versions.
#include "builder.h"

namespace headroom::detail {

TensorId GraphBuilder::shift_tokens(const StackContext& stack, Part part, const std::string& path,
                                    TensorId hidden) {
  const Expr width = Symbol::hidden_size;
  std::vector<TensorId> operands{hidden};
  if (stack.keys == KeySource::cache) {
    operands.push_back(
        tensor(path + "_state", {kBatch, Integer{1}, width}, ElementType::convolution_state));
  }
  return emit(part, path, TokenShift{kBatch, stack.rows(), width, stack.keys}, std::move(operands),
              {}, hidden_shape(stack));
}

TensorId GraphBuilder::mix_tokens(const StackContext& stack, Part part, const std::string& path,
                                  TensorId hidden, TensorId shifted) {
  const Expr width = Symbol::hidden_size;
  const WeightId mu = weight(part, path, {width}, WeightRole::recurrent);
  return emit(part, path, TokenMix{stack.rows(), width}, {hidden, shifted}, {mu},
              hidden_shape(stack));
}

TensorId GraphBuilder::weighted_key_value(const StackContext& stack, TensorId hidden) {
  constexpr auto kRole = WeightRole::recurrent;
  const Expr width = Integer{stack.attention->weighted_key_value_width};
  const TensorId shifted = shift_tokens(stack, Part::mixer_in, "mixer.shift", hidden);
  const auto in = [&](const std::string& name) {
    const TensorId mixed = mix_tokens(stack, Part::mixer_in, "mixer.mix_" + name, hidden, shifted);
    return project(stack, Part::mixer_in, {"mixer." + name, width}, kRole, LinearBias::absent,
                   mixed);
  };
  const TensorId receptance = in("receptance");
  std::vector<TensorId> operands{in("key"), in("value")};
  if (stack.keys == KeySource::cache) {
    operands.push_back(
        tensor("mixer.state", {kBatch, Integer{3}, width}, ElementType::recurrent_state));
  }
  const std::vector<WeightId> weights{weight(Part::mixer_scan, "mixer.decay", {width}, kRole),
                                      weight(Part::mixer_scan, "mixer.first", {width}, kRole)};
  TensorId out = emit(Part::mixer_scan, "mixer.recurrence",
                      WeightedKeyValue{kBatch, stack.rows(), width, stack.keys},
                      std::move(operands), weights, {kBatch, stack.tokens, width});
  out = emit_in_place(Part::mixer_gate, "mixer.gate.product",
                      OutputGate{ActivationKind::sigmoid, stack.rows() * width}, {out, receptance});
  return project(stack, Part::mixer_out, {"mixer.out", Symbol::hidden_size}, kRole,
                 LinearBias::absent, out);
}

TensorId GraphBuilder::channel_mix(const StackContext& stack, TensorId hidden) {
  constexpr auto kRole = WeightRole::mlp;
  const Expr inner = sized(Symbol::intermediate_size, stack.ffn->intermediate_size);
  const TensorId shifted = shift_tokens(stack, Part::mlp_up, "mlp.shift", hidden);
  // Without receptance (RWKV-7), the weights are those of the position before.
  const bool of_previous = !stack.ffn->receptance;
  const auto mixed = [&](const std::string& name) {
    return mix_tokens(stack, Part::mlp_up, "mlp.mix_" + name, of_previous ? shifted : hidden,
                      of_previous ? hidden : shifted);
  };
  const auto network = [&] {
    const TensorId inner_states =
        project(stack, Part::mlp_up, {"mlp.up", inner}, kRole, LinearBias::absent, mixed("key"));
    return project(
        stack, Part::mlp_down, {"mlp.down", Symbol::hidden_size}, kRole, LinearBias::absent,
        emit_in_place(Part::mlp_activation, "mlp.activation",
                      Activation{stack.ffn->activation, stack.rows() * inner}, {inner_states}));
  };
  if (!stack.ffn->receptance) return network();
  const TensorId receptance = project(stack, Part::mlp_up, {"mlp.receptance", Symbol::hidden_size},
                                      kRole, LinearBias::absent, mixed("receptance"));
  const TensorId out = network();
  return emit_in_place(Part::mlp_activation, "mlp.gate.product",
                       OutputGate{ActivationKind::sigmoid, stack.rows() * Symbol::hidden_size},
                       {out, receptance});
}

}  // namespace headroom::detail
