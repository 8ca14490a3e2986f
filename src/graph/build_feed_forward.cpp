// Feed-forward network of a layer: dense (plain or gated), or a mixture of experts.
#include <cmath>
#include <span>

#include "builder.h"

namespace headroom::detail {
namespace {

std::vector<Projection> up_projections(const std::string& path, FfnKind kind, const Expr& width) {
  if (kind != FfnKind::gated) return {{path + ".up", width}};
  return {{path + ".gate", width}, {path + ".up", width}};
}

}  // namespace

TensorId GraphBuilder::feed_forward(const StackContext& stack, TensorId hidden) {
  const FfnSpec& ffn = *stack.ffn;
  if (ffn.kind == FfnKind::channel_mix) return channel_mix(stack, hidden);
  if (ffn.kind == FfnKind::matrix) {
    return linear({Part::mlp_up,
                   "mlp.matrix",
                   WeightRole::mlp,
                   stack.rows(),
                   Symbol::hidden_size,
                   {{"mlp.matrix", Symbol::hidden_size}}},
                  hidden, hidden_shape(stack));
  }
  if (ffn.experts) return routed_experts(stack, ffn, hidden, hidden);
  const Expr width = sized(Symbol::intermediate_size, ffn.intermediate_size);
  return dense_network(stack, ffn, width, "mlp", std::nullopt, hidden);
}

TensorId GraphBuilder::feed_forward(const StackContext& stack, TensorId normed, TensorId residual) {
  const FfnSpec& ffn = *stack.ffn;
  const bool beside = ffn.experts && ffn.experts->beside_dense;
  return beside ? experts_beside_dense(stack, ffn, normed, residual) : feed_forward(stack, normed);
}

TensorId GraphBuilder::experts_beside_dense(const StackContext& stack, const FfnSpec& ffn,
                                            TensorId normed, TensorId residual) {
  const NormSpec& norm_spec = stack.spec->norm;
  const Expr width = sized(Symbol::intermediate_size, ffn.intermediate_size);
  TensorId dense = dense_network(stack, ffn, width, "mlp", std::nullopt, normed);
  dense = norm(norm_spec, "mlp.dense_norm", stack.rows(), dense);
  const TensorId router_input = scaled(Part::mlp_router, "mlp.router.input.scale",
                                       1 / std::sqrt(static_cast<double>(spec_.hidden_size)),
                                       norm(norm_spec, "mlp.router_norm", stack.rows(), residual));
  const TensorId experts_input = norm(norm_spec, "mlp.experts_norm", stack.rows(), residual);
  TensorId routed = routed_experts(stack, ffn, router_input, experts_input);
  routed = norm(norm_spec, "mlp.experts_output_norm", stack.rows(), routed);
  return emit_in_place(Part::residual, "mlp.experts.sum",
                       ResidualAdd{stack.rows() * Symbol::hidden_size}, {dense, routed});
}

TensorId GraphBuilder::dense_network(const StackContext& stack, const FfnSpec& ffn,
                                     const Expr& width, const std::string& path,
                                     std::optional<Part> part, TensorId hidden) {
  const Expr rows = stack.rows();
  const bool gated = ffn.kind == FfnKind::gated;
  const Part activation_part = part.value_or(Part::mlp_activation);
  const LinearParts up{
      part.value_or(Part::mlp_up), path + (gated ? ".gate_up" : ".up"),   WeightRole::mlp, rows,
      Symbol::hidden_size,         up_projections(path, ffn.kind, width), ffn.bias};
  TensorId inner =
      linear(up, hidden, {Symbol::batch_size, stack.tokens, gated ? Integer{2} * width : width});
  if (gated && ffn.gate_multiplier != 1) {
    const HeadRows gates{rows, Integer{2} * width, {}, Integer{1}, width};
    inner = emit_in_place(activation_part, path + ".gate.scale",
                          Scale{gates.elements(), ffn.gate_multiplier, gates}, {inner});
  }
  if (gated) {
    inner = emit(
        activation_part, path + ".activation",
        GatedActivation{
            ffn.activation, rows * width, ffn.gate_cutoff, {}, ffn.activation_limit, ffn.tanh_caps},
        {inner}, {}, {Symbol::batch_size, stack.tokens, width});
  } else {
    inner = emit_in_place(activation_part, path + ".activation",
                          Activation{ffn.activation, rows * width}, {inner},
                          activation_weights(activation_part, path, ffn.activation));
  }
  inner = dropout(path + ".activation.dropout", stack.spec->dropout.ffn_activation, inner);
  if (ffn.inner_norm) {
    inner =
        norm(*ffn.inner_norm, path + ".inner_norm", Norm{*ffn.inner_norm, rows, width, {}}, inner);
  }
  const LinearParts down{part.value_or(Part::mlp_down),
                         path + ".down",
                         WeightRole::mlp,
                         rows,
                         width,
                         {{path + ".down", Symbol::hidden_size}},
                         ffn.down_bias.value_or(ffn.bias)};
  return scaled(down.part, path + ".down.scale", ffn.output_multiplier,
                linear(down, inner, hidden_shape(stack)));
}

std::vector<WeightId> GraphBuilder::activation_weights(Part part, const std::string& path,
                                                       ActivationKind kind) {
  if (kind != ActivationKind::xielu) return {};
  const auto constant = [&](const std::string& name) {
    return weight(part, path + ".activation." + name, {Integer{1}}, WeightRole::mlp);
  };
  std::vector<WeightId> constants{constant("positive"), constant("negative"), constant("slope"),
                                  constant("bound")};
  for (const WeightId untrained : std::span(constants).last(2)) {
    graph_.weights[untrained].kind = WeightKind::buffer;
  }
  return constants;
}

TensorId GraphBuilder::expert_linear(ExpertLinear op, const std::vector<Projection>& projections,
                                     Part part, const std::string& path,
                                     std::vector<TensorId> inputs) {
  std::vector<WeightId> weights;
  for (const Projection& projection : projections) {
    weights.push_back(weight(part, projection.name + ".weight",
                             {op.num_experts, projection.out_features, op.in_features},
                             WeightRole::mlp));
    op.out_features += projection.out_features;
    if (!op.bias) continue;
    weights.push_back(weight(part, projection.name + ".bias",
                             {op.num_experts, projection.out_features}, WeightRole::mlp));
  }
  std::vector<Expr> shape{op.rows * op.per_token, op.out_features};
  return emit(part, path, std::move(op), std::move(inputs), std::move(weights), std::move(shape));
}

TensorId GraphBuilder::route_tokens(const StackContext& stack, const ExpertsSpec& experts,
                                    TensorId router_input) {
  const Expr rows = stack.rows();
  const Expr count = Symbol::num_experts;
  const Expr per_token = Symbol::num_experts_per_tok;
  const auto router_weight = [&](const std::string& path, std::vector<Expr> shape) {
    return weight(Part::mlp_router, path, std::move(shape), WeightRole::mlp);
  };
  const LinearParts router{
      Part::mlp_router,        "mlp.router",       WeightRole::mlp, rows, Symbol::hidden_size,
      {{"mlp.router", count}}, experts.router_bias};
  std::vector<TensorId> inputs{
      linear(router, router_input, {Symbol::batch_size, stack.tokens, count})};
  std::vector<WeightId> weights;
  if (experts.beside_dense) weights.push_back(router_weight("mlp.router.expert_scale", {count}));
  if (experts.correction_bias) {
    weights.push_back(router_weight("mlp.router.correction_bias", {count}));
    if (!experts.correction_bias_is_parameter) graph_.weights.back().kind = WeightKind::buffer;
  }
  if (experts.selection == ExpertSelection::token_table) {
    weights.push_back(router_weight("mlp.router.token_experts", {Symbol::vocab_size, per_token}));
    graph_.weights.back().kind = WeightKind::buffer;
    inputs.push_back(graph_.inputs.front());
  }
  return emit(Part::mlp_router, "mlp.router.select", RouterSelect{rows, count, per_token, experts},
              std::move(inputs), std::move(weights), {rows, Integer{2} * per_token});
}

TensorId GraphBuilder::expert_networks(const StackContext& stack, const FfnSpec& ffn,
                                       TensorId hidden, const Expr& hidden_width,
                                       TensorId routing) {
  const ExpertsSpec& experts = *ffn.experts;
  const Expr rows = stack.rows();
  const Expr per_token = Symbol::num_experts_per_tok;
  const Expr width = sized(Symbol::moe_intermediate_size, experts.intermediate_size);
  ExpertLinear op{ExpertLinear::Source::tokens,
                  rows,
                  Symbol::num_experts,
                  per_token,
                  hidden_width,
                  {},
                  experts.bias,
                  experts.weighting};
  const bool gated = ffn.kind == FfnKind::gated;
  TensorId inner =
      expert_linear(op, up_projections("mlp.experts", ffn.kind, width), Part::mlp_experts_up,
                    gated ? "mlp.experts.gate_up" : "mlp.experts.up", {hidden, routing});
  const Expr elements = rows * per_token * width;
  const ActivationKind activation = experts.activation.value_or(ffn.activation);
  if (gated) {
    inner =
        emit(Part::mlp_experts_activation, "mlp.experts.activation",
             GatedActivation{
                 activation, elements, std::nullopt, {}, experts.activation_limit, ffn.tanh_caps},
             {inner}, {}, {rows * per_token, width});
  } else {
    inner = emit_in_place(Part::mlp_experts_activation, "mlp.experts.activation",
                          Activation{activation, elements}, {inner});
  }
  op.source = ExpertLinear::Source::experts;
  op.in_features = width;
  return expert_linear(op, {{"mlp.experts.down", hidden_width}}, Part::mlp_experts_down,
                       "mlp.experts.down", {inner, routing});
}

TensorId GraphBuilder::routed_experts(const StackContext& stack, const FfnSpec& ffn,
                                      TensorId router_input, TensorId hidden) {
  const ExpertsSpec& experts = *ffn.experts;
  const TensorId routing = route_tokens(stack, experts, router_input);
  const bool latent = experts.latent_size != 0;
  const Expr width = latent ? Expr(Integer{experts.latent_size}) : Expr(Symbol::hidden_size);
  const auto between = [&](const std::string& path, const Expr& size, TensorId input) {
    return project(stack, Part::mlp_latent, {path, size}, WeightRole::mlp, LinearBias::absent,
                   input);
  };
  const TensorId read = latent ? between("mlp.latent.down", width, hidden) : hidden;
  const TensorId outputs = expert_networks(stack, ffn, read, width, routing);
  TensorId sum =
      emit(Part::mlp_experts_combine, "mlp.experts.combine",
           ExpertCombine{stack.rows(), Symbol::num_experts_per_tok, width, experts.weighting},
           {outputs, routing}, {}, {Symbol::batch_size, stack.tokens, width});
  if (experts.sum_bias) {
    const WeightId bias =
        weight(Part::mlp_experts_combine, "mlp.experts.bias", {width}, WeightRole::mlp);
    sum = emit_in_place(Part::mlp_experts_combine, "mlp.experts.add_bias",
                        TrainedShift{stack.rows(), width}, {sum}, {bias});
  }
  if (experts.latent_norm) {
    sum = norm(*experts.latent_norm, "mlp.latent.norm",
               Norm{*experts.latent_norm, stack.rows(), width, {}}, sum);
  }
  if (latent) sum = between("mlp.latent.up", Symbol::hidden_size, sum);
  return experts.shared_intermediate_size == 0 ? sum : shared_expert(stack, ffn, hidden, sum);
}

TensorId GraphBuilder::shared_expert(const StackContext& stack, const FfnSpec& ffn, TensorId hidden,
                                     TensorId routed) {
  const ExpertsSpec& experts = *ffn.experts;
  const Expr rows = stack.rows();
  const Expr width = sized(Symbol::shared_intermediate_size, experts.shared_intermediate_size);
  TensorId shared =
      dense_network(stack, ffn, width, "mlp.shared_expert", Part::mlp_shared_expert, hidden);
  if (experts.shared_gate) {
    const LinearParts gate{Part::mlp_shared_expert,
                           "mlp.shared_expert_gate",
                           WeightRole::mlp,
                           rows,
                           Symbol::hidden_size,
                           {{"mlp.shared_expert_gate", Integer{1}}},
                           false};
    const TensorId score = linear(gate, hidden, {Symbol::batch_size, stack.tokens, Integer{1}});
    shared = emit_in_place(Part::mlp_shared_expert, "mlp.shared_expert_gate.product",
                           RowGate{rows, Symbol::hidden_size}, {shared, score});
  }
  return emit_in_place(Part::mlp_shared_expert, "mlp.shared_expert.sum",
                       ResidualAdd{rows * Symbol::hidden_size}, {routed, shared});
}

}  // namespace headroom::detail
