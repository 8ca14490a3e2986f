// Single-layer models without attention: a recurrence or a convolution.
#include "builder.h"

namespace headroom::detail {
TensorId GraphBuilder::recurrent(const StackContext& stack, TensorId hidden) {
  const RecurrentSpec& spec = *stack.spec->recurrent;
  const Expr width = Symbol::hidden_size;
  Recurrence op{spec.cell, kBatch, stack.tokens, width, spec.bias, stack.keys};
  // The input GEMMs do not depend on the state, so one GEMM covers all positions.
  const Expr gates = op.gates() * width;
  std::vector<TensorId> operands{linear({Part::recurrent_input,
                                         "recurrent.input",
                                         WeightRole::recurrent,
                                         stack.rows(),
                                         width,
                                         {{"recurrent.input", gates}},
                                         spec.bias},
                                        hidden, {kBatch, stack.tokens, gates})};
  if (stack.keys == KeySource::cache) {
    operands.push_back(tensor("recurrent.state", {kBatch, Integer{states_of(spec.cell)}, width},
                              ElementType::kv_cache));
  }
  const auto add = [&](const std::string& path, std::vector<Expr> shape) {
    return weight(Part::recurrent_core, path, std::move(shape), WeightRole::recurrent);
  };
  std::vector<WeightId> weights{add("recurrent.hidden.weight", {gates, width})};
  if (spec.bias) weights.push_back(add("recurrent.hidden.bias", {gates}));
  return emit(Part::recurrent_core, "recurrent.core", std::move(op), std::move(operands),
              std::move(weights), hidden_shape(stack));
}

TensorId GraphBuilder::convolution_layer(const StackContext& stack, TensorId hidden) {
  const ConvolutionSpec& spec = *stack.convolution;
  const Expr width = Symbol::hidden_size;
  Convolution op{kBatch,     width,       width, sized(Symbol::kernel_size, spec.kernel_size),
                 Integer{1}, stack.tokens};
  op.dilation = Integer{spec.dilation};
  op.masking = spec.causal ? Masking::causal : Masking::none;
  op.bias = spec.bias;
  std::vector<TensorId> operands{hidden};
  if (stack.keys == KeySource::cache && spec.kernel_size > 1) {
    op.past = KeySource::cache;
    operands.push_back(
        tensor("convolution.state", {kBatch, op.reach(), width}, ElementType::kv_cache));
  }
  const auto add = [&](const std::string& path, std::vector<Expr> shape) {
    return weight(Part::convolution, path, std::move(shape), WeightRole::convolution);
  };
  std::vector<WeightId> weights{add("convolution.weight", {width, width, op.kernel})};
  if (spec.bias) weights.push_back(add("convolution.bias", {width}));
  hidden = emit(Part::convolution, "convolution", std::move(op), std::move(operands),
                std::move(weights), hidden_shape(stack));
  if (!spec.activation) return hidden;
  return emit_in_place(Part::convolution_activation, "convolution.activation",
                       Activation{*spec.activation, stack.rows() * width}, {hidden});
}

TensorId GraphBuilder::input_convolution(const StackContext& stack, TensorId input,
                                         TensorId hidden) {
  begin_block(stack.path + ".input_convolution", stack.role, Integer{1}, hidden);
  StackContext context = stack;
  context.convolution = &*stack.spec->input_convolution;
  hidden = add_residual(stack, "residual", hidden, convolution_layer(context, input));
  return end_block(norm(stack.spec->norm, "norm", stack.rows(), hidden));
}

}  // namespace headroom::detail
