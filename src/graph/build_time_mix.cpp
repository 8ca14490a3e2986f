// Time mixing of RWKV-5 (arXiv 2404.05892, section 3.1) and RWKV-7 (arXiv 2503.14456, section 4): a
// state matrix per head, with trained decays or with decays and rates of the input.
#include <array>

#include "builder.h"

namespace headroom::detail {
namespace {

constexpr auto kMixRole = WeightRole::recurrent;

}  // namespace

TensorId GraphBuilder::low_rank(const StackContext& stack, const LowRankProjection& projection,
                                TensorId input) {
  const Expr rank = Integer{projection.rank};
  TensorId inner = project(stack, Part::mixer_in, {projection.path + "_a", rank}, kMixRole,
                           LinearBias::absent, input);
  if (projection.activation != ActivationKind::identity) {
    inner = emit_in_place(Part::mixer_in, projection.path + ".activation",
                          Activation{projection.activation, stack.rows() * rank}, {inner});
  }
  return project(stack, Part::mixer_in, {projection.path, projection.width}, kMixRole,
                 projection.bias, inner);
}

TensorId GraphBuilder::mixed_context(const StackContext& stack, const TimeMixSpec& spec,
                                     std::vector<TensorId> operands, std::vector<WeightId> weights,
                                     TensorId gate) {
  const Expr rows = stack.rows();
  const Expr heads = heads_of(spec.num_heads);
  const Expr inner = heads * Integer{spec.value_head_dim};
  const std::array bonus_operands{operands.front(), operands[1], operands[2], operands.back()};
  if (stack.keys == KeySource::cache) {
    operands.push_back(tensor("mixer.state",
                              {kBatch, heads, Integer{spec.head_dim}, Integer{spec.value_head_dim}},
                              ElementType::recurrent_state));
  }
  const bool eagle = spec.kind == TimeMixKind::eagle;
  GatedDelta op{kBatch,
                rows,
                heads,
                heads,
                Integer{spec.head_dim},
                Integer{spec.value_head_dim},
                stack.keys,
                DeltaDecay::each_key_dim};
  op.update = eagle ? StateUpdate::addition : StateUpdate::two_vectors;
  const WeightId replacement = weights.back();
  TensorId out = emit(Part::mixer_scan, "mixer.recurrence", op, std::move(operands),
                      std::move(weights), {kBatch, stack.tokens, inner});
  const NormSpec norm_spec{NormKind::layer_norm, true, spec.norm_eps};
  const HeadRows parts{rows, inner, {}, heads, Integer{spec.value_head_dim}};
  out = emit_in_place(Part::layer_norm, "mixer.norm",
                      HeadNorm{norm_spec, QueryKeyNormScope::each_head_own_weight, parts}, {out},
                      norm_weights(norm_spec, Part::layer_norm, "mixer.norm", {inner}));
  if (!eagle) {
    const auto& [receptance, key, value, rate] = bonus_operands;
    const WeightId bonus =
        weight(Part::mixer_scan, "mixer.bonus", {heads, Integer{spec.head_dim}}, kMixRole);
    out =
        emit_in_place(Part::mixer_scan, "mixer.bonus",
                      ValueBonus{rows, heads, Integer{spec.head_dim}, Integer{spec.value_head_dim}},
                      {out, receptance, key, value, rate}, {replacement, bonus});
  }
  const ActivationKind activation = eagle ? ActivationKind::silu : ActivationKind::identity;
  out = emit_in_place(Part::mixer_gate, "mixer.gate.product", OutputGate{activation, rows * inner},
                      {out, gate});
  return project(stack, Part::mixer_out, {"mixer.out", Symbol::hidden_size}, kMixRole,
                 LinearBias::absent, out);
}

TensorId GraphBuilder::eagle_mix(const StackContext& stack, TensorId hidden) {
  const TimeMixSpec& spec = *stack.attention->time_mix;
  const Expr heads = heads_of(spec.num_heads);
  const Expr width = heads * Integer{spec.head_dim};
  const TensorId shifted = shift_tokens(stack, Part::mixer_in, "mixer.shift", hidden);
  const auto in = [&](const std::string& name) {
    const TensorId mixed = mix_tokens(stack, Part::mixer_in, "mixer.mix_" + name, hidden, shifted);
    return project(stack, Part::mixer_in, {"mixer." + name, width}, kMixRole, LinearBias::absent,
                   mixed);
  };
  const TensorId gate = in("gate");
  std::vector<TensorId> operands{in("receptance"), in("key"), in("value")};
  const std::vector<Expr> shape{heads, Integer{spec.head_dim}};
  return mixed_context(stack, spec, std::move(operands),
                       {weight(Part::mixer_scan, "mixer.decay", shape, kMixRole),
                        weight(Part::mixer_scan, "mixer.first", shape, kMixRole)},
                       gate);
}

TensorId GraphBuilder::shared_values(const StackContext& stack, TensorId value,
                                     TensorId value_input) {
  const TimeMixSpec& spec = *stack.attention->time_mix;
  if (spec.value_rank == 0) {
    first_values_ = value;
    return value;
  }
  const Expr width = heads_of(spec.num_heads) * Integer{spec.value_head_dim};
  const TensorId share = low_rank(
      stack,
      {"mixer.value_share", spec.value_rank, width, ActivationKind::identity, LinearBias::present},
      value_input);
  return emit(Part::mixer_gate, "mixer.value_share.mix",
              TokenMix{stack.rows(), width, MixWeight::gate}, {*first_values_, value, share}, {},
              {kBatch, stack.tokens, width});
}

TensorId GraphBuilder::goose_mix(const StackContext& stack, TensorId hidden) {
  const TimeMixSpec& spec = *stack.attention->time_mix;
  const Expr heads = heads_of(spec.num_heads);
  const Expr keys = heads * Integer{spec.head_dim};
  const Expr values = heads * Integer{spec.value_head_dim};
  const TensorId shifted = shift_tokens(stack, Part::mixer_in, "mixer.shift", hidden);
  const auto mixed = [&](const std::string& name) {
    // The weights are those of the position before.
    return mix_tokens(stack, Part::mixer_in, "mixer.mix_" + name, shifted, hidden);
  };
  const auto full = [&](const std::string& name, const Expr& width, TensorId input) {
    return project(stack, Part::mixer_in, {"mixer." + name, width}, kMixRole, LinearBias::absent,
                   input);
  };
  const TensorId receptance = full("receptance", keys, mixed("receptance"));
  const TensorId decay = low_rank(
      stack, {"mixer.decay", spec.decay_rank, keys, ActivationKind::tanh, LinearBias::present},
      mixed("decay"));
  const TensorId key = full("key", keys, mixed("key"));
  const TensorId value_input = mixed("value");
  const TensorId value = shared_values(stack, full("value", values, value_input), value_input);
  const TensorId rate = low_rank(
      stack, {"mixer.rate", spec.rate_rank, keys, ActivationKind::identity, LinearBias::present},
      mixed("rate"));
  const TensorId gate = low_rank(
      stack, {"mixer.gate", spec.gate_rank, values, ActivationKind::sigmoid, LinearBias::absent},
      mixed("gate"));
  const auto vector = [&](const std::string& name, const std::vector<Expr>& shape) {
    return weight(Part::mixer_scan, "mixer." + name, shape, kMixRole);
  };
  return mixed_context(stack, spec, {receptance, key, value, decay, rate},
                       {vector("removal", {keys}), vector("replacement", {keys})}, gate);
}

TensorId GraphBuilder::time_mix(const StackContext& stack, TensorId hidden) {
  switch (stack.attention->time_mix->kind) {
    case TimeMixKind::eagle:
      return eagle_mix(stack, hidden);
    case TimeMixKind::goose:
      break;
  }
  return goose_mix(stack, hidden);
}

}  // namespace headroom::detail
