// Blocks of attention and feed-forward network that several layers share (Zamba2, arXiv 2411.15242;
// transformers, models/zamba2).
#include <fmt/format.h>

#include <algorithm>

#include "builder.h"

namespace headroom::detail {
namespace {

const Expr kConcatenated = Integer{2} * Expr(Symbol::hidden_size);

}  // namespace

TensorId GraphBuilder::adapter(const StackContext& stack, const Adapter& adapter, TensorId input) {
  const std::int64_t rank = stack.spec->shared_block->adapter_rank;
  const auto map = [&](const Projection& projection, TensorId from) {
    return project(stack, adapter.part, projection, adapter.role, LinearBias::absent, from);
  };
  return map({adapter.path + ".up", adapter.out_features, Projection::Bias::none, adapter.parts},
             map({adapter.path + ".down", Integer{rank}}, input));
}

TensorId GraphBuilder::adapted(const StackContext& stack, TensorId projected,
                               const std::vector<Adapter>& adapters, TensorId input) {
  TensorId added = adapter(stack, adapters.front(), input);
  Expr width = adapters.front().out_features;
  for (std::size_t i = 1; i < adapters.size(); ++i) {
    const Adapter& next = adapters[i];
    added = emit(next.part, next.path + ".concatenate",
                 Concatenate{stack.rows(), width, next.out_features},
                 {added, adapter(stack, next, input)}, {},
                 {kBatch, stack.tokens, width + next.out_features});
    width += next.out_features;
  }
  return emit_in_place(adapters.front().part, adapters.front().path + ".sum",
                       ResidualAdd{stack.rows() * width}, {projected, added});
}

TensorId GraphBuilder::adapted_heads(const StackContext& stack, TensorId projected,
                                     TensorId input) {
  if (!stack.spec->shared_block->adapts_attention) return projected;
  const auto one = [&](const std::string& name, const Expr& width) {
    return Adapter{Part::attention_qkv, WeightRole::attention,
                   fmt::format("attention.{}_adapter_{}", name, shared_use_), width};
  };
  const HeadSizes& heads = stack.heads;
  return adapted(stack, projected,
                 {one("query", heads.query_width()), one("key", heads.key_width()),
                  one("value", heads.value_width())},
                 input);
}

TensorId GraphBuilder::adapted_network(const StackContext& stack, TensorId input) {
  const FfnSpec& ffn = *stack.ffn;
  const Expr width = sized(Symbol::intermediate_size, ffn.intermediate_size);
  const LinearParts up{Part::mlp_up, "mlp.gate_up",       WeightRole::mlp,
                       stack.rows(), Symbol::hidden_size, {{"mlp.gate", width}, {"mlp.up", width}},
                       ffn.bias};
  TensorId inner = linear(up, input, {kBatch, stack.tokens, Integer{2} * width});
  const std::string path = fmt::format("mlp.gate_up_adapter_{}", shared_use_);
  inner =
      adapted(stack, inner,
              {{Part::mlp_up, WeightRole::mlp, path, Integer{2} * width, {width, width}}}, input);
  inner = emit(Part::mlp_activation, "mlp.activation",
               GatedActivation{ffn.activation, stack.rows() * width}, {inner}, {},
               {kBatch, stack.tokens, width});
  return project(stack, Part::mlp_down, {"mlp.down", Symbol::hidden_size}, WeightRole::mlp,
                 ffn.bias ? LinearBias::present : LinearBias::absent, inner);
}

void GraphBuilder::shared_block(StackContext stack, std::size_t use, TensorId embedded,
                                TensorId hidden) {
  const StackSpec& spec = *stack.spec;
  const SharedBlockSpec& shared = *spec.shared_block;
  const auto block = static_cast<std::int64_t>(use) % shared.num_blocks;
  stack.attention = &shared.attention;
  stack.ffn = &shared.ffn;
  stack.heads = head_sizes(shared.attention);
  begin_block(fmt::format("{}.shared_blocks.{}", stack.path, block), stack.role, Integer{1},
              hidden);
  // One set of weights, number 0, whatever the layer.
  Block& own = graph_.blocks.back();
  own.layers_per_run = 1;
  own.first_layer = shared.layers[use];
  own.layers_per_weights = spec.num_layers;
  weight_groups_ = 1;
  shared_use_ = use;
  reuses_weights_ = true;
  TensorId x = emit(Part::attention_qkv, "concatenate",
                    Concatenate{stack.rows(), Symbol::hidden_size, Symbol::hidden_size},
                    {hidden, embedded}, {}, {kBatch, stack.tokens, kConcatenated});
  x = norm(spec.norm, "attention_norm", Norm{spec.norm, stack.rows(), kConcatenated, {}}, x);
  x = self_attention(stack, x);
  x = adapted_network(stack, norm(spec.norm, "mlp_norm", stack.rows(), x));
  reuses_weights_ = false;
  shared_output_ = x;
  end_block(hidden);
}

TensorId GraphBuilder::with_shared_output(const StackContext& stack, TensorId hidden) {
  const TensorId projected = project(stack, Part::residual, {"shared_output", Symbol::hidden_size},
                                     WeightRole::mlp, LinearBias::absent, *shared_output_);
  shared_output_.reset();
  return emit_in_place(Part::residual, "shared_output.sum",
                       ResidualAdd{stack.rows() * Symbol::hidden_size}, {projected, hidden});
}

}  // namespace headroom::detail
