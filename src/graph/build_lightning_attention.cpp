// Lightning attention (arXiv 2501.08313): queries, keys and values of one form (lightning_form.h),
// a scan with one decay per head, a norm, an output gate.
#include <cmath>

#include "builder.h"
#include "headroom/lightning_form.h"

namespace headroom::detail {

TensorId GraphBuilder::lightning_attention(const StackContext& stack, TensorId hidden) {
  const AttentionSpec& attention = *stack.attention;
  const StateSpaceSpec& spec = *attention.state_space;
  const Expr width = heads_of(spec.num_heads) * Integer{spec.head_dim};
  const auto role = WeightRole::attention;
  const Expr elements = stack.rows() * width;
  TensorId rows = linear({Part::mixer_in,
                          "mixer.qkv",
                          role,
                          stack.rows(),
                          Symbol::hidden_size,
                          {{"mixer.value", width}, {"mixer.key", width}, {"mixer.query", width}}},
                         hidden, {kBatch, stack.tokens, Integer{3} * width});
  TensorId context = 0;
  switch (lightning_form(attention)) {
    case LightningForm::minimax: {
      rows = emit_in_place(Part::mixer_in, "mixer.qkv.activation",
                           Activation{stack.ffn->activation, Integer{3} * elements}, {rows});
      const NormSpec& whole = spec.gated_norm->norm;
      context = norm(whole, "mixer.norm", Norm{whole, stack.rows(), width, {}},
                     scan(stack, spec, width, {rows}));
      break;
    }
    case LightningForm::ling:
      context = grouped_norm(stack, spec,
                             scan(stack, spec, width, {lightning_heads(stack, rows, width)}));
      break;
  }
  const TensorId gate =
      project(stack, Part::mixer_gate, {"mixer.gate", width}, role, LinearBias::absent, hidden);
  context = emit_in_place(Part::mixer_gate, "mixer.gate.product",
                          OutputGate{ActivationKind::sigmoid, elements}, {context, gate});
  context = project(stack, Part::mixer_out, {"mixer.out", Symbol::hidden_size}, role,
                    LinearBias::absent, context);
  return scaled(Part::mixer_out, "mixer.out.scale", attention.output_multiplier, context);
}

TensorId GraphBuilder::lightning_heads(const StackContext& stack, TensorId rows,
                                       const Expr& width) {
  const AttentionSpec& attention = *stack.attention;
  const StateSpaceSpec& spec = *attention.state_space;
  const NormSpec& norm = attention.query_key_norm->norm;
  const Expr heads = heads_of(spec.num_heads);
  const Expr head_dim = Integer{spec.head_dim};
  const Expr queries = Integer{2} * width;  // behind the values and the keys
  const auto heads_at = [&](const Expr& first, const Expr& count) {
    return HeadRows{stack.rows(), Integer{3} * width, first, count, head_dim};
  };
  const auto apply_norm = [&](const std::string& path, const Expr& first) {
    rows =
        emit_in_place(Part::attention_query_key_norm, path,
                      HeadNorm{norm, attention.query_key_norm->scope, heads_at(first, heads)},
                      {rows}, norm_weights(norm, Part::attention_query_key_norm, path, {head_dim}));
  };
  apply_norm("mixer.query_norm", queries);
  apply_norm("mixer.key_norm", width);
  const RopeSpec& rope = attention.rope ? *attention.rope : stack.position->rope;
  const Expr rotary_dim = rope.rotary_dim == 0 ? head_dim : Expr(Integer{rope.rotary_dim});
  rows = emit_in_place(
      Part::attention_rotary, "mixer.rotary",
      Rotary{heads_at(width, Integer{2} * heads), {}, rotary_dim, stack.tokens, rope}, {rows});
  const HeadRows scaled_part = heads_at(queries, heads);
  const double scale = 1 / std::sqrt(static_cast<double>(spec.head_dim));
  return emit_in_place(Part::mixer_in, "mixer.query.scale",
                       Scale{scaled_part.elements(), scale, scaled_part}, {rows});
}

}  // namespace headroom::detail
