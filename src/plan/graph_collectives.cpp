#include "graph_collectives.h"

#include <algorithm>

#include "op_kind.h"
#include "stage_layout.h"

namespace headroom::detail {

std::set<std::string> exchanged_paths(const Graph& graph) {
  std::set<std::string> paths;
  for (const Block& block : graph.blocks) {
    bool exchanged = false;
    for (const Node& node : block.nodes) {
      const auto* const op = std::get_if<Collective>(&node.op);
      if (op != nullptr && op->group == RankGroup::expert) {
        exchanged = op->dispatch == Dispatch::forward;
      } else if (exchanged) {
        paths.insert(block.path + "." + node.path);
      }
    }
  }
  return paths;
}

Expr permuted_bytes(const Node& node) {
  const auto* const experts = std::get_if<ExpertLinear>(&node.op);
  if (experts == nullptr || experts->source != ExpertLinear::Source::tokens) return {};
  return experts->rows * experts->per_token * experts->in_features * Symbol::activation_bytes;
}

Expr hidden_bytes(const Graph& graph) {
  Expr encoder;
  Expr main;
  for (const Block& block : graph.blocks) {
    if (!block.is_layers()) continue;
    (in_encoder(block) ? encoder : main) =
        graph.tensors[block.carried_out].elements() * Symbol::activation_bytes;
  }
  return encoder + main;
}

Expr key_choice_bytes() {
  constexpr int kIndexBytes = 4;
  return Expr(Symbol::batch_size) * Symbol::chosen_pairs * Integer{kIndexBytes};
}

bool is_beside(const Node& gemm, const Node& node) {
  if (kind_of(gemm.op) != OpKind::linear) return false;
  switch (std::get<Collective>(node.op).forward) {
    case CollectiveKind::all_gather:
      return std::ranges::count(gemm.inputs, node.output) > 0;
    case CollectiveKind::reduce_scatter:
      return gemm.output == node.inputs.front();
    case CollectiveKind::none:
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_to_all:
    case CollectiveKind::send:
      break;
  }
  return false;
}

LayerPart part_of_collective(const Block& block, const Node& node) {
  const auto is_module = [](LayerPart part) {
    return part == LayerPart::dense_ffn || part == LayerPart::experts ||
           part == LayerPart::shared_expert;
  };
  const auto at = static_cast<std::size_t>(&node - block.nodes.data());
  const LayerPart next =
      at + 1 < block.nodes.size() ? layer_part(block.nodes[at + 1]) : LayerPart::other;
  if (is_module(next)) return next;
  const LayerPart before = at > 0 ? layer_part(block.nodes[at - 1]) : LayerPart::other;
  return is_module(before) ? before : LayerPart::other;
}

}  // namespace headroom::detail
