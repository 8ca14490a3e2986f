#include "module_kind.h"

#include <string_view>

namespace headroom::detail {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_expert(const Weight& weight) { return contains(weight.path, ".experts."); }

}  // namespace

MatrixSizes matrix_sizes(const Weight& weight, const Bindings& sizes) {
  MatrixSizes matrix;
  std::size_t first = 0;
  const auto size = [&](std::size_t i) { return weight.shape[i].evaluate_int64(sizes); };
  if (is_expert(weight) && !weight.shape.empty()) matrix.experts = size(first++);
  if (first < weight.shape.size()) matrix.out = size(first++);
  for (; first < weight.shape.size(); ++first) {
    matrix.in = static_cast<std::int64_t>(checked_multiply(matrix.in, size(first)));
  }
  return matrix;
}

ModuleKind module_kind(const Weight& weight, const MatrixSizes& sizes) {
  const std::string_view path = weight.path;
  const bool is_vector =
      sizes.in == 1 || !path.ends_with(".weight") || weight.role == WeightRole::norm;
  if (is_vector) return ModuleKind::other;
  const Part part = weight.component.part;
  if (part == Part::vision_tower || part == Part::audio_tower) return ModuleKind::tower;
  if (is_expert(weight)) return ModuleKind::experts;
  // Qwen's gate of the shared expert has one output; every method treats it as a router.
  if (contains(path, ".router.") || contains(path, "shared_expert_gate")) return ModuleKind::router;
  if (path.ends_with("head.language_model.weight")) return ModuleKind::head;
  switch (weight.role) {
    case WeightRole::embedding:
    case WeightRole::relative_position_bias:
      return ModuleKind::embedding;
    case WeightRole::convolution:
      return ModuleKind::convolution;
    case WeightRole::norm:
      return ModuleKind::other;
    case WeightRole::attention:
    case WeightRole::recurrent:
    case WeightRole::mlp:
    case WeightRole::head:
    case WeightRole::projector:
      break;
  }
  return contains(path, "conv") ? ModuleKind::convolution : ModuleKind::linear;
}

}  // namespace headroom::detail
