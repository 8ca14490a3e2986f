#include "text_layers.h"

#include <algorithm>
#include <set>

namespace headroom::detail {
namespace {

bool is_of_tower(const Component& component) {
  return component.stack == StackRole::tower || component.stack == StackRole::audio_tower;
}

/// True for rows of towers, projectors and adapters, counted or run.
bool is_beside_text(const Component& component) {
  const Part part = component.part;
  return is_of_tower(component) || part == Part::vision_tower || part == Part::audio_tower ||
         part == Part::projector || part == Part::adapter;
}

bool is_text_layer(const Block& block, const Node& node) {
  return block.is_layers() && !is_of_tower(node.component);
}

/// The weights that a node of the pass reads.
std::set<WeightId> weights_read(const Graph& graph) {
  std::set<WeightId> read;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) read.insert(node.weights.begin(), node.weights.end());
  }
  return read;
}

std::set<WeightId> weights_of_layers(const Graph& graph) {
  std::set<WeightId> found;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      if (is_text_layer(block, node)) found.insert(node.weights.begin(), node.weights.end());
    }
  }
  return found;
}

/// True for a weight of a layer that no node reads, such as an expert of images.
bool is_unread_of_layers(const Graph& graph, const Weight& weight) {
  return std::ranges::any_of(graph.blocks, [&](const Block& block) {
    return block.is_layers() && weight.path.starts_with(block.path + ".");
  });
}

Expr elements_of(const Weight& weight) { return weight.repeat * weight.elements(); }

/// Elements of the experts that a token is routed to, or of all of a weight without experts.
Expr elements_for_token(const Weight& weight) {
  const Part part = weight.component.part;
  const bool routed = part == Part::mlp_experts_up || part == Part::mlp_experts_down;
  const Expr elements = elements_of(weight);
  return routed ? elements.substitute(Symbol::num_experts, Symbol::num_experts_per_tok) : elements;
}

bool is_embedding_or_head(WeightRole role) {
  return role == WeightRole::embedding || role == WeightRole::relative_position_bias ||
         role == WeightRole::head;
}

const char* words_for(ModelPart part) {
  switch (part) {
    case ModelPart::text:
      break;
    case ModelPart::vision:
      return "the image tower";
    case ModelPart::audio:
      return "the encoder of sound";
    case ModelPart::projector:
      return "the projector";
    case ModelPart::adapter:
      return "the adapter";
  }
  return "weights of the text beside its layers";
}

}  // namespace

Expr layer_parameters(const Graph& graph) {
  const std::set<WeightId> layers = weights_of_layers(graph);
  const std::set<WeightId> read = weights_read(graph);
  Expr sum;
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    const Weight& weight = graph.weights[id];
    if (weight.kind == WeightKind::buffer || is_beside_text(weight.component)) continue;
    const bool unread = !read.contains(id) && is_unread_of_layers(graph, weight);
    if (layers.contains(id) || unread) sum += elements_of(weight);
  }
  return sum;
}

Expr layer_flops(const Graph& graph, const Analysis& analysis) {
  Expr flops;
  std::size_t next = 0;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      const Expr& own = analysis.nodes.at(next++).cost.forward.matrix_flops;
      if (is_text_layer(block, node)) flops += own;
    }
  }
  return flops;
}

TextParameters text_parameters(const Graph& graph, ModelKind kind) {
  const std::set<WeightId> read = weights_read(graph);
  const bool in_every_phase = kind == ModelKind::encoder_decoder;
  TextParameters sums;
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    const Weight& weight = graph.weights[id];
    if (weight.kind == WeightKind::buffer || is_beside_text(weight.component)) continue;
    if (weight.readers == Readers::image_tokens) continue;
    if (!in_every_phase && !read.contains(id)) continue;
    const Expr elements = elements_for_token(weight);
    sums.all += elements;
    if (!is_embedding_or_head(weight.role)) sums.without_embeddings += elements;
  }
  return sums;
}

std::vector<std::string> parts_beside_text(const Graph& graph) {
  std::vector<std::string> parts;
  for (const Weight& weight : graph.weights) {
    if (weight.kind == WeightKind::buffer || !is_beside_text(weight.component)) continue;
    std::string words = words_for(weight.model_part);
    const bool known = std::ranges::find(parts, words) != parts.end();
    if (!known) parts.push_back(std::move(words));
  }
  return parts;
}

}  // namespace headroom::detail
