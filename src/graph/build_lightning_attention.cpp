// Lightning attention (arXiv 2501.08313): SiLU of queries, keys and values, a scan with one decay
// per head, a norm over all heads, an output gate.
#include "builder.h"

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
  rows = emit_in_place(Part::mixer_in, "mixer.qkv.activation",
                       Activation{stack.ffn->activation, Integer{3} * elements}, {rows});
  TensorId context = scan(stack, spec, width, {rows});
  const NormSpec& norm_spec = spec.gated_norm->norm;
  context = norm(norm_spec, "mixer.norm", Norm{norm_spec, stack.rows(), width, {}}, context);
  const TensorId gate =
      project(stack, Part::mixer_gate, {"mixer.gate", width}, role, LinearBias::absent, hidden);
  context = emit_in_place(Part::mixer_gate, "mixer.gate.product",
                          OutputGate{ActivationKind::sigmoid, elements}, {context, gate});
  context = project(stack, Part::mixer_out, {"mixer.out", Symbol::hidden_size}, role,
                    LinearBias::absent, context);
  return scaled(Part::mixer_out, "mixer.out.scale", attention.output_multiplier, context);
}

}  // namespace headroom::detail
