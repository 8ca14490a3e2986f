// Gated DeltaNet (arXiv 2412.06464) as in Qwen3-Next: projections, a short convolution, the
// recurrence, a gated norm.
#include "builder.h"

namespace headroom::detail {

TensorId GraphBuilder::gated_delta(const StackContext& stack, TensorId hidden) {
  const GatedDeltaSpec& spec = *stack.attention->gated_delta;
  const Expr rows = stack.rows();
  // Multiples of h only together, since the value heads share the key heads.
  const Integer attention_heads = graph_.sizes.get(Symbol::num_attention_heads).value_or(0);
  const bool divides = attention_heads != 0 && spec.num_key_heads % attention_heads == 0;
  const Expr key_heads = divides ? heads_of(spec.num_key_heads) : Expr(Integer{spec.num_key_heads});
  const Expr heads = divides ? heads_of(spec.num_value_heads) : Expr(Integer{spec.num_value_heads});
  const Expr keys = key_heads * Integer{spec.key_head_dim};
  const Expr values = heads * Integer{spec.value_head_dim};
  const auto input = [&](Part part, const std::string& path, std::vector<Projection> projections,
                         const Expr& width) {
    return linear(
        {part, path, WeightRole::attention, rows, Symbol::hidden_size, std::move(projections)},
        hidden, {kBatch, stack.tokens, width});
  };
  TensorId qkv = input(Part::attention_qkv, "delta.qkv",
                       {{"delta.query", keys}, {"delta.key", keys}, {"delta.value", values}},
                       Integer{2} * keys + values);
  const TensorId gate = input(Part::attention_qkv, "delta.gate", {{"delta.gate", values}}, values);
  const TensorId rates = input(Part::attention_qkv, "delta.decay",
                               {{"delta.beta", heads}, {"delta.alpha", heads}}, Integer{2} * heads);
  ShortConvolution convolution;
  convolution.kernel = Integer{spec.conv_kernel_dim};
  qkv = short_convolution(stack, Part::attention_convolution, "delta.convolution",
                          WeightRole::attention, convolution, qkv);
  std::vector<TensorId> operands{qkv, rates};
  if (stack.keys == KeySource::cache) {
    operands.push_back(tensor(
        "delta.state", {kBatch, heads, Integer{spec.key_head_dim}, Integer{spec.value_head_dim}},
        ElementType::recurrent_state));
  }
  const std::vector<WeightId> decays{
      weight(Part::attention_core, "delta.dt_bias", {heads}, WeightRole::attention),
      weight(Part::attention_core, "delta.a_log", {heads}, WeightRole::attention)};
  TensorId context = emit(Part::attention_core, "delta.core",
                          GatedDelta{kBatch, rows, key_heads, heads, Integer{spec.key_head_dim},
                                     Integer{spec.value_head_dim}, stack.keys},
                          std::move(operands), decays, {kBatch, stack.tokens, values});
  NormSpec norm_spec = stack.spec->norm;
  norm_spec.weight = NormWeight::plain;
  context = norm(norm_spec, "delta.context_norm",
                 Norm{norm_spec, rows * heads, Integer{spec.value_head_dim}, {}}, context);
  context = emit_in_place(Part::attention_gate, "delta.gate.product",
                          OutputGate{ActivationKind::silu, rows * values}, {context, gate});
  return linear({Part::attention_out,
                 "delta.out",
                 WeightRole::attention,
                 rows,
                 values,
                 {{"delta.output", Symbol::hidden_size}}},
                context, hidden_shape(stack));
}

}  // namespace headroom::detail
