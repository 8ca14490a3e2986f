// The image tower of a multimodal model and its projector. The tower is a graph of its own over the
// rows of all images, whose sizes become numbers; so the symbols of a model's sizes are those of
// its text model.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "builder.h"
#include "headroom/tiled_tower.h"
#include "headroom/workload.h"
#include "op_exprs.h"
#include "tiled_steps.h"
#include "visit.h"

namespace headroom::detail {
namespace {

constexpr Component kTower{StackRole::tower, Part::vision_tower};

/// Rows of all images.
Expr tower_rows(const ImageSpec& image) {
  return Expr(Symbol::image_patches) + Expr(Integer{image.prefix_tokens()}) * Symbol::images;
}

/// Rows of all images in the tower's layers.
Expr rows_of_layers(const TowerSpec& tower) {
  if (!reads_canvases(tower)) return tower_rows(*tower.embedding.image);
  return Integer{padded_rows_of_tile(tower)} * Expr(Symbol::images);
}

PatchRows::Kind kind_of(PatchMerge order) {
  switch (order) {
    case PatchMerge::patch_major:
      return PatchRows::Kind::patch_major;
    case PatchMerge::channel_major:
      return PatchRows::Kind::channel_major;
    case PatchMerge::mean:
      break;
  }
  return PatchRows::Kind::mean;
}

PatchRows::Kind kind_of(PackStep::Order order) {
  switch (order) {
    case PackStep::Order::blocks_then_whole:
      return PatchRows::Kind::pack_blocks;
    case PackStep::Order::means_then_whole:
      return PatchRows::Kind::pack_means;
    case PackStep::Order::whole_first:
      break;
  }
  return PatchRows::Kind::pack;
}

}  // namespace

Graph GraphBuilder::build_tower(const TowerSpec& tower) && {
  const ProjectorSpec& projector = tower.projector;
  is_tower_ = true;
  emit_nodes_ = reads_images();
  StackContext stack;
  stack.spec = &spec_.main_stack();
  stack.path = "encoder";
  stack.num_layers = Symbol::num_hidden_layers;
  stack.tokens = Symbol::seq_len;
  stack.position = &spec_.position;
  if (reads_canvases(tower)) {
    graph_.outputs = {TiledSteps{*this}.run(tower, stack)};
    return std::move(graph_);
  }
  TensorId hidden = embed_patches(stack);
  std::map<std::int64_t, TensorId> states;
  const auto& features = projector.feature_layers;
  std::vector<std::int64_t> wanted = features;
  for (const DeepstackSpec& entry : tower.deepstack) wanted.push_back(entry.layer);
  for (const LayerRun& run : cut_after(layer_runs(*stack.spec), wanted)) {
    hidden = run_layers(stack, run, hidden);
    const std::int64_t layers = run.first_layer + run.layers();
    const bool is_wanted = std::ranges::find(wanted, layers) != wanted.end();
    if (is_wanted) states[layers] = copied_rows(projector, hidden, layers);
  }
  hidden = final_norm(stack, hidden);
  if (tower.pooling) {
    graph_.outputs = {pool_images(stack, *tower.pooling, hidden)};
    return std::move(graph_);
  }
  graph_.outputs = {features.empty() ? feature_rows(projector, hidden, stack.spec->num_layers)
                                     : joined_features(features, states)};
  for (const DeepstackSpec& entry : tower.deepstack) {
    graph_.outputs.push_back(states.at(entry.layer));
  }
  return std::move(graph_);
}

TensorId GraphBuilder::feature_rows(const ProjectorSpec& projector, TensorId hidden,
                                    std::int64_t layers) {
  const std::int64_t prefix = spec_.embedding.image->prefix_tokens();
  const bool all = projector.rows == FeatureRows::all || prefix == 0;
  if (!all) return copied_rows(projector, hidden, layers);
  graph_.tensors[hidden].shape = {kBatch * Symbol::seq_len, Symbol::hidden_size};
  return hidden;
}

/// Later layers overwrite the hidden states, so those before the last are copied.
TensorId GraphBuilder::copied_rows(const ProjectorSpec& projector, TensorId hidden,
                                   std::int64_t layers) {
  const std::int64_t prefix = spec_.embedding.image->prefix_tokens();
  const bool all = projector.rows == FeatureRows::all || prefix == 0;
  PatchRows op;
  op.kind = all ? PatchRows::Kind::all : PatchRows::Kind::without_prefix;
  op.rows = all ? tower_rows(*spec_.embedding.image) : Expr(Symbol::image_patches);
  op.width = Symbol::hidden_size;
  begin_block("features", StackRole::single, Integer{1}, hidden);
  const std::vector<Expr> shape{op.rows, op.width};
  return end_block(emit(Part::vision_tower, fmt::format("layer_{}", layers), std::move(op),
                        {hidden}, {}, shape));
}

TensorId GraphBuilder::joined_features(const std::vector<std::int64_t>& layers,
                                       const std::map<std::int64_t, TensorId>& states) {
  std::vector<TensorId> inputs;
  inputs.reserve(layers.size());
  for (const std::int64_t layer : layers) inputs.push_back(states.at(layer));
  if (inputs.size() == 1) return inputs.front();
  PatchRows op;
  op.kind = PatchRows::Kind::join;
  op.rows = graph_.tensors[inputs.front()].shape.front();
  op.width = Symbol::hidden_size;
  op.parts = static_cast<std::int64_t>(inputs.size());
  const std::vector<Expr> shape{op.rows, Integer{op.parts} * op.width};
  begin_block("features", StackRole::single, Integer{1}, inputs.front());
  return end_block(emit(Part::vision_tower, "join", std::move(op), std::move(inputs), {}, shape));
}

TensorId GraphBuilder::embed_images(const TowerSpec& tower) {
  const ModelSpec encoder = encoder_of(tower);
  const std::vector<TensorId> features =
      append_tower(GraphBuilder(encoder, options_).build_tower(tower),
                   {kTower, "vision_tower.", Integer{1}, rows_of_layers(tower)});
  const TensorId tokens = project_images(tower.projector.steps, "projector", 0, features.front());
  for (std::size_t i = 0; i < tower.deepstack.size(); ++i) {
    deepstack_.push_back(project_images(tower.deepstack[i].steps, "deepstack",
                                        static_cast<std::int64_t>(i), features[i + 1]));
  }
  return tokens;
}

std::vector<TensorId> GraphBuilder::append_tower(Graph tower, const TowerPlace& place) {
  const std::function<Expr(const Expr&)> change = [&](const Expr& expr) {
    return expr.substitute(tower.sizes)
        .substitute(Symbol::batch_size, place.sequences)
        .substitute(Symbol::seq_len, place.rows);
  };
  const TensorId first_tensor = graph_.tensors.size();
  const WeightId first_weight = graph_.weights.size();
  const auto apply_to_shape = [&](std::vector<Expr>& shape) {
    std::ranges::transform(shape, shape.begin(), change);
  };
  for (Tensor& tensor : tower.tensors) {
    apply_to_shape(tensor.shape);
    graph_.tensors.push_back(std::move(tensor));
  }
  for (Weight& weight : tower.weights) {
    apply_to_shape(weight.shape);
    weight.path = place.path + weight.path;
    weight.repeat = change(weight.repeat);
    weight.component = place.component;
    graph_.weights.push_back(std::move(weight));
  }
  for (Block& block : tower.blocks) {
    block.path = place.path + block.path;
    block.repeat = change(block.repeat);
    block.carried_in += first_tensor;
    block.carried_out += first_tensor;
    for (Node& node : block.nodes) {
      node.op = map_exprs(std::move(node.op), change);
      node.component = place.component;
      node.output += first_tensor;
      for (TensorId& input : node.inputs) input += first_tensor;
      for (WeightId& weight : node.weights) weight += first_weight;
    }
    graph_.blocks.push_back(std::move(block));
  }
  for (const TensorId input : tower.inputs) graph_.inputs.push_back(input + first_tensor);
  std::ranges::for_each(tower.outputs, [&](TensorId& output) { output += first_tensor; });
  return std::move(tower.outputs);
}

TensorId GraphBuilder::project_images(const std::vector<ProjectorStep>& steps,
                                      const std::string& path, std::int64_t index,
                                      TensorId features) {
  const bool emits = std::exchange(emit_nodes_, reads_images());
  features = project_rows(steps, {StackRole::tower, path, index}, features);
  emit_nodes_ = emits;
  return features;
}

TensorId GraphBuilder::project_rows(const std::vector<ProjectorStep>& steps,
                                    const ProjectorPlace& place, TensorId features) {
  const Component component{place.stack, Part::projector};
  const WeightId first_weight = graph_.weights.size();
  begin_block(place.path, StackRole::single, Integer{1}, features);
  graph_.blocks.back().first_layer = place.index;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const WeightId of_step = graph_.weights.size();
    features = project_step(steps[i], fmt::format("{}", i), features);
    const auto* const layer = std::get_if<LinearStep>(&steps[i]);
    const ModelPart part = layer != nullptr ? layer->part : ModelPart::projector;
    for (Weight& weight : std::span(graph_.weights).subspan(of_step)) {
      weight.model_part = part;
      if (part == ModelPart::vision) weight.role = WeightRole::mlp;  // of an adapter
    }
  }
  for (Node& node : graph_.blocks.back().nodes) node.component = component;
  for (Weight& weight : std::span(graph_.weights).subspan(first_weight)) {
    weight.component = component;
  }
  return end_block(features);
}

