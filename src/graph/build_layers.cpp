// A stack: equal layers of attention and feed-forward network, with norms before, after or nowhere.
#include "builder.h"

namespace headroom::detail {

TensorId GraphBuilder::run_stack(const StackContext& stack, TensorId hidden) {
  if (spec_.position.kind == PositionKind::relative_bias) relative_position_bias(stack);
  begin_block(stack.path + ".layers", stack.role, stack.num_layers, hidden);
  hidden = end_block(layer(stack, hidden));
  return final_norm(stack, hidden);
}

template <class Function>
TensorId GraphBuilder::sublayer(const StackContext& stack, const std::string& name,
                                double dropout_probability, TensorId hidden, Function function) {
  const Expr rows = Expr(Symbol::batch_size) * stack.tokens;
  const NormPlacement placement = stack.spec->norm_placement;
  const std::string norm_path = name + "_norm";
  TensorId branch = hidden;
  if (placement == NormPlacement::pre) branch = norm(stack.spec->norm, norm_path, rows, branch);
  branch = dropout(name + ".dropout", dropout_probability, function(branch));
  TensorId sum = emit_in_place(Part::residual, name + ".residual",
                               ResidualAdd{rows * Symbol::hidden_size}, {hidden, branch});
  if (placement == NormPlacement::post) sum = norm(stack.spec->norm, norm_path, rows, sum);
  return sum;
}

TensorId GraphBuilder::layer(const StackContext& stack, TensorId hidden) {
  if (spec_.kind == ModelKind::attention_layer) return self_attention(stack, hidden);
  const DropoutSpec& dropout = stack.spec->dropout;
  hidden = sublayer(stack, "attention", dropout.attention_output, hidden,
                    [&](TensorId input) { return self_attention(stack, input); });
  if (stack.spec->cross_attention) {
    hidden = sublayer(stack, "cross_attention", dropout.attention_output, hidden,
                      [&](TensorId input) { return cross_attention(stack, input); });
  }
  if (stack.spec->ffn.kind == FfnKind::none) return hidden;
  return sublayer(stack, "mlp", dropout.ffn_output, hidden,
                  [&](TensorId input) { return feed_forward(stack, input); });
}

TensorId GraphBuilder::final_norm(const StackContext& stack, TensorId hidden) {
  if (!stack.spec->final_norm) return hidden;
  begin_block(stack.path, stack.role, Integer{1}, hidden);
  hidden =
      norm(*stack.spec->final_norm, "final_norm", Expr(Symbol::batch_size) * stack.tokens, hidden);
  hidden = dropout("final_dropout", stack.spec->dropout.final, hidden);
  return end_block(hidden);
}

TensorId GraphBuilder::feed_forward(const StackContext& stack, TensorId hidden) {
  const FfnSpec& ffn = stack.spec->ffn;
  const Expr rows = Expr(Symbol::batch_size) * stack.tokens;
  const Expr width = Symbol::intermediate_size;
  const bool gated = ffn.kind == FfnKind::gated;
  LinearParts up{Part::mlp_up, "mlp.up", WeightRole::mlp, rows, Symbol::hidden_size, {}, ffn.bias};
  if (gated) up.projections.push_back({"mlp.gate", width});
  up.projections.push_back({"mlp.up", width});
  if (gated) up.path = "mlp.gate_up";
  TensorId inner =
      linear(up, hidden, {Symbol::batch_size, stack.tokens, gated ? Integer{2} * width : width});
  if (gated) {
    inner =
        emit(Part::mlp_activation, "mlp.activation", GatedActivation{ffn.activation, rows * width},
             {inner}, {}, {Symbol::batch_size, stack.tokens, width});
  } else {
    inner = emit_in_place(Part::mlp_activation, "mlp.activation",
                          Activation{ffn.activation, rows * width}, {inner});
  }
  inner = dropout("mlp.activation.dropout", stack.spec->dropout.ffn_activation, inner);
  const LinearParts down{Part::mlp_down, "mlp.down", WeightRole::mlp,
                         rows,           width,      {{"mlp.down", Symbol::hidden_size}},
                         ffn.bias};
  return linear(down, inner, hidden_shape(stack));
}

}  // namespace headroom::detail
