#include <algorithm>

#include "data_exchange.h"
#include "planner.h"

namespace headroom {
namespace {

using detail::SectionCosts;

Integer share_of(Integer value, Integer part, Integer whole) {
  return part == whole ? value : ceil_div(checked_multiply(value, part), whole);
}

void add_share(const SectionCosts& kind, std::int64_t layers, std::int64_t all_layers,
               SectionCosts& sum) {
  const double share = static_cast<double>(layers) / static_cast<double>(all_layers);
  sum.forward_s += share * kind.forward_s;
  sum.backward_s += share * kind.backward_s;
  sum.core_s += share * kind.core_s;
  sum.forward_exchange_s += share * kind.forward_exchange_s;
  sum.backward_exchange_s += share * kind.backward_exchange_s;
  sum.forward_flops += share * kind.forward_flops;
  sum.saved += share_of(kind.saved, layers, all_layers);
  sum.saved_core += share_of(kind.saved_core, layers, all_layers);
  sum.layer_inputs += share_of(kind.layer_inputs, layers, all_layers);
}

}  // namespace

StageCosts stage_costs(const detail::RankCosts& costs, const RankStates& states,
                       const std::vector<detail::LayerKind>& kinds, const StageShare& stage) {
  StageCosts result;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::int64_t layers = stage.layers_of_kind[i];
    if (layers == 0) continue;
    const SectionCosts& kind = costs.layers[i];
    const std::int64_t all_layers = kinds[i].count;
    add_share(kind, layers, all_layers, result.layers);
    const SectionStates& held = states.layers[i];
    result.states.shared += detail::divided(held.shared, layers, all_layers);
    if (held.experts.weights > 0) {
      result.states.experts += detail::divided(held.experts, layers, all_layers);
    }
    const Integer weights = held.shared.weights + held.experts.weights;
    result.largest_saved = std::max(result.largest_saved, ceil_div(kind.saved, all_layers));
    result.largest_core = std::max(result.largest_core, ceil_div(kind.saved_core, all_layers));
    result.largest_weights = std::max(result.largest_weights, ceil_div(weights, all_layers));
  }
  return result;
}

}  // namespace headroom