TensorId GraphBuilder::project_step(const ProjectorStep& step, const std::string& path,
                                    TensorId features) {
  const std::vector<Expr> shape = graph_.tensors[features].shape;
  return std::visit(
      Overloaded{
          [&](const MergeStep& merge) { return merge_patches(merge, features); },
          [&](const GroupStep& group) { return group_rows(group, features); },
          [&](const LinearStep& layer) { return project_features(layer, features); },
          [&](const GatedStep& gated) { return project_gated(gated, features); },
          [&](const NormStep& own) {
            return norm(own.norm, own.name, Norm{own.norm, shape[0], shape[1], {}}, features);
          },
          [&](const FactorStep& own) {
            return emit_in_place(Part::projector, "scale." + path,
                                 Scale{shape[0] * shape[1], own.factor}, {features});
          },
          [&](const UnitLengthStep&) {
            return emit_in_place(Part::projector, "unit_length", UnitLength{shape[0], shape[1]},
                                 {features});
          },
          [&](const StandardiseStep&) { return standardise(features); },
          [&](const PackStep& pack) { return pack_tiles(pack, features); },
          [&](const SilenceStep&) { return drop_silence(features); },
          [&](const QueryAttentionStep&) { return project_queries(step, features); },
          [&](const QueryFormerStep&) { return project_queries(step, features); },
          [&](const ActivationStep& own) {
            return emit_in_place(Part::projector, "activation." + path,
                                 Activation{own.kind, shape[0] * shape[1]}, {features});
          }},
      step);
}

