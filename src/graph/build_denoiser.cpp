// A diffusion transformer around its layers: patches of the latent, the conditioning by time step
// and text, the text's projection, and the output.
#include "builder.h"

namespace headroom::detail {
namespace {

/// Vectors of a modulation in the output: scale and shift.
constexpr std::int64_t kOutputVectors = 2;

}  // namespace

void GraphBuilder::denoise(const StackContext& stack) {
  const DenoiserSpec& spec = *spec_.denoiser;
  TensorId hidden = embed_latent(stack);
  conditioning_ = embed_conditioning(spec);
  if (spec.modulation == ModulationSource::shared) share_modulation();
  encoder_output_ = project_text(spec.text);
  if (spec.reference_image.size > 0) reference_image_ = embed_reference_image(spec);
  switch (spec.text.attention) {
    case TextAttention::joint:
      hidden = joint_layers(stack, hidden);
      break;
    case TextAttention::cross:
      hidden = cross_layers(stack, hidden);
      break;
  }
  predict_noise(stack, hidden);
}

TensorId GraphBuilder::graph_input(const std::string& name, std::vector<Expr> shape) {
  graph_.inputs.push_back(tensor(name, std::move(shape)));
  return graph_.inputs.back();
}

TensorId GraphBuilder::embed_latent(const StackContext& stack) {
  const LatentSpec& latent = spec_.denoiser->latent;
  const Expr elements = Integer{latent.patch_elements()};
  const TensorId patches = graph_input("latent", {stack.rows(), elements});
  begin_block("embeddings", stack.role, Integer{1}, patches);
  const std::vector<WeightId> weights{
      weight(Part::embeddings, "patch_embeddings.weight", {kHidden, elements},
             WeightRole::embedding),
      weight(Part::embeddings, "patch_embeddings.bias", {kHidden}, WeightRole::embedding)};
  PatchEmbedding op{kBatch, stack.rows(), elements, kHidden, {}};
  op.positions = false;
  TensorId hidden = emit(Part::embeddings, "patch_embeddings", std::move(op), {patches}, weights,
                         hidden_shape(stack));
  if (spec_.position.kind == PositionKind::sinusoidal) hidden = add_latent_positions(stack, hidden);
  return end_block(hidden);
}

TensorId GraphBuilder::add_latent_positions(const StackContext& stack, TensorId hidden) {
  std::vector<WeightId> table;
  if (const std::int64_t rows = spec_.denoiser->latent.position_rows; rows > 0) {
    table = {weight(Part::embeddings, "position_embeddings.weight", {Integer{rows}, kHidden},
                    WeightRole::embedding)};
    graph_.weights[table.front()].kind = WeightKind::buffer;
  }
  return emit_in_place(Part::embeddings, "position_embeddings",
                       PositionEmbedding{stack.rows(), stack.tokens, kHidden}, {hidden}, table);
}

TensorId GraphBuilder::project_vector(Part part, const std::string& path, const Expr& rows,
                                      const Expr& width, TensorId input) {
  std::vector<Expr> shape = graph_.tensors[input].shape;
  const Expr in_features = shape.back();
  shape.back() = width;
  const LinearParts parts{part, path, WeightRole::projector, rows, in_features, {{path, width}},
                          true};
  return linear(parts, input, std::move(shape));
}

TensorId GraphBuilder::project_twice(Part part, const std::string& path, ActivationKind activation,
                                     const Expr& rows, const Expr& width, TensorId input) {
  TensorId inner = project_vector(part, path + ".first", rows, width, input);
  inner = emit_in_place(part, path + ".activation", Activation{activation, rows * width}, {inner});
  return project_vector(part, path + ".second", rows, width, inner);
}

TensorId GraphBuilder::embed_numbers(const std::string& name, const Expr& count,
                                     const Expr& width) {
  const Expr frequencies = Integer{spec_.denoiser->conditioning.frequencies};
  const TensorId numbers = graph_input(name, {count});
  const TensorId features =
      emit(Part::conditioning, name + ".features", TimestepFeatures{count, frequencies}, {numbers},
           {}, {count, Integer{2} * frequencies});
  return project_twice(Part::conditioning, name, ActivationKind::silu, count, width, features);
}

TensorId GraphBuilder::embed_image_size() {
  // Height and width, and the aspect ratio, fill a third of the conditioning each.
  const std::int64_t third = spec_.hidden_size / 3;
  const Expr width = Integer{third};
  const TensorId sides = embed_numbers("resolution", Integer{2} * kBatch, width);
  const TensorId ratio = embed_numbers("aspect_ratio", kBatch, width);
  return emit(Part::conditioning, "image_size", Concatenate{kBatch, Integer{2} * width, width},
              {sides, ratio}, {}, {kBatch, kHidden});
}

TensorId GraphBuilder::embed_conditioning(const DenoiserSpec& denoiser) {
  const ConditioningSpec& spec = denoiser.conditioning;
  begin_block("conditioning", StackRole::single, Integer{1}, graph_.blocks.back().carried_out);
  TensorId sum = embed_numbers("timestep", kBatch, kHidden);
  const auto add = [&](const std::string& name, TensorId embedded) {
    sum = emit_in_place(Part::conditioning, name + ".sum", ResidualAdd{kBatch * kHidden},
                        {sum, embedded});
  };
  if (spec.guidance) add("guidance", embed_numbers("guidance", kBatch, kHidden));
  if (spec.pooled_text_size > 0) {
    const TensorId pooled = graph_input("pooled_text", {kBatch, Integer{spec.pooled_text_size}});
    add("pooled_text", project_twice(Part::conditioning, "pooled_text", ActivationKind::silu,
                                     kBatch, kHidden, pooled));
  }
  if (spec.image_size) add("image_size", embed_image_size());
  end_block(graph_.blocks.back().carried_in);
  return sum;
}

TensorId GraphBuilder::activated_conditioning(const std::string& path) {
  return emit_in_place(Part::modulation, path + ".activation",
                       Activation{ActivationKind::silu, kBatch * kHidden}, {*conditioning_});
}

void GraphBuilder::share_modulation() {
  begin_block("modulation", StackRole::single, Integer{1}, graph_.blocks.back().carried_out);
  shared_modulation_ =
      project_vector(Part::modulation, "projection", kBatch, Integer{kLayerVectors} * kHidden,
                     activated_conditioning("projection"));
  end_block(graph_.blocks.back().carried_in);
}

TensorId GraphBuilder::modulation_vectors(const std::string& path, std::int64_t vectors,
                                          ModulationSource source) {
  const Expr width = Integer{vectors} * kHidden;
  switch (source) {
    case ModulationSource::layer:
      return project_vector(Part::modulation, path, kBatch, width, activated_conditioning(path));
    case ModulationSource::shared:
      break;
  }
  // The output has two vectors, to which the conditioning itself is added.
  const TensorId base = vectors == kLayerVectors ? *shared_modulation_ : *conditioning_;
  const WeightId table =
      weight(Part::modulation, path + ".table", {Integer{vectors}, kHidden}, WeightRole::projector);
  return emit(Part::modulation, path + ".table", TrainedShift{kBatch, width}, {base}, {table},
              {kBatch, width});
}

TensorId GraphBuilder::modulated_norm(const StackContext& stack, const std::string& path,
                                      TensorId hidden, TensorId vectors, std::int64_t first) {
  const TensorId normed = norm(stack.spec->norm, path, stack.rows(), hidden);
  Modulation op{Modulation::Kind::scale_and_shift, kBatch, stack.tokens, kHidden, first};
  return emit_in_place(Part::modulation, path + ".modulation", std::move(op), {normed, vectors});
}

TensorId GraphBuilder::add_gated(const StackContext& stack, const std::string& path,
                                 TensorId hidden, TensorId branch, TensorId vectors,
                                 std::int64_t vector) {
  Modulation op{Modulation::Kind::gate, kBatch, stack.tokens, kHidden, vector};
  const TensorId gated =
      emit_in_place(Part::modulation, path + ".gate", std::move(op), {branch, vectors});
  return add_residual(stack, path + ".residual", hidden, gated);
}

TensorId GraphBuilder::project_text(const TextSpec& text) {
  const Expr rows = kBatch * Symbol::enc_seq_len;
  const TensorId states = graph_input("text", {kBatch, Symbol::enc_seq_len, Integer{text.size}});
  begin_block("text", StackRole::single, Integer{1}, graph_.blocks.back().carried_out);
  TensorId projected = 0;
  switch (text.projection) {
    case TextProjection::one_layer:
      projected = project_vector(Part::text_projection, "projection", rows, kHidden, states);
      break;
    case TextProjection::two_layers:
      projected = project_twice(Part::text_projection, "projection", ActivationKind::gelu_tanh,
                                rows, kHidden, states);
      break;
  }
  end_block(graph_.blocks.back().carried_in);
  return projected;
}

/// Source: WanImageEmbedding, diffusers, models/transformers/transformer_wan.py.
TensorId GraphBuilder::embed_reference_image(const DenoiserSpec& denoiser) {
  const ReferenceImageSpec& spec = denoiser.reference_image;
  const Expr tokens = Integer{spec.tokens};
  const Expr rows = kBatch * tokens;
  const Expr width = Integer{spec.size};
  const NormSpec trained{NormKind::layer_norm, true, 1e-5};
  TensorId image = graph_input("reference_image", {kBatch, tokens, width});
  begin_block("reference_image", StackRole::single, Integer{1}, graph_.blocks.back().carried_out);
  if (spec.position_rows > 0) {
    const WeightId table = weight(Part::text_projection, "position_embeddings.weight",
                                  {Integer{spec.position_rows}, width}, WeightRole::embedding);
    image = emit_in_place(Part::text_projection, "position_embeddings",
                          PositionEmbedding{rows, tokens, width}, {image}, {table});
  }
  image = norm(trained, "first_norm", Norm{trained, rows, width, {}}, image);
  image = project_vector(Part::text_projection, "projection.first", rows, width, image);
  image = emit_in_place(Part::text_projection, "projection.activation",
                        Activation{ActivationKind::gelu, rows * width}, {image});
  image = project_vector(Part::text_projection, "projection.second", rows, kHidden, image);
  image = norm(trained, "second_norm", Norm{trained, rows, kHidden, {}}, image);
  end_block(graph_.blocks.back().carried_in);
  return image;
}

void GraphBuilder::predict_noise(const StackContext& stack, TensorId hidden) {
  begin_block("output", stack.role, Integer{1}, hidden);
  const TensorId vectors =
      modulation_vectors("modulation", kOutputVectors, spec_.denoiser->modulation);
  hidden = modulated_norm(stack, "norm", hidden, vectors, 0);
  const Expr width = Integer{spec_.denoiser->latent.output_elements()};
  const LinearParts parts{Part::head,   "projection", WeightRole::head,
                          stack.rows(), kHidden,      {{"projection", width}},
                          true};
  hidden = linear(parts, hidden, {kBatch, stack.tokens, width});
  graph_.outputs.push_back(end_block(hidden));
}

}  // namespace headroom::detail
