// The recurrent block of Griffin and RecurrentGemma (arXiv 2402.19427, section 2.3).
#include "builder.h"

namespace headroom::detail {

TensorId GraphBuilder::gated_recurrence(const StackContext& stack, TensorId hidden) {
  constexpr auto kRole = WeightRole::recurrent;
  const GatedRecurrenceSpec& spec = *stack.attention->gated_recurrence;
  const std::int64_t blocks = stack.attention->num_attention_heads;
  const Expr heads = Symbol::num_attention_heads;
  const Expr block = Integer{spec.width / blocks};
  const Expr width = heads * block;
  const Expr elements = stack.rows() * width;
  const auto map = [&](Part part, const std::string& path, const Expr& out, TensorId input) {
    return project(stack, part, {path, out}, kRole, LinearBias::present, input);
  };
  TensorId gate = map(Part::mixer_in, "mixer.gate", width, hidden);
  gate = emit_in_place(Part::mixer_gate, "mixer.gate.activation",
                       Activation{spec.activation, elements}, {gate});
  ShortConvolution convolution;
  convolution.kernel = Integer{spec.conv_kernel_dim};
  convolution.activation = ActivationKind::identity;
  convolution.bias = true;
  const TensorId x = short_convolution(stack, Part::mixer_convolution, "mixer.convolution", kRole,
                                       convolution, map(Part::mixer_in, "mixer.x", width, hidden));
  std::vector<TensorId> operands{x};
  if (stack.keys == KeySource::cache) {
    operands.push_back(tensor("mixer.state", {kBatch, width}, ElementType::recurrent_state));
  }
  const auto add = [&](const std::string& path, std::vector<Expr> shape) {
    return weight(Part::mixer_scan, path, std::move(shape), kRole);
  };
  std::vector<WeightId> weights{add("mixer.input_gate.weight", {heads, block, block}),
                                add("mixer.input_gate.bias", {heads, block}),
                                add("mixer.recurrent_gate.weight", {heads, block, block}),
                                add("mixer.recurrent_gate.bias", {heads, block}),
                                add("mixer.decay", {width})};
  TensorId out = emit(Part::mixer_scan, "mixer.recurrence",
                      GatedLinearRecurrence{kBatch, stack.rows(), heads, block, stack.keys},
                      std::move(operands), std::move(weights), {kBatch, stack.tokens, width});
  out = emit_in_place(Part::mixer_gate, "mixer.gate.product",
                      OutputGate{ActivationKind::identity, elements}, {out, gate});
  return map(Part::mixer_out, "mixer.out", Symbol::hidden_size, out);
}

}  // namespace headroom::detail
