// Gated DeltaNet (arXiv 2412.06464) as in Qwen3-Next: projections, a short convolution, the
// recurrence, a gated norm.
#include "builder.h"

namespace headroom::detail {
namespace {

struct DeltaHeads {
  Expr keys;
  Expr values;
};

/// Heads of the recurrence as multiples of the attention heads h, so that tensor parallelism
/// divides them too; as numbers if they are not multiples.
DeltaHeads heads_of(const GatedDeltaSpec& spec, Integer attention_heads) {
  const Integer keys = spec.num_key_heads;
  const Integer values = spec.num_value_heads;
  if (keys % attention_heads != 0 || values % attention_heads != 0) return {keys, values};
  const Expr heads = Symbol::num_attention_heads;
  return {keys / attention_heads * heads, values / attention_heads * heads};
}

}  // namespace

TensorId GraphBuilder::gated_delta(const StackContext& stack, TensorId hidden) {
  const GatedDeltaSpec& spec = *stack.attention->gated_delta;
  const Expr rows = stack.rows();
  const auto [key_heads, heads] = heads_of(spec, *graph_.sizes.get(Symbol::num_attention_heads));
  const Expr keys = key_heads * Integer{spec.key_head_dim};
  const Expr values = heads * Integer{spec.value_head_dim};
  const Expr mixed = Integer{2} * keys + values;
  const auto project = [&](const std::string& path, const Expr& width) {
    return linear({Part::attention_qkv,
                   path,
                   WeightRole::attention,
                   rows,
                   Symbol::hidden_size,
                   {{path, width}}},
                  hidden, {kBatch, stack.tokens, width});
  };
  TensorId qkv = project("attention.qkv", mixed);
  const TensorId gate = project("attention.gate", values);
  const TensorId decay = project("attention.decay", Integer{2} * heads);
  std::vector<TensorId> convolved{qkv};
  const bool cached = stack.keys == KeySource::cache;
  if (cached) {
    convolved.push_back(tensor("attention.convolution_state",
                               {kBatch, Integer{spec.conv_kernel_dim - 1}, mixed},
                               ElementType::kv_cache));
  }
  const WeightId filter = weight(Part::attention_convolution, "attention.convolution.weight",
                                 {mixed, Integer{spec.conv_kernel_dim}}, WeightRole::attention);
  qkv = emit_in_place(Part::attention_convolution, "attention.convolution",
                      ShortConvolution{rows, mixed, Integer{spec.conv_kernel_dim}},
                      std::move(convolved), {filter});
  std::vector<TensorId> operands{qkv, decay};
  if (cached) {
    operands.push_back(
        tensor("attention.state",
               {kBatch, heads, Integer{spec.key_head_dim}, Integer{spec.value_head_dim}},
               ElementType::kv_cache));
  }
  const std::vector<WeightId> rates{
      weight(Part::attention_core, "attention.dt_bias", {heads}, WeightRole::attention),
      weight(Part::attention_core, "attention.a_log", {heads}, WeightRole::attention)};
  TensorId context = emit(Part::attention_core, "attention.core",
                          GatedDelta{kBatch, rows, heads, Integer{spec.key_head_dim},
                                     Integer{spec.value_head_dim}, stack.keys},
                          std::move(operands), rates, {kBatch, stack.tokens, values});
  NormSpec norm_spec = stack.spec->norm;
  norm_spec.weight = NormWeight::plain;
  context = norm(norm_spec, "attention.context_norm",
                 Norm{norm_spec, rows * heads, Integer{spec.value_head_dim}, {}}, context);
  context = emit_in_place(Part::attention_gate, "attention.gate.product",
                          OutputGate{ActivationKind::silu, rows * values}, {context, gate});
  return linear({Part::attention_out,
                 "attention.out",
                 WeightRole::attention,
                 rows,
                 values,
                 {{"attention.output", Symbol::hidden_size}}},
                context, hidden_shape(stack));
}

}  // namespace headroom::detail
