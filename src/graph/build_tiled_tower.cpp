// A tower that reads all tiles of an image at once, and the layers of a decoder that attend to its
// rows (tiled_tower.h). Source: transformers, models/mllama.
#include <algorithm>
#include <utility>

#include "headroom/tiled_tower.h"
#include "tiled_steps.h"

namespace headroom::detail {
namespace {

const Expr kTiles = Symbol::images;
const Expr kOne = Integer{1};

/// The layers of a tower with gates, as a stack of their own.
StackSpec gated_layers(const TowerSpec& tower) {
  StackSpec stack = tower.stack;
  stack.num_layers -= local_layers(tower);
  stack.variants.clear();
  stack.variant_of_layer.clear();
  return stack;
}

StackSpec layers_without_gates(const TowerSpec& tower) {
  StackSpec stack = gated_layers(tower);
  stack.num_layers = local_layers(tower);
  return stack;
}

/// Rows of a table by the number of an image's canvas: `rows` for each of its tiles.
std::vector<Expr> shape_by_canvas(const TowerSpec& tower, std::int64_t rows) {
  const auto canvases = static_cast<std::int64_t>(tower.tiles.heights.size());
  return {Integer{canvases + 1}, Integer{tower.most_tiles} * rows * kHidden};
}

}  // namespace

TensorId GraphBuilder::TiledSteps::add_gated(const StackContext& stack, const std::string& name,
                                             WeightRole role, TensorId hidden, TensorId branch) {
  const Expr elements = stack.rows() * Symbol::hidden_size;
  const Part part = role == WeightRole::mlp ? Part::mlp_down : Part::attention_gate;
  branch =
      builder.emit_in_place(part, name + ".gate", OutputGate{ActivationKind::tanh, elements, kOne},
                            {branch, trained_number(part, name + "_gate", role)});
  return builder.add_residual(stack, name + ".residual", hidden, branch);
}

TensorId GraphBuilder::TiledSteps::trained_number(Part part, const std::string& path,
                                                  WeightRole role) {
  const WeightId number = builder.weight(part, path, {kOne}, role);
  return builder.emit(part, path, RepeatedRow{kOne, kOne}, {}, {number}, {kOne, kOne});
}

template <class Function>
TensorId GraphBuilder::TiledSteps::gated_sublayer(const StackContext& stack,
                                                  const std::string& name, WeightRole role,
                                                  TensorId hidden, Function function) {
  const TensorId normed = builder.norm(stack.spec->norm, name + "_norm", stack.rows(), hidden);
  return add_gated(stack, name, role, hidden, function(normed));
}

TensorId GraphBuilder::TiledSteps::gated_network(const StackContext& stack, TensorId hidden) {
  return gated_sublayer(stack, "mlp", WeightRole::mlp, hidden,
                        [&](TensorId input) { return builder.feed_forward(stack, input); });
}

TensorId GraphBuilder::TiledSteps::image_layer(const StackContext& stack, TensorId hidden) {
  const bool skips = builder.options_.images == ImageInputs::absent;
  const bool emits = std::exchange(builder.emit_nodes_, builder.emit_nodes_ && !skips);
  TensorId states =
      gated_sublayer(stack, "cross_attention", WeightRole::attention, hidden,
                     [&](TensorId input) { return builder.cross_attention(stack, input); });
  states = gated_network(stack, states);
  builder.emit_nodes_ = emits;
  return skips ? hidden : states;
}

TensorId GraphBuilder::TiledSteps::add_rows(const std::string& name, std::vector<Expr> shape,
                                            Expr rows, Expr cycle, TensorId gate, TensorId hidden) {
  const WeightId table =
      builder.weight(Part::embeddings, name + ".weight", std::move(shape), WeightRole::embedding);
  return builder.emit_in_place(
      Part::embeddings, name,
      PositionEmbedding{std::move(rows), std::move(cycle), Symbol::hidden_size}, {hidden, gate},
      {table});
}

TensorId GraphBuilder::TiledSteps::gate_of(const std::string& name) {
  return trained_number(Part::embeddings, name + ".gate", WeightRole::embedding);
}

TensorId GraphBuilder::TiledSteps::copy_rows(Part part, const std::string& path, std::int64_t rows,
                                             TensorId hidden) {
  const Expr all = Integer{rows} * kTiles;
  return builder.emit(part, path, PatchRows{PatchRows::Kind::all, all, Symbol::hidden_size},
                      {hidden}, {}, {all, Symbol::hidden_size});
}

TensorId GraphBuilder::TiledSteps::embed(const TowerSpec& tower) {
  const ImageSpec& image = *tower.embedding.image;
  const Expr patches = Symbol::image_patches;
  const Expr tile = Integer{rows_of_tile(tower)};
  const Expr rows = tile * kTiles;
  const TensorId pixels = builder.tensor("pixel_values", {patches, Symbol::patch_elements});
  if (builder.emit_nodes_) builder.graph_.inputs.push_back(pixels);
  builder.begin_block("embeddings", StackRole::single, kOne, pixels);
  PatchEmbedding op{kTiles, patches, Symbol::patch_elements, Symbol::hidden_size};
  op.bias = image.patch_bias;
  op.positions = false;
  TensorId hidden = builder.emit(Part::embeddings, "patch_embeddings", op, {pixels},
                                 builder.patch_weights(image), {rows, Symbol::hidden_size});
  hidden = add_rows("first_tile_embeddings", shape_by_canvas(tower, 1), patches,
                    Integer{tower.most_tiles}, gate_of("first_tile_embeddings"), hidden);
  const TensorId gate = gate_of("position_embeddings");
  hidden = add_rows("position_embeddings", {tile, Symbol::hidden_size}, rows, tile, gate, hidden);
  hidden = add_rows("tile_position_embeddings", shape_by_canvas(tower, rows_of_tile(tower)), rows,
                    Integer{keys_of_image(tower)}, gate, hidden);
  const NormSpec& norm = *tower.embedding.norm;
  hidden = builder.norm(norm, "norm", Norm{norm, rows, Symbol::hidden_size, {}}, hidden);
  return builder.end_block(
      copy_rows(Part::embeddings, "padding", padded_rows_of_tile(tower), hidden));
}

TensorId GraphBuilder::TiledSteps::features(const TowerSpec& tower, std::int64_t layers,
                                            TensorId hidden) {
  builder.begin_block("features", StackRole::single, kOne, hidden);
  return builder.end_block(copy_rows(Part::vision_tower, "layer_" + std::to_string(layers),
                                     rows_of_tile(tower), hidden));
}

TensorId GraphBuilder::TiledSteps::gated_layers_of(const TowerSpec& tower, StackContext stack,
                                                   TensorId hidden) {
  const StackSpec spec = gated_layers(tower);
  if (spec.num_layers == 0) return hidden;
  stack.spec = &spec;
  stack.attention = &spec.self_attention;
  stack.ffn = &spec.ffn;
  stack.heads = builder.head_sizes(spec.self_attention);
  builder.begin_block("global_layers", StackRole::single, Integer{spec.num_layers}, hidden);
  builder.graph_.blocks.back().layers_per_run = 1;
  hidden = gated_sublayer(stack, "attention", WeightRole::attention, hidden,
                          [&](TensorId input) { return builder.self_attention(stack, input); });
  return builder.end_block(gated_network(stack, hidden));
}

TensorId GraphBuilder::TiledSteps::run(const TowerSpec& tower, StackContext stack) {
  const StackSpec local = layers_without_gates(tower);
  stack.spec = &local;
  stack.num_layers = Integer{local.num_layers};
  const std::vector<std::int64_t>& wanted = tower.projector.feature_layers;
  TensorId hidden = embed(tower);
  std::map<std::int64_t, TensorId> states;
  for (const LayerRun& run : cut_after(layer_runs(local), wanted)) {
    hidden = builder.run_layers(stack, run, hidden);
    const std::int64_t layers = run.first_layer + run.layers();
    const bool is_wanted = std::ranges::find(wanted, layers) != wanted.end();
    if (is_wanted) states[layers] = features(tower, layers, hidden);
  }
  hidden = builder.final_norm(stack, hidden);
  builder.begin_block("tile_embeddings", StackRole::single, kOne, hidden);
  const TensorId gate = gate_of("last_tile_embeddings");
  hidden = builder.end_block(add_rows("last_tile_embeddings", shape_by_canvas(tower, 1),
                                      stack.rows(), Integer{tower.most_tiles}, gate, hidden));
  hidden = features(tower, tower.stack.num_layers, gated_layers_of(tower, stack, hidden));
  return joined(hidden, wanted, states);
}

TensorId GraphBuilder::TiledSteps::joined(TensorId last, const std::vector<std::int64_t>& wanted,
                                          const std::map<std::int64_t, TensorId>& states) {
  std::vector<std::int64_t> layers{0};  // the last layer's rows come first
  layers.insert(layers.end(), wanted.begin(), wanted.end());
  std::map<std::int64_t, TensorId> all = states;
  all[0] = last;
  return builder.joined_features(layers, all);
}

TensorId GraphBuilder::TiledSteps::insert_placeholders(TensorId hidden) {
  const WeightId rows =
      builder.weight(Part::embeddings, "placeholders.weight",
                     {Integer{kPlaceholderRows}, Symbol::hidden_size}, WeightRole::embedding);
  const bool emits =
      std::exchange(builder.emit_nodes_, builder.emit_nodes_ && builder.reads_images());
  const Expr tokens = Symbol::image_tokens;
  const TensorId row =
      builder.emit(Part::embeddings, "placeholders", RepeatedRow{tokens, Symbol::hidden_size}, {},
                   {rows}, {tokens, Symbol::hidden_size});
  const TensorId filled = builder.emit_in_place(
      Part::embeddings, "placeholders.rows",
      VisualTokens{VisualTokens::Kind::replace, tokens, Symbol::hidden_size}, {hidden, row});
  const bool inserts = std::exchange(builder.emit_nodes_, emits) && builder.reads_images();
  return inserts ? filled : hidden;
}

}  // namespace headroom::detail
