// Rates of a rank under a plan.
#include "collective_time.h"
#include "planner.h"

namespace headroom {
namespace {

/// Values with one float32 scale in a dispatched token (arXiv 2412.19437, section 3.3.2).
constexpr double kDispatchTile = 128;

/// Bytes of a token sent to its experts over its bytes in the activations' type.
double dispatch_share(const PlanQuery& query) {
  const bool trains = query.purpose == Purpose::train;
  const std::optional<DType> type =
      trains ? info(query.states.recipe).dispatch : std::optional<DType>{};
  if (!type) return 1;
  const double scale = static_cast<double>(bytes_of(DType::float32)) / kDispatchTile;
  return (static_cast<double>(bytes_of(*type)) + scale) /
         static_cast<double>(bytes_of(query.dtype));
}

}  // namespace

double Planner::Implementation::rate_among(std::int64_t span) const noexcept {
  const bool inside = span <= rates.link.devices_per_node;
  return rates.efficiency.network *
         (inside ? rates.link.intra_node_bytes_per_s : *rates.link.inter_node_bytes_per_s);
}

detail::RankSpeed Planner::Implementation::speed_of(const ParallelPlan& plan) const {
  detail::RankSpeed speed;
  speed.flops_per_s = rates.flops_per_s * rates.efficiency.matrix;
  speed.processors = rates.processors;
  speed.layer_gemm_processors = rates.layer_gemm_processors;
  speed.memory_bytes_per_s = rates.memory_bytes_per_s * rates.efficiency.memory;
  speed.whole_memory_bytes_per_s = rates.memory_bytes_per_s;
  speed.gradient_bytes = static_cast<double>(info(query.states.recipe).gradient_bytes);
  speed.kernel_s = rates.kernel_s;
  speed.collective_latency_s = rates.collective_latency_s;
  speed.collective_step_s = rates.collective_step_s;
  speed.tensor_ranks = plan.tensor;
  speed.tensor_bytes_per_s = rate_among(plan.tensor);
  speed.engine_bytes_per_s = detail::engine_all_reduce_rate(query.purpose, rates, plan.tensor);
  speed.context_ranks = plan.context;
  speed.context_bytes_per_s = rate_among(plan.tensor * plan.context);
  speed.expert_ranks = plan.expert;
  const bool whole_experts = plan.expert_tensor == ExpertTensor::whole;
  speed.expert_bytes_per_s = rate_among(whole_experts ? plan.expert : plan.tensor * plan.expert);
  speed.dispatch_share = dispatch_share(query);
  speed.layer_gemm_flops_per_s =
      rates.layer_gemm_flops_per_s.value_or(rates.flops_per_s) * rates.efficiency.matrix;
  return speed;
}

}  // namespace headroom