TensorId GraphBuilder::standardise(TensorId features) {
  const std::vector<Expr> shape = graph_.tensors[features].shape;
  std::vector<WeightId> statistics;
  for (const char* const name : {"standardise.mean", "standardise.factor"}) {
    statistics.push_back(weight(Part::projector, name, {shape[1]}, WeightRole::norm));
    graph_.weights.back().kind = WeightKind::buffer;
  }
  ChannelScale op{shape[0], shape[1], ChannelScale::Statistics::mean_and_factor};
  return emit_in_place(Part::projector, "standardise", std::move(op), {features},
                       std::move(statistics));
}

TensorId GraphBuilder::pack_tiles(const PackStep& step, TensorId features) {
  const Expr width = graph_.tensors[features].shape[1];
  const PatchRows op{kind_of(step.order), Symbol::image_tokens, width, step.side() * step.side()};
  const bool side_by_side = step.order == PackStep::Order::blocks_then_whole;
  const Expr out = side_by_side ? Integer{op.parts} * width : width;
  std::vector<WeightId> ends{weight(Part::projector, "end_of_row", {out}, WeightRole::projector)};
  if (step.order != PackStep::Order::whole_first) {
    ends.push_back(weight(Part::projector, "end_of_tiles", {out}, WeightRole::projector));
  }
  return emit(Part::projector, "pack", op, {features}, std::move(ends), {op.rows, out});
}

TensorId GraphBuilder::project_gated(const GatedStep& step, TensorId features) {
  const std::vector<Expr> shape = graph_.tensors[features].shape;
  const Expr width = Integer{step.width};
  const LinearParts parts{Part::projector, "gate_up", WeightRole::projector,
                          shape[0],        shape[1],  {{"gate", width}, {"up", width}},
                          step.bias};
  const TensorId inner = linear(parts, features, {shape[0], Integer{2} * width});
  return emit(Part::projector, "gate_up.activation", GatedActivation{step.kind, shape[0] * width},
              {inner}, {}, {shape[0], width});
}

TensorId GraphBuilder::merge_patches(const MergeStep& step, TensorId features) {
  const Expr width = graph_.tensors[features].shape[1];
  const PatchRows op{kind_of(step.order), Symbol::image_tokens, width, step.side * step.side};
  const bool averages = step.order == PatchMerge::mean;
  const Expr out = averages ? width : Integer{op.parts} * width;
  return emit(Part::projector, "merge", op, {features}, {}, {op.rows, out});
}

TensorId GraphBuilder::project_features(const LinearStep& step, TensorId features) {
  const std::vector<Expr> shape = graph_.tensors[features].shape;
  const Expr out = sized(Symbol::hidden_size, step.out_features);
  const LinearParts parts{Part::projector,    step.name, WeightRole::projector, shape[0], shape[1],
                          {{step.name, out}}, step.bias};
  return linear(parts, features, {shape[0], out});
}

TensorId GraphBuilder::insert_visual_tokens(TensorId hidden) {
  if (!visual_tokens_ || !reads_images()) return hidden;
  return emit_in_place(
      Part::embeddings, "visual_tokens",
      VisualTokens{VisualTokens::Kind::replace, Symbol::image_tokens, Symbol::hidden_size},
      {hidden, *visual_tokens_});
}

TensorId GraphBuilder::add_deepstack(const StackContext& stack, std::int64_t layers,
                                     TensorId hidden) {
  const auto index = static_cast<std::size_t>(layers - 1);
  if (!reads_images() || index >= deepstack_.size()) return hidden;
  begin_block(stack.path, stack.role, Integer{1}, hidden);
  return end_block(emit_in_place(
      Part::residual, fmt::format("deepstack_{}", layers),
      VisualTokens{VisualTokens::Kind::add, Symbol::image_tokens, Symbol::hidden_size},
      {hidden, deepstack_[index]}));
}

}  // namespace headroom::detail
