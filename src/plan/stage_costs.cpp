#include <algorithm>

#include "data_exchange.h"
#include "planner.h"

namespace headroom {
namespace {

using detail::SectionCosts;

Integer rounded_up(Integer value, Integer divisor) { return (value + divisor - 1) / divisor; }

Integer share_of(Integer value, Integer part, Integer whole) {
  return part == whole ? value : rounded_up(checked_multiply(value, part), whole);
}

void add_share(const SectionCosts& block, std::int64_t runs, std::int64_t all_runs,
               SectionCosts& sum) {
  const double share = static_cast<double>(runs) / static_cast<double>(all_runs);
  sum.forward_s += share * block.forward_s;
  sum.backward_s += share * block.backward_s;
  sum.core_s += share * block.core_s;
  sum.forward_exchange_s += share * block.forward_exchange_s;
  sum.backward_exchange_s += share * block.backward_exchange_s;
  sum.forward_flops += share * block.forward_flops;
  sum.saved += share_of(block.saved, runs, all_runs);
  sum.saved_core += share_of(block.saved_core, runs, all_runs);
  sum.layer_inputs += share_of(block.layer_inputs, runs, all_runs);
}

}  // namespace

StageCosts stage_costs(const detail::RankCosts& costs, const RankStates& states,
                       const std::vector<detail::LayerBlock>& blocks, const StageRuns& stage) {
  StageCosts result;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::int64_t runs = stage.runs[i];
    if (runs == 0) continue;
    const SectionCosts& block = costs.layers[i];
    add_share(block, runs, blocks[i].runs, result.layers);
    const SectionStates& held = states.layers[i];
    result.states.shared += detail::divided(held.shared, runs, blocks[i].runs);
    if (held.experts.weights > 0) {
      result.states.experts += detail::divided(held.experts, runs, blocks[i].runs);
    }
    const Integer layers = Integer{blocks[i].runs} * blocks[i].layers_per_run;
    const Integer weights = held.shared.weights + held.experts.weights;
    result.largest_saved = std::max(result.largest_saved, rounded_up(block.saved, layers));
    result.largest_core = std::max(result.largest_core, rounded_up(block.saved_core, layers));
    result.largest_weights = std::max(result.largest_weights, rounded_up(weights, layers));
  }
  return result;
}

}  // namespace headroom
