// How tokens or image patches become hidden states [b, s, d].
#include "builder.h"

namespace headroom::detail {
namespace {

AddedPositions added_positions(PositionKind kind) {
  switch (kind) {
    case PositionKind::learned:
      return AddedPositions::learned;
    case PositionKind::sinusoidal:
      return AddedPositions::sinusoidal;
    case PositionKind::none:
    case PositionKind::rotary:
    case PositionKind::relative_bias:
      break;
  }
  return AddedPositions::none;
}

}  // namespace

TensorId GraphBuilder::input_hidden_states(const StackContext& stack) {
  switch (spec_.embedding.input) {
    case InputKind::tokens:
      return embed_tokens(stack);
    case InputKind::patches:
      return embed_patches(stack);
    case InputKind::hidden_states:
      break;
  }
  graph_.inputs.push_back(tensor("hidden_states", hidden_shape(stack)));
  return graph_.inputs.back();
}

WeightId GraphBuilder::word_embedding(const StackContext& stack) {
  const bool shared = spec_.encoder_decoder_embedding == WeightSharing::shared;
  if (word_embedding_ && (shared || stack.role == StackRole::single)) return *word_embedding_;
  word_embedding_ = weight(Part::embeddings, "word_embeddings.weight",
                           {Symbol::vocab_size, Symbol::hidden_size}, WeightRole::embedding);
  return *word_embedding_;
}

TensorId GraphBuilder::embed_tokens(const StackContext& stack) {
  const TensorId ids = tensor("input_ids", {Symbol::batch_size, stack.tokens}, ElementType::index);
  begin_block("embeddings", stack.role, Integer{1}, ids);
  TokenEmbedding op{Expr(Symbol::batch_size) * stack.tokens, stack.tokens, Symbol::hidden_size,
                    added_positions(spec_.position.kind),    {},           spec_.embedding.scale};
  std::vector<WeightId> weights{word_embedding(stack)};
  if (op.positions == AddedPositions::learned) {
    weights.push_back(weight(Part::embeddings, "position_embeddings.weight",
                             {Symbol::max_position_embeddings, Symbol::hidden_size},
                             WeightRole::embedding));
  }
  if (spec_.embedding.type_vocab_size > 0) {
    op.type_rows = Symbol::type_vocab_size;
    weights.push_back(weight(Part::embeddings, "token_type_embeddings.weight",
                             {Symbol::type_vocab_size, Symbol::hidden_size},
                             WeightRole::embedding));
  }
  if (emit_nodes_) graph_.inputs.push_back(ids);
  const TensorId hidden = emit(Part::embeddings, "word_embeddings", std::move(op), {ids},
                               std::move(weights), hidden_shape(stack));
  return finish_embedding(stack, hidden);
}

TensorId GraphBuilder::embed_patches(const StackContext& stack) {
  const Expr patches = stack.tokens - Integer{1};
  const TensorId pixels =
      tensor("pixel_values", {Symbol::batch_size, patches, Symbol::patch_elements});
  graph_.inputs.push_back(pixels);
  begin_block("embeddings", stack.role, Integer{1}, pixels);
  const auto add = [&](const std::string& path, std::vector<Expr> shape) {
    return weight(Part::embeddings, path, std::move(shape), WeightRole::embedding);
  };
  const std::vector<WeightId> weights{
      add("patch_embeddings.weight", {Symbol::hidden_size, Symbol::patch_elements}),
      add("patch_embeddings.bias", {Symbol::hidden_size}),
      add("class_token", {Symbol::hidden_size}),
      add("position_embeddings.weight", {Symbol::max_position_embeddings, Symbol::hidden_size})};
  const TensorId hidden =
      emit(Part::embeddings, "patch_embeddings",
           PatchEmbedding{Symbol::batch_size, patches, Symbol::patch_elements, Symbol::hidden_size},
           {pixels}, weights, hidden_shape(stack));
  return finish_embedding(stack, hidden);
}

TensorId GraphBuilder::finish_embedding(const StackContext& stack, TensorId hidden) {
  const Expr rows = Expr(Symbol::batch_size) * stack.tokens;
  if (spec_.embedding.norm) hidden = norm(*spec_.embedding.norm, "norm", rows, hidden);
  hidden = dropout("dropout", stack.spec->dropout.embedding, hidden);
  return end_block(hidden);
}

}  // namespace headroom::detail
