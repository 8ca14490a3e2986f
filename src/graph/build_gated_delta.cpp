// Gated DeltaNet (arXiv 2412.06464) as in Qwen3-Next, and Kimi delta attention (arXiv 2510.26692):
// projections, a short convolution, the recurrence, a gated norm.
#include "builder.h"

namespace headroom::detail {
namespace {

struct DeltaHeads {
  Expr keys;  ///< of queries and keys
  Expr values;
};

/// Value heads are a multiple of the key heads that they share, so that a rank with some key heads
/// has their value heads. Numbers where another layer has another number of key heads.
DeltaHeads delta_heads(const GatedDeltaSpec& spec, const Bindings& sizes) {
  const bool divides = sizes.get(Symbol::linear_num_key_heads) == Integer{spec.num_key_heads} &&
                       spec.num_key_heads != 0 && spec.num_value_heads % spec.num_key_heads == 0;
  if (!divides) return {Integer{spec.num_key_heads}, Integer{spec.num_value_heads}};
  const Expr keys = Symbol::linear_num_key_heads;
  return {keys, Integer{spec.num_value_heads / spec.num_key_heads} * keys};
}

}  // namespace

TensorId GraphBuilder::delta_projection(const StackContext& stack, const std::string& path,
                                        const Expr& width, TensorId input) {
  const auto map = [&](const std::string& name, const Expr& out, TensorId from) {
    return project(stack, Part::attention_qkv, {name, out}, WeightRole::attention,
                   LinearBias::absent, from);
  };
  const std::int64_t rank = stack.attention->gated_delta->projection_rank;
  if (rank == 0) return map(path, width, input);
  return map(path + "_b", width, map(path + "_a", Integer{rank}, input));
}

std::vector<TensorId> GraphBuilder::delta_rates(const StackContext& stack, const Expr& heads,
                                                const Expr& decays, TensorId hidden) {
  const auto map = [&](const std::string& path, std::vector<Projection> projections,
                       const Expr& width) {
    return linear({Part::attention_qkv, path, WeightRole::attention, stack.rows(),
                   Symbol::hidden_size, std::move(projections)},
                  hidden, {kBatch, stack.tokens, width});
  };
  switch (stack.attention->gated_delta->decay) {
    case DeltaDecay::each_key_dim:
      return {map("delta.beta", {{"delta.beta", heads}}, heads),
              delta_projection(stack, "delta.alpha", decays, hidden)};
    case DeltaDecay::each_head:
      break;
  }
  return {map("delta.decay", {{"delta.beta", heads}, {"delta.alpha", heads}}, Integer{2} * heads)};
}

TensorId GraphBuilder::gated_delta(const StackContext& stack, TensorId hidden) {
  const GatedDeltaSpec& spec = *stack.attention->gated_delta;
  const Expr rows = stack.rows();
  const auto [key_heads, heads] = delta_heads(spec, graph_.sizes);
  const Expr keys = key_heads * Integer{spec.key_head_dim};
  const Expr values = heads * Integer{spec.value_head_dim};
  const Expr decays =
      spec.decay == DeltaDecay::each_head ? heads : heads * Integer{spec.key_head_dim};
  TensorId qkv = linear({Part::attention_qkv,
                         "delta.qkv",
                         WeightRole::attention,
                         rows,
                         Symbol::hidden_size,
                         {{"delta.query", keys}, {"delta.key", keys}, {"delta.value", values}}},
                        hidden, {kBatch, stack.tokens, Integer{2} * keys + values});
  const TensorId gate = spec.full_rank_gate
                            ? project(stack, Part::attention_qkv, {"delta.gate", values},
                                      WeightRole::attention, LinearBias::absent, hidden)
                            : delta_projection(stack, "delta.gate", values, hidden);
  const std::vector<TensorId> rates = delta_rates(stack, heads, decays, hidden);
  ShortConvolution convolution;
  convolution.kernel = Integer{spec.conv_kernel_dim};
  qkv = short_convolution(stack, Part::attention_convolution, "delta.convolution",
                          WeightRole::attention, convolution, qkv, {keys, keys, values});
  std::vector<TensorId> operands{qkv};
  operands.insert(operands.end(), rates.begin(), rates.end());
  if (stack.keys == KeySource::cache) {
    operands.push_back(tensor(
        "delta.state", {kBatch, heads, Integer{spec.key_head_dim}, Integer{spec.value_head_dim}},
        ElementType::recurrent_state));
  }
  const std::vector<WeightId> weights{
      weight(Part::attention_core, "delta.dt_bias", {decays}, WeightRole::attention),
      weight(Part::attention_core, "delta.a_log", {heads}, WeightRole::attention)};
  TensorId context = emit(Part::attention_core, "delta.core",
                          GatedDelta{kBatch, rows, key_heads, heads, Integer{spec.key_head_dim},
                                     Integer{spec.value_head_dim}, stack.keys, spec.decay,
                                     spec.strength, StateUpdate::delta, spec.decay_bound},
                          std::move(operands), weights, {kBatch, stack.tokens, values});
  NormSpec norm_spec = stack.spec->norm;
  norm_spec.weight = NormWeight::plain;
  norm_spec.eps = spec.norm_eps.value_or(norm_spec.eps);
  context = norm(norm_spec, "delta.context_norm",
                 Norm{norm_spec, rows * heads, Integer{spec.value_head_dim}, {}}, context);
  context = emit_in_place(Part::attention_gate, "delta.gate.product",
                          OutputGate{spec.gate, rows * values}, {context, gate});
  return linear({Part::attention_out,
                 "delta.out",
                 WeightRole::attention,
                 rows,
                 values,
                 {{"delta.output", Symbol::hidden_size}}},
                context, hidden_shape(stack));
}

}  // namespace headroom::detail
