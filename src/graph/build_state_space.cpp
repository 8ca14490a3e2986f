// Mixers of state-space layers: Mamba (arXiv 2312.00752) and Mamba-2 (arXiv 2405.21060), and the
// short convolution that they share with gated DeltaNet and LFM2.
#include "builder.h"
#include "op_exprs.h"

namespace headroom::detail {
namespace {

constexpr auto kRole = WeightRole::recurrent;

/// Groups of a layer's `heads`, which share B and C. Tensor parallelism divides several groups with
/// the heads, as Megatron-LM and vLLM do; one group is on every rank.
Expr groups_of(const StateSpaceSpec& spec, const Expr& heads, const Bindings& sizes) {
  const bool divides = spec.num_groups > 1 && mentions_divided(heads) &&
                       sizes.get(Symbol::n_groups) == Integer{spec.num_groups};
  return divides ? Expr(Symbol::n_groups) : Expr(Integer{spec.num_groups});
}

}  // namespace

Expr GraphBuilder::heads_of(std::int64_t count) const {
  const Integer heads = graph_.sizes.get(Symbol::num_attention_heads).value_or(0);
  if (heads == 0 || count % heads != 0) return Integer{count};
  return count / heads * Expr(Symbol::num_attention_heads);
}

TensorId GraphBuilder::project(const StackContext& stack, Part part, const Projection& projection,
                               WeightRole role, LinearBias bias, TensorId input) {
  const Expr in_features = graph_.tensors[input].shape.back();
  return linear({part,
                 projection.name,
                 role,
                 stack.rows(),
                 in_features,
                 {projection},
                 bias == LinearBias::present},
                input, {kBatch, stack.tokens, projection.out_features});
}

TensorId GraphBuilder::scaled(Part part, const std::string& path, double factor, TensorId input) {
  if (factor == 1) return input;
  return emit_in_place(part, path, Scale{graph_.tensors[input].elements(), factor}, {input});
}

TensorId GraphBuilder::short_convolution(const StackContext& stack, Part part,
                                         const std::string& path, WeightRole role,
                                         ShortConvolution op, TensorId input,
                                         const std::vector<Expr>& parts) {
  op.batch = kBatch;
  op.rows = stack.rows();
  op.channels = graph_.tensors[input].shape.back();
  op.past = stack.keys;
  std::vector<TensorId> operands{input};
  if (op.past == KeySource::cache) {
    operands.push_back(
        tensor(path + "_state", {kBatch, op.kernel, op.channels}, ElementType::convolution_state));
  }
  std::vector<WeightId> weights{weight(part, path + ".weight", {op.channels, op.kernel}, role)};
  if (op.bias) weights.push_back(weight(part, path + ".bias", {op.channels}, role));
  for (const WeightId id : weights) graph_.weights[id].parts = parts;
  return emit_in_place(part, path, std::move(op), std::move(operands), std::move(weights));
}

TensorId GraphBuilder::gated_convolution(const StackContext& stack, TensorId hidden) {
  const ShortConvolutionSpec& spec = *stack.attention->short_convolution;
  const Expr width = Symbol::hidden_size;
  const Expr elements = stack.rows() * width;
  const LinearBias bias = spec.bias ? LinearBias::present : LinearBias::absent;
  const auto role = WeightRole::convolution;
  const auto in = [&](const std::string& name) {
    return project(stack, Part::mixer_in, {name, width}, role, bias, hidden);
  };
  const auto multiply = [&](const std::string& path, TensorId x, TensorId gate) {
    return emit_in_place(Part::mixer_gate, path, OutputGate{ActivationKind::identity, elements},
                         {x, gate});
  };
  const TensorId input_gate = in("mixer.input_gate");
  const TensorId output_gate = in("mixer.output_gate");
  TensorId x = multiply("mixer.input_gate.product", in("mixer.x"), input_gate);
  ShortConvolution op;
  op.kernel = Integer{spec.kernel_size};
  op.activation = ActivationKind::identity;
  op.bias = spec.bias;
  x = short_convolution(stack, Part::mixer_convolution, "mixer.convolution", role, op, x);
  x = multiply("mixer.output_gate.product", x, output_gate);
  return project(stack, Part::mixer_out, {"mixer.out", width}, role, bias, x);
}

TensorId GraphBuilder::scan(const StackContext& stack, const StateSpaceSpec& spec,
                            const Expr& first_parameter, std::vector<TensorId> operands) {
  const Expr heads = heads_of(spec.num_heads);
  const Expr state = Integer{spec.state_size};
  const Expr head_dim = Integer{spec.head_dim};
  const auto add = [&](const std::string& path, std::vector<Expr> shape) {
    return weight(Part::mixer_scan, path, std::move(shape), kRole);
  };
  std::vector<WeightId> weights;
  Expr groups = groups_of(spec, heads, graph_.sizes);
  ElementType state_type = ElementType::recurrent_state;
  switch (spec.kind) {
    case StateSpaceKind::dual:
      weights = {add("mixer.dt_bias", {heads}), add("mixer.a_log", {heads}),
                 add("mixer.d", {heads})};
      break;
    case StateSpaceKind::selective:
      weights = {add("mixer.a_log", {heads, state}), add("mixer.d", {heads})};
      break;
    case StateSpaceKind::lightning:
      state_type = ElementType::kv_cache;  // in the type of the values
      groups = heads_of(spec.num_groups);  // each head has keys of its own
      break;
  }
  if (stack.keys == KeySource::cache) {
    operands.push_back(tensor("mixer.state", {kBatch, heads, head_dim, state}, state_type));
  }
  return emit(
      Part::mixer_scan, "mixer.scan",
      StateSpaceScan{spec.kind, kBatch, stack.rows(), heads, head_dim, groups, state,
                     first_parameter, spec.least_time_step, spec.greatest_time_step, stack.keys},
      std::move(operands), std::move(weights), {kBatch, stack.tokens, heads * head_dim});
}

TensorId GraphBuilder::gated_scan(const StackContext& stack, const StateSpaceSpec& spec,
                                  TensorId scanned, TensorId gate) {
  const Expr heads = heads_of(spec.num_heads);
  const Expr inner = heads * Integer{spec.head_dim};
  const auto apply_gate = [&] {
    scanned =
        emit_in_place(Part::mixer_gate, "mixer.gate.product",
                      OutputGate{ActivationKind::silu, stack.rows() * inner}, {scanned, gate});
  };
  if (!spec.gated_norm) {
    apply_gate();
    return scanned;
  }
  const GatedNormOrder order = spec.gated_norm->order;
  if (order == GatedNormOrder::gate_first) apply_gate();
  scanned = grouped_norm(stack, spec, scanned);
  if (order == GatedNormOrder::norm_first) apply_gate();
  return scanned;
}

TensorId GraphBuilder::grouped_norm(const StackContext& stack, const StateSpaceSpec& spec,
                                    TensorId scanned) {
  const GatedNormSpec& norm = *spec.gated_norm;
  const Expr inner = heads_of(spec.num_heads) * Integer{spec.head_dim};
  const Expr width = heads_of(spec.num_heads / norm.groups) * Integer{spec.head_dim};
  const HeadRows parts{stack.rows(), inner, {}, Integer{norm.groups}, width};
  return emit_in_place(Part::rms_norm, "mixer.norm",
                       HeadNorm{norm.norm, QueryKeyNormScope::each_head_own_weight, parts},
                       {scanned}, norm_weights(norm.norm, Part::rms_norm, "mixer.norm", {inner}));
}

TensorId GraphBuilder::dual_state_space(const StackContext& stack, TensorId hidden) {
  const StateSpaceSpec& spec = *stack.attention->state_space;
  const StateSpaceMultipliers factors = spec.multipliers.value_or(StateSpaceMultipliers{});
  const LinearBias bias = spec.projection_bias ? LinearBias::present : LinearBias::absent;
  const Expr heads = heads_of(spec.num_heads);
  const Expr inner = heads * Integer{spec.head_dim};
  const Expr shared = groups_of(spec, heads, graph_.sizes) * Integer{spec.state_size};
  const Expr mixed = inner + Integer{2} * shared;
  hidden = scaled(Part::mixer_in, "mixer.input.scale", factors.input, hidden);
  const std::vector<Expr> parts{inner, shared, shared};
  const auto in = [&](const std::string& name, const Expr& width) {
    return project(stack, Part::mixer_in, {name, width}, kRole, bias, hidden);
  };
  const TensorId gate =
      scaled(Part::mixer_in, "mixer.gate.scale", factors.gate, in("mixer.gate", inner));
  TensorId x = project(stack, Part::mixer_in,
                       {"mixer.x", mixed, Projection::Bias::of_linear, parts}, kRole, bias, hidden);
  const auto scale_part = [&](const std::string& name, double factor, const Expr& first,
                              const Expr& width) {
    if (factor == 1) return;
    const HeadRows part{stack.rows(), mixed, first, Integer{1}, width};
    x = emit_in_place(Part::mixer_in, name, Scale{part.elements(), factor, part}, {x});
  };
  scale_part("mixer.x.scale", factors.x, {}, inner);
  scale_part("mixer.b.scale", factors.b, inner, shared);
  scale_part("mixer.c.scale", factors.c, inner + shared, shared);
  const TensorId time_step = scaled(Part::mixer_in, "mixer.time_step.scale", factors.time_step,
                                    in("mixer.time_step", heads));
  ShortConvolution op;
  op.kernel = Integer{spec.conv_kernel_dim};
  op.bias = spec.convolution_bias;
  x = short_convolution(stack, Part::mixer_convolution, "mixer.convolution", kRole, op, x, parts);
  TensorId out = gated_scan(stack, spec, scan(stack, spec, inner, {x, time_step}), gate);
  out = project(stack, Part::mixer_out, {"mixer.out", Symbol::hidden_size}, kRole, bias, out);
  return scaled(Part::mixer_out, "mixer.out.scale", factors.output, out);
}

TensorId GraphBuilder::selective_state_space(const StackContext& stack, TensorId hidden) {
  const StateSpaceSpec& spec = *stack.attention->state_space;
  const LinearBias bias = spec.projection_bias ? LinearBias::present : LinearBias::absent;
  const Expr inner = heads_of(spec.num_heads);
  const Expr rank = Integer{spec.time_step_rank};
  const Expr state = Integer{spec.state_size};
  const Expr width = rank + Integer{2} * state;
  const auto in = [&](const std::string& name) {
    return project(stack, Part::mixer_in, {name, inner}, kRole, bias, hidden);
  };
  TensorId x = in("mixer.x");
  const TensorId gate = in("mixer.gate");
  ShortConvolution op;
  op.kernel = Integer{spec.conv_kernel_dim};
  op.bias = spec.convolution_bias;
  x = short_convolution(stack, Part::mixer_convolution, "mixer.convolution", kRole, op, x);
  TensorId parameters =
      project(stack, Part::mixer_scan, {"mixer.parameters", width}, kRole, LinearBias::absent, x);
  const auto norm_part = [&](const std::string& path, const Expr& first, const Expr& size) {
    const HeadRows part{stack.rows(), width, first, Integer{1}, size};
    parameters = emit_in_place(
        Part::rms_norm, path, HeadNorm{*spec.parameter_norm, QueryKeyNormScope::each_head, part},
        {parameters}, norm_weights(*spec.parameter_norm, Part::rms_norm, path, {size}));
  };
  if (spec.parameter_norm) {
    norm_part("mixer.time_step_norm", {}, rank);
    norm_part("mixer.b_norm", rank, state);
    norm_part("mixer.c_norm", rank + state, state);
  }
  const TensorId time_step = linear({Part::mixer_scan,
                                     "mixer.time_step",
                                     kRole,
                                     stack.rows(),
                                     rank,
                                     {{"mixer.time_step", inner}},
                                     true,
                                     width},
                                    parameters, {kBatch, stack.tokens, inner});
  const TensorId out =
      gated_scan(stack, spec, scan(stack, spec, rank, {x, time_step, parameters}), gate);
  return project(stack, Part::mixer_out, {"mixer.out", Symbol::hidden_size}, kRole, bias, out);
}

TensorId GraphBuilder::state_space(const StackContext& stack, TensorId hidden) {
  switch (stack.attention->state_space->kind) {
    case StateSpaceKind::selective:
      return selective_state_space(stack, hidden);
    case StateSpaceKind::lightning:
      return lightning_attention(stack, hidden);
    case StateSpaceKind::dual:
      break;
  }
  return dual_state_space(stack, hidden);
}

}  // namespace headroom::detail
