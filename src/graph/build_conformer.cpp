// Conformer layers of an audio tower (Gemma 3n and 4; transformers, Gemma3nAudioConformerBlock and
// Gemma4AudioLayer).
#include "builder.h"

namespace headroom::detail {

/// Sinusoids of the relative positions, which all layers project.
void GraphBuilder::conformer_positions(const StackContext& stack) {
  const ConformerSpec& spec = *stack.spec->conformer;
  RelativeSinusoids op{kBatch, {}, Symbol::hidden_size, 0, SinusoidRows::earlier};
  op.positions = Integer{spec.positions()};
  begin_block(stack.path, stack.role, Integer{1}, 0);
  position_table_ = end_block(emit(Part::relative_position_bias, "relative_sinusoids", op, {}, {},
                                   {op.batch, op.positions, op.width}));
}

TensorId GraphBuilder::conformer_layer(const StackContext& stack, TensorId hidden) {
  hidden = conformer_network(stack, "first_mlp", hidden);
  hidden = conformer_attention(stack, hidden);
  hidden = conformer_convolution(stack, hidden);
  hidden = conformer_network(stack, "second_mlp", hidden);
  return norm(stack.spec->norm, "output_norm", stack.rows(), clipped(stack, "output", hidden));
}

/// Hidden states within ±clip.
TensorId GraphBuilder::clipped(const StackContext& stack, const std::string& path,
                               TensorId hidden) {
  const Clamp op{stack.rows() * Symbol::hidden_size, stack.spec->conformer->clip};
  return emit_in_place(Part::residual, path + ".clip", op, {hidden});
}

/// Values between the stored bounds of a linear layer.
TensorId GraphBuilder::within_bounds(const std::string& path, TensorId values) {
  std::vector<WeightId> weights;
  for (const char* const end : {"_min", "_max"}) {
    weights.push_back(weight(Part::residual, path + end, {Integer{1}}, WeightRole::norm));
    graph_.weights[weights.back()].kind = WeightKind::buffer;
  }
  const Clamp op{graph_.tensors[values].elements(), 0, LayerBounds::stored};
  return emit_in_place(Part::residual, path + ".bounds", op, {values}, std::move(weights));
}

/// A linear layer of all rows, between its bounds if it has any.
TensorId GraphBuilder::bounded_linear(const StackContext& stack, const LinearParts& parts,
                                      TensorId input) {
  Expr width;
  for (const Projection& projection : parts.projections) width += projection.out_features;
  const std::vector<Expr> shape{kBatch, stack.tokens, width};
  switch (stack.spec->conformer->bounds) {
    case LayerBounds::none:
      break;
    case LayerBounds::stored:
      return within_bounds(parts.path + ".output",
                           linear(parts, within_bounds(parts.path + ".input", input), shape));
  }
  return linear(parts, input, shape);
}

TensorId GraphBuilder::conformer_network(const StackContext& stack, const std::string& path,
                                         TensorId hidden) {
  const Expr rows = stack.rows();
  const Expr width = Symbol::hidden_size;
  const Expr inner = Symbol::intermediate_size;
  const LinearParts up{Part::mlp_up, path + ".up", WeightRole::mlp,
                       rows,         width,        {{path + ".up", inner}}};
  const LinearParts down{Part::mlp_down, path + ".down", WeightRole::mlp,
                         rows,           inner,          {{path + ".down", width}}};
  TensorId branch =
      norm(stack.spec->norm, path + "_norm", rows, clipped(stack, path + ".input", hidden));
  branch = bounded_linear(stack, up, branch);
  branch = emit_in_place(Part::mlp_activation, path + ".activation",
                         Activation{stack.ffn->activation, rows * inner}, {branch});
  branch = clipped(stack, path + ".output", bounded_linear(stack, down, branch));
  branch = norm(stack.spec->norm, path + "_output_norm", rows, branch);
  const ResidualAdd op{rows * width, stack.spec->conformer->network_factor};
  return emit_in_place(Part::residual, path + ".residual", op, {hidden, branch});
}

TensorId GraphBuilder::conformer_attention(const StackContext& stack, TensorId hidden) {
  const ConformerSpec& spec = *stack.spec->conformer;
  const Expr rows = stack.rows();
  const Expr width = Symbol::hidden_size;
  const auto project = [&](const std::string& name, TensorId input) {
    const std::string path = "attention." + name;
    return bounded_linear(
        stack, {Part::attention_qkv, path, WeightRole::attention, rows, width, {{path, width}}},
        input);
  };
  const LocalAttention op{rows,
                          stack.heads.heads,
                          stack.heads.head_dim,
                          spec.chunk,
                          spec.earlier,
                          spec.later,
                          stack.attention->soft_cap,
                          spec.keys,
                          spec.positions()};
  const TensorId normed =
      norm(stack.spec->norm, "attention_norm", rows, clipped(stack, "attention.input", hidden));
  std::vector<TensorId> inputs;
  for (const char* const name : {"query", "key", "value"}) inputs.push_back(project(name, normed));
  const Expr positions = Integer{op.positions};
  inputs.push_back(linear({Part::relative_position_bias,
                           "attention.position_key",
                           WeightRole::attention,
                           kBatch * positions,
                           width,
                           {{"attention.position_key", width}}},
                          *position_table_, {kBatch, positions, width}));
  const WeightId scale =
      weight(Part::attention_core, "attention.scale", {op.head_dim}, WeightRole::attention);
  TensorId branch = emit(Part::attention_core, "attention.core", op, std::move(inputs), {scale},
                         hidden_shape(stack));
  branch = clipped(stack, "attention.output", project("output", branch));
  branch = norm(stack.spec->norm, "attention_output_norm", rows, branch);
  return emit_in_place(Part::residual, "attention.residual", ResidualAdd{rows * width},
                       {hidden, branch});
}

TensorId GraphBuilder::conformer_convolution(const StackContext& stack, TensorId hidden) {
  constexpr WeightRole kRole = WeightRole::convolution;
  const ConformerSpec& spec = *stack.spec->conformer;
  const Expr rows = stack.rows();
  const Expr width = Symbol::hidden_size;
  const LinearParts in{Part::mixer_in, "convolution.in",
                       kRole,          rows,
                       width,          {{"convolution.gate", width}, {"convolution.up", width}}};
  const LinearParts out{Part::mixer_out, "convolution.out",           kRole, rows,
                        width,           {{"convolution.out", width}}};
  TensorId branch = norm(spec.convolution_norm, "convolution_norm", rows, hidden);
  branch = emit(Part::mixer_gate, "convolution.gated",
                GatedActivation{ActivationKind::sigmoid, rows * width},
                {bounded_linear(stack, in, branch)}, {}, hidden_shape(stack));
  const Expr kernel = Integer{spec.kernel_size};
  ShortConvolution op{kBatch, rows, width, kernel};
  op.activation = ActivationKind::identity;
  branch = emit_in_place(
      Part::mixer_convolution, "convolution.depthwise", std::move(op), {branch},
      {weight(Part::mixer_convolution, "convolution.weight", {width, kernel}, kRole)});
  branch = norm(spec.convolution_norm, "convolution.inner_norm", rows,
                clipped(stack, "convolution", branch));
  branch = emit_in_place(Part::mixer_convolution, "convolution.activation",
                         Activation{stack.ffn->activation, rows * width}, {branch});
  return emit_in_place(Part::residual, "convolution.residual", ResidualAdd{rows * width},
                       {hidden, bounded_linear(stack, out, branch)});
}

}  // namespace headroom::detail
