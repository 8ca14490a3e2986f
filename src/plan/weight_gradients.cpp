#include "weight_gradients.h"

#include <algorithm>
#include <utility>

#include "op_kind.h"
#include "stage_layout.h"

namespace headroom::detail {
namespace {

/// Shape of the trained weights of one GEMM; no elements if it has none.
GemmShape shape_of(const Graph& graph, const Node& node, const Bindings& sizes) {
  GemmShape shape;
  for (const WeightId id : node.weights) {
    const Weight& weight = graph.weights[id];
    const bool trained = weight.training != Training::frozen && weight.kind != WeightKind::buffer;
    if (!trained || weight.shape.size() < 2) continue;
    const Integer rows = weight.shape[weight.shape.size() - 2].evaluate(sizes);
    shape.in_features = weight.shape.back().evaluate(sizes);
    shape.elements = checked_add(shape.elements, checked_multiply(rows, shape.in_features));
  }
  return shape;
}

bool is_gemm(const Node& node) {
  const OpKind kind = kind_of(node.op);
  return kind == OpKind::linear || kind == OpKind::expert_linear;
}

}  // namespace

std::vector<std::vector<GemmShape>> gemm_shapes(const Graph& graph, std::size_t kinds,
                                                const Bindings& rank_sizes) {
  const SectionMap sections(graph);
  std::vector<std::vector<GemmShape>> shapes(kinds);
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    if (!graph.blocks[i].is_layers()) continue;
    for (const Node& node : graph.blocks[i].nodes) {
      if (!is_gemm(node)) continue;
      const GemmShape shape = shape_of(graph, node, rank_sizes);
      if (shape.elements > 0) shapes[sections.of(i, node).layer_kind].push_back(shape);
    }
  }
  std::ranges::for_each(shapes, keep_distinct);
  return shapes;
}

void keep_distinct(std::vector<GemmShape>& shapes) {
  std::ranges::sort(shapes, {}, [](const GemmShape& shape) {
    return std::pair(shape.elements, shape.in_features);
  });
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
}

Integer weight_gradient_bytes(const std::vector<GemmShape>& distinct, const StatePolicy& policy) {
  const RecipeInfo& recipe = info(policy.recipe);
  Integer sum = 0;
  Integer largest = 0;
  for (const GemmShape& shape : distinct) {
    sum = checked_add(sum, shape.elements);
    largest = std::max(largest, shape.elements);
  }
  switch (policy.recipe) {
    case Recipe::megatron:
    case Recipe::fp8_transformer_engine:
    case Recipe::mxfp8_transformer_engine:
      return checked_multiply(sum, bytes_of(DType::bfloat16));
    case Recipe::float32:
    case Recipe::bfloat16:
    case Recipe::mixed:
    case Recipe::fp8_deepseek_v3:
      break;
  }
  return checked_multiply(largest, recipe.gradient_bytes);
}

}  // namespace headroom::detail
