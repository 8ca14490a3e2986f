// Scores of positions relative to each other: Transformer-XL's and DeBERTa's, whose tables the
// layers of a stack share.
#include <cmath>
#include <string_view>

#include "builder.h"

namespace headroom::detail {

void GraphBuilder::relative_sinusoids(const StackContext& stack) {
  const TransformerXlSpec& spec = *stack.spec->self_attention.transformer_xl;
  const Expr positions = Integer{2} * stack.tokens;
  const Expr width = Symbol::hidden_size;
  begin_block(stack.path, stack.role, Integer{1}, 0);
  position_table_ = end_block(emit(Part::relative_position_bias, "relative_sinusoids",
                                   RelativeSinusoids{kBatch, positions, width, spec.most_distant},
                                   {}, {}, {kBatch, positions, width}));
}

TensorId GraphBuilder::transformer_xl_bias(const StackContext& stack, TensorId qkv) {
  constexpr Part kPart = Part::relative_position_bias;
  const HeadSizes& heads = stack.heads;
  const Expr positions = Integer{2} * stack.tokens;
  const LinearParts keys{kPart,
                         "attention.position_key",
                         WeightRole::attention,
                         kBatch * positions,
                         Symbol::hidden_size,
                         {{"attention.position_key", heads.key_width()}}};
  const TensorId projected = linear(keys, *position_table_, {kBatch, positions, heads.key_width()});
  const Expr segments = Integer{TransformerXlSpec::kSegments};
  const auto add = [&](const std::string& name, std::vector<Expr> shape) {
    return weight(kPart, "attention." + name, std::move(shape), WeightRole::attention);
  };
  const std::vector<Expr> per_head{heads.heads, heads.head_dim};
  std::vector<WeightId> weights{add("content_bias", per_head), add("position_bias", per_head),
                                add("segment_bias", per_head),
                                add("segments", {segments, heads.heads, heads.head_dim})};
  const TransformerXlBias op{heads.shape(stack.tokens, stack.tokens), positions, segments,
                             1 / std::sqrt(static_cast<double>(stack.attention->head_dim))};
  return emit(kPart, "attention.relative_bias", op, {qkv, projected}, std::move(weights),
              {kBatch, heads.heads, stack.tokens, stack.tokens});
}

void GraphBuilder::relative_embeddings(const StackContext& stack) {
  const DisentangledSpec& spec = *stack.spec->self_attention.disentangled;
  const Expr rows = Integer{spec.num_positions};
  const Expr width = Symbol::hidden_size;
  begin_block(stack.path, stack.role, Integer{1}, 0);
  const WeightId table = weight(Part::relative_position_bias, "relative_embeddings.weight",
                                {rows, width}, WeightRole::relative_position_bias);
  TensorId embedded = emit(Part::relative_position_bias, "relative_embeddings",
                           PositionTableRows{rows, width}, {}, {table}, {rows, width});
  if (spec.table_norm) {
    embedded = norm(*spec.table_norm, "relative_embeddings_norm",
                    Norm{*spec.table_norm, rows, width, {}}, embedded);
  }
  position_table_ = end_block(embedded);
}

TensorId GraphBuilder::disentangled_bias(const StackContext& stack, TensorId qkv) {
  const AttentionSpec& attention = *stack.attention;
  const DisentangledSpec& spec = *attention.disentangled;
  const Expr heads = stack.heads.heads;
  const Expr width = stack.heads.query_width();
  std::vector<WeightId> weights;
  const auto project = [&](const std::string& shared, const std::string& own) {
    const std::string path = "attention." + (spec.shares_projections ? shared : own);
    const bool plain = own == "position_key" && !spec.key_bias;
    for (const char* const name : {".weight", ".bias"}) {
      if (plain && std::string_view(name) == ".bias") continue;
      const std::vector<Expr> shape = std::string_view(name) == ".weight"
                                          ? std::vector<Expr>{width, Symbol::hidden_size}
                                          : std::vector<Expr>{width};
      weights.push_back(spec.shares_projections
                            ? weight_of_layer(path + name)
                            : weight(Part::relative_position_bias, path + name, shape,
                                     WeightRole::relative_position_bias));
    }
  };
  if (spec.content_to_position || spec.shares_projections) project("key", "position_key");
  if (spec.position_to_content || spec.shares_projections) project("query", "position_query");
  const DisentangledBias op{spec, stack.heads.shape(stack.tokens, stack.tokens),
                            Integer{spec.num_positions}, Symbol::hidden_size,
                            attention.fixed_scale};
  return emit(Part::relative_position_bias, "attention.relative_bias", op, {qkv, *position_table_},
              std::move(weights), {kBatch, heads, stack.tokens, stack.tokens});
}

TensorId GraphBuilder::gated_position_bias(const StackContext& stack, TensorId hidden) {
  constexpr Part kPart = Part::relative_position_bias;
  constexpr WeightRole kRole = WeightRole::relative_position_bias;
  const HeadSizes& heads = stack.heads;
  const Expr values = Integer{GatedPositionBias::kValues};
  std::vector<WeightId> weights{
      weight(kPart, "attention.position_gate.weight", {values, heads.head_dim}, kRole),
      weight(kPart, "attention.position_gate.bias", {values}, kRole),
      weight(kPart, "attention.position_gate.scale",
             {Integer{1}, heads.heads, Integer{1}, Integer{1}}, kRole)};
  return emit(kPart, "attention.position_gate",
              GatedPositionBias{heads.shape(stack.tokens, stack.tokens)},
              {hidden, *position_table_}, std::move(weights),
              {kBatch, heads.heads, stack.tokens, stack.tokens});
}

}  // namespace headroom::detail
