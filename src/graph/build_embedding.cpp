// Embeds tokens, image patches or audio: hidden states `[batch, seq, d]`.
#include "builder.h"
#include "headroom/tiled_tower.h"
#include "tiled_steps.h"

namespace headroom::detail {
namespace {

AddedPositions added_positions(PositionKind kind) {
  switch (kind) {
    case PositionKind::learned:
    case PositionKind::learned_and_relative_bias:
      return AddedPositions::learned;
    case PositionKind::sinusoidal:
      return AddedPositions::sinusoidal;
    case PositionKind::none:
    case PositionKind::rotary:
    case PositionKind::learned_and_rotary:
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
    case InputKind::audio:
      // The encoder reads audio, the decoder tokens.
      return stack.role == StackRole::decoder ? embed_tokens(stack) : embed_audio(stack);
    case InputKind::waveform:
      return embed_waveform(stack);
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
                           {Symbol::vocab_size, embedding_width()}, WeightRole::embedding);
  return *word_embedding_;
}

WeightId GraphBuilder::position_table(const StackContext& stack, const Expr& width) {
  const Expr rows = sized(Symbol::max_position_embeddings, stack.position->max_position_embeddings);
  return weight(Part::embeddings, "position_embeddings.weight", {rows, width},
                WeightRole::embedding);
}

TensorId GraphBuilder::embed_tokens(const StackContext& stack) {
  const TensorId ids = tensor("input_ids", {Symbol::batch_size, stack.tokens}, ElementType::index);
  begin_block("embeddings", stack.role, Integer{1}, ids);
  const AddedPositions added = added_positions(stack.position->kind);
  const bool projects = has_narrow_embedding() && spec_.embedding.projects_before_positions;
  // Images have positions as well; text alone gets them in the same place, as ranks require.
  const bool merges = visual_tokens_ && added != AddedPositions::none;
  const bool norms = norms_before_positions(stack);
  const bool later = projects || merges || norms;
  TensorId hidden = look_up_tokens(stack, ids, later ? AddedPositions::none : added);
  if (emit_nodes_) graph_.inputs.push_back(ids);
  if (projects) hidden = project_embedding(stack, hidden);
  if (merges) {
    hidden = insert_visual_tokens(hidden);
    visual_tokens_.reset();
  }
  if (norms) {
    const NormSpec& spec = *spec_.embedding.norm;
    hidden = norm(spec, "norm", Norm{spec, stack.rows(), Symbol::hidden_size, {}}, hidden);
  }
  if (later) hidden = add_positions(stack, hidden);
  if (norms) return end_block(dropout("dropout", stack.spec->dropout.embedding, hidden));
  return finish_embedding(stack, hidden);
}

bool GraphBuilder::norms_before_positions(const StackContext& stack) const {
  return spec_.embedding.norm_before_positions && stack.role != StackRole::encoder;
}

TensorId GraphBuilder::look_up_tokens(const StackContext& stack, TensorId ids,
                                      AddedPositions positions) {
  const EmbeddingSpec& spec = spec_.embedding;
  const Expr width = embedding_width();
  TokenEmbedding op{stack.rows(), stack.tokens, width, positions, {}, spec.scale, spec.fixed_scale};
  std::vector<WeightId> weights{word_embedding(stack)};
  if (op.positions == AddedPositions::learned) weights.push_back(position_table(stack, width));
  if (spec.type_vocab_size > 0) {
    op.type_rows = Symbol::type_vocab_size;
    weights.push_back(weight(Part::embeddings, "token_type_embeddings.weight",
                             {Symbol::type_vocab_size, width}, WeightRole::embedding));
  }
  return emit(Part::embeddings, "word_embeddings", std::move(op), {ids}, std::move(weights),
              {Symbol::batch_size, stack.tokens, width});
}

TensorId GraphBuilder::project_embedding(const StackContext& stack, TensorId hidden) {
  const LinearParts projection{Part::embeddings,
                               "projection",
                               WeightRole::embedding,
                               stack.rows(),
                               Symbol::embedding_size,
                               {{"projection", Symbol::hidden_size}},
                               spec_.embedding.projection_bias};
  return linear(projection, hidden, hidden_shape(stack));
}

TensorId GraphBuilder::add_positions(const StackContext& stack, TensorId hidden) {
  std::vector<WeightId> table;  // sines are computed
  if (stack.position->kind != PositionKind::sinusoidal) {
    table.push_back(position_table(stack, Symbol::hidden_size));
  }
  return emit_in_place(Part::embeddings, "position_embeddings",
                       PositionEmbedding{stack.rows(), stack.tokens, Symbol::hidden_size}, {hidden},
                       std::move(table));
}

TensorId GraphBuilder::audio_convolution(const std::string& path, Convolution op, TensorId input) {
  const std::vector<WeightId> weights{
      weight(Part::embeddings, path + ".weight", {op.out_channels, op.in_channels, op.kernel},
             WeightRole::embedding),
      weight(Part::embeddings, path + ".bias", {op.out_channels}, WeightRole::embedding)};
  const Expr elements = op.batch * op.length * op.out_channels;
  std::vector<Expr> shape{op.batch, op.length, op.out_channels};
  const TensorId output =
      emit(Part::embeddings, path, std::move(op), {input}, weights, std::move(shape));
  return emit_in_place(Part::embeddings, path + ".activation",
                       Activation{spec_.embedding.audio->activation, elements}, {output});
}

TensorId GraphBuilder::embed_audio(const StackContext& stack) {
  const Expr batch = Symbol::batch_size;
  const Expr bins = Integer{spec_.embedding.audio->num_mel_bins};
  const Expr frames = Integer{2} * stack.tokens;
  const Expr kernel = Integer{3};
  const TensorId features = tensor("input_features", {batch, bins, frames});
  if (emit_nodes_) graph_.inputs.push_back(features);
  begin_block("embeddings", stack.role, Integer{1}, features);
  const Convolution first{batch, bins, Symbol::hidden_size, kernel, Integer{1}, frames, true};
  const Convolution second{batch,  Symbol::hidden_size, Symbol::hidden_size,
                           kernel, Integer{2},          stack.tokens};
  const TensorId filtered = audio_convolution("conv1", first, features);
  const TensorId rows = audio_convolution("conv2", second, filtered);
  const bool adds = added_positions(stack.position->kind) != AddedPositions::none;
  return finish_embedding(stack, adds ? add_positions(stack, rows) : rows);
}

TensorId GraphBuilder::embed_patches(const StackContext& stack) {
  const ImageSpec& image = *spec_.embedding.image;
  const Expr prefix = Integer{image.prefix_tokens()};
  const Expr images = is_tower_ ? Expr(Symbol::images) : kBatch;
  const Expr patches = is_tower_ ? Expr(Symbol::image_patches) : kBatch * (stack.tokens - prefix);
  const TensorId pixels = tensor("pixel_values", {patches, Symbol::patch_elements});
  if (emit_nodes_) graph_.inputs.push_back(pixels);
  begin_block("embeddings", stack.role, Integer{1}, pixels);
  std::vector<WeightId> weights = patch_weights(image);
  PatchEmbedding op{images, patches, Symbol::patch_elements, Symbol::hidden_size, prefix};
  op.bias = image.patch_bias;
  const bool norm_first = spec_.embedding.norm_before_positions;
  op.positions = spec_.position.has_patch_table() && !norm_first;
  if (op.positions) weights.push_back(patch_position_table());
  const TensorId hidden = emit(Part::embeddings, "patch_embeddings", std::move(op), {pixels},
                               std::move(weights), hidden_shape(stack));
  return norm_first ? add_patch_positions(stack, hidden) : finish_embedding(stack, hidden);
}

TensorId GraphBuilder::add_patch_positions(const StackContext& stack, TensorId hidden) {
  const NormSpec& spec = *spec_.embedding.norm;
  hidden = norm(spec, "norm", Norm{spec, stack.rows(), Symbol::hidden_size, {}}, hidden);
  return end_block(emit_in_place(Part::embeddings, "position_embeddings",
                                 PositionEmbedding{stack.rows(), stack.tokens, Symbol::hidden_size},
                                 {hidden}, {patch_position_table()}));
}

WeightId GraphBuilder::patch_position_table() {
  std::vector<Expr> shape{Symbol::max_position_embeddings, Symbol::hidden_size};
  if (spec_.position.table == PositionTable::rows_and_columns) {
    shape.insert(shape.begin(), Integer{2});
  }
  return weight(Part::embeddings, "position_embeddings.weight", std::move(shape),
                WeightRole::embedding);
}

std::vector<WeightId> GraphBuilder::patch_weights(const ImageSpec& image) {
  std::vector<WeightId> weights;
  const auto add = [&](const std::string& path, std::vector<Expr> shape) {
    weights.push_back(weight(Part::embeddings, path, std::move(shape), WeightRole::embedding));
  };
  add("patch_embeddings.weight", {Symbol::hidden_size, Symbol::patch_elements});
  if (image.patch_bias) add("patch_embeddings.bias", {Symbol::hidden_size});
  switch (image.prefix) {
    case PrefixTokens::none:
      break;
    case PrefixTokens::class_token:
      add("class_token", {Symbol::hidden_size});
      break;
    case PrefixTokens::class_and_distillation:
      add("class_token", {Symbol::hidden_size});
      add("distillation_token", {Symbol::hidden_size});
      break;
  }
  if (image.registers > 0) {
    add("register_tokens", {Integer{image.registers}, Symbol::hidden_size});
  }
  return weights;
}

TensorId GraphBuilder::finish_embedding(const StackContext& stack, TensorId hidden) {
  const bool narrow = has_narrow_embedding() && !spec_.embedding.projects_before_positions;
  const Expr width = narrow ? embedding_width() : Expr(Symbol::hidden_size);
  if (const auto& spec = spec_.embedding.norm) {
    hidden = norm(*spec, "norm", Norm{*spec, stack.rows(), width, {}}, hidden);
  }
  hidden = dropout("dropout", stack.spec->dropout.embedding, hidden);
  if (narrow) hidden = project_embedding(stack, hidden);
  hidden = insert_audio_tokens(insert_visual_tokens(hidden));
  if (has_placeholder_rows(spec_)) hidden = TiledSteps{*this}.insert_placeholders(hidden);
  return end_block(hidden);
}

}  // namespace headroom::detail
