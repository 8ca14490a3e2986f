// Per-layer embeddings (Gemma 3n, Gemma 4): every token has one vector per layer, looked up and
// projected from the word embedding; each layer adds a gated projection of its vector.
#include <cmath>
#include <numbers>

#include "builder.h"

namespace headroom::detail {

TensorId GraphBuilder::embed_per_layer(const StackContext& stack, TensorId hidden) {
  const PerLayerInputSpec& spec = *spec_.embedding.per_layer;
  const Expr own = Integer{spec.hidden_size};
  const Expr width = Expr(Symbol::num_hidden_layers) * own;
  begin_block("per_layer_embeddings", stack.role, Integer{1}, hidden);
  const WeightId table = weight(Part::embeddings, "word_embeddings.weight",
                                {Integer{spec.vocab_size}, width}, WeightRole::embedding);
  const double table_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  const TokenEmbedding op{stack.rows(), stack.tokens,          width,      AddedPositions::none,
                          {},           EmbeddingScale::fixed, table_scale};
  const std::vector<Expr> shape{kBatch, stack.tokens, width};
  const TensorId looked_up =
      emit(Part::embeddings, "word_embeddings", op, {graph_.inputs.front()}, {table}, shape);
  const LinearParts projection{Part::embeddings, "projection",        WeightRole::embedding,
                               stack.rows(),     Symbol::hidden_size, {{"projection", width}}};
  TensorId projected = scaled(Part::embeddings, "projection.scale",
                              1 / std::sqrt(static_cast<double>(spec_.hidden_size)),
                              linear(projection, hidden, shape));
  const Expr rows = stack.rows() * Symbol::num_hidden_layers;
  projected = norm(stack.spec->norm, "norm", Norm{stack.spec->norm, rows, own, {}}, projected);
  projected = emit_in_place(Part::embeddings, "sum", ResidualAdd{stack.rows() * width},
                            {projected, looked_up});
  per_layer_input_ = scaled(Part::embeddings, "sum.scale", 1 / std::numbers::sqrt2, projected);
  return end_block(hidden);
}

TensorId GraphBuilder::per_layer_branch(const StackContext& stack, TensorId hidden) {
  const Expr own = Integer{spec_.embedding.per_layer->hidden_size};
  const auto project = [&](const std::string& path, const Expr& in, const Expr& out,
                           TensorId input) {
    return linear({Part::mlp_up, path, WeightRole::mlp, stack.rows(), in, {{path, out}}}, input,
                  {kBatch, stack.tokens, out});
  };
  TensorId gate = project("per_layer_input.gate", Symbol::hidden_size, own, hidden);
  gate = emit_in_place(Part::mlp_activation, "per_layer_input.activation",
                       GatedActivation{stack.ffn->activation, stack.rows() * own, std::nullopt,
                                       Symbol::num_hidden_layers},
                       {gate, *per_layer_input_});
  const TensorId projected = project("per_layer_input.projection", own, Symbol::hidden_size, gate);
  return norm(stack.spec->norm, "per_layer_input_norm", stack.rows(), projected);
}

TensorId GraphBuilder::add_per_layer_input(const StackContext& stack, TensorId hidden) {
  return add_residual(stack, "per_layer_input.residual", hidden, per_layer_branch(stack, hidden));
}

}  // namespace headroom::detail
