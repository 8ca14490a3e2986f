// Rates of a rank under a plan.
#include <algorithm>

#include "collective_time.h"
#include "planner.h"

namespace headroom {
namespace {

/// Values with one float32 scale in a dispatched token (arXiv 2412.19437, section 3.3.2).
constexpr double kDispatchTile = 128;

/// The type in which tokens travel to their experts, if not the activations': experts that multiply
/// in float8 get what they multiply (DeepEP, docs/legacy.md: "FP8 dispatching and BF16 combining").
std::optional<DType> dispatch_type(const PlanQuery& query) {
  if (query.purpose == Purpose::train) return info(query.states.recipe).dispatch;
  if (query.arithmetic == DType::float8) return DType::float8;
  return std::nullopt;
}

/// Bytes of a token sent to its experts over its bytes in the activations' type.
double dispatch_share(const PlanQuery& query) {
  const std::optional<DType> type = dispatch_type(query);
  if (!type) return 1;
  const double scale = static_cast<double>(bytes_of(DType::float32)) / kDispatchTile;
  return (static_cast<double>(bytes_of(*type)) + scale) /
         static_cast<double>(bytes_of(query.dtype));
}

/// That of the experts of one kind of layers. A rank holds at least one of them.
double most_imbalance(const ExpertsSpec& experts, std::int64_t ranks) {
  const std::int64_t held = std::max<std::int64_t>(1, experts.num_experts / ranks);
  const std::int64_t chosen = experts.num_experts_per_tok;
  return static_cast<double>(ranks * std::min(chosen, held)) / static_cast<double>(chosen);
}

/// Processors that the kernels of an exchange by node take from computation, of 132 on H800 (arXiv
/// 2412.19437, section 3.2.2). Direct exchanges take none (DeepEP, docs/legacy.md).
constexpr double kExchangeProcessors = 20;

/// One multiprocessor that has the memory nearly to itself reads up to three times its share of the
/// bandwidth: NIM of 2024 took 8 µs on H100 and 12 µs on A100 for 1,000 keys of a head in 16 bits,
/// with one head on a device as with 80 (docs/device-time.md). In 8 bits a key takes as long, since
/// it is converted.
double head_elements_per_s(const detail::RankSpeed& speed) {
  constexpr double kShares = 3;
  constexpr double kElementBytes = 2;
  if (speed.processors == 0) return 0;
  return kShares * speed.cache_bytes_per_s /
         (kElementBytes * static_cast<double>(speed.processors));
}

/// The share of arithmetic that computation keeps while another batch's tokens travel.
double computing_share(const ParallelPlan& plan, std::int64_t processors) {
  const auto all = static_cast<double>(processors);
  const bool shares = plan.batch_overlap == BatchOverlap::two_batches &&
                      plan.expert_exchange == ExpertExchange::by_node && all > kExchangeProcessors;
  return shares ? 1 - kExchangeProcessors / all : 1;
}

}  // namespace

double most_expert_imbalance(const ModelSpec& spec, std::int64_t ranks) {
  const StackSpec& stack = spec.main_stack();
  std::optional<double> most;
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const auto& experts = stack.ffn_of(variant).experts;
    if (!experts) continue;
    most = std::min(most.value_or(static_cast<double>(ranks)), most_imbalance(*experts, ranks));
  }
  return most.value_or(1);
}

double Planner::Implementation::rate_among(std::int64_t ranks, std::int64_t apart) const noexcept {
  const Interconnect& link = rates.link;
  const double inside = rates.efficiency.network * link.intra_node_bytes_per_s;
  if (ranks * apart <= link.devices_per_node) return inside;
  // NCCL makes as many rings as there are ports, each of which leaves the node at another rank; the
  // node with the fewest ranks bounds them.
  const std::int64_t of_node = std::max<std::int64_t>(1, link.devices_per_node / apart);
  const std::int64_t rest = ranks % of_node;
  const std::int64_t ports = rest == 0 ? of_node : rest;
  const double outside =
      rates.port_fraction * static_cast<double>(ports) * *link.inter_node_bytes_per_s;
  return ports == 1 ? outside : std::min(inside, outside);
}

double Planner::Implementation::send_rate(std::int64_t apart) const noexcept {
  const Interconnect& link = rates.link;
  const bool inside = 2 * apart <= link.devices_per_node;
  return rates.efficiency.network *
         (inside ? link.intra_node_bytes_per_s : *link.inter_node_bytes_per_s);
}

detail::ExpertLinks Planner::Implementation::expert_links(const ParallelPlan& plan) const noexcept {
  // Neighbours in the group are `tensor` devices apart, unless it has the tensor ranks as well.
  const std::int64_t apart = plan.expert_tensor == ExpertTensor::whole ? 1 : plan.tensor;
  const std::int64_t of_node = std::max<std::int64_t>(1, rates.link.devices_per_node / apart);
  detail::ExpertLinks links;
  links.ranks = plan.expert;
  links.ranks_of_node = std::min(plan.expert, of_node);
  links.exchange = plan.expert_exchange;
  links.inside_bytes_per_s = rates.efficiency.network * rates.link.intra_node_bytes_per_s;
  links.outside_bytes_per_s = rates.link.inter_node_bytes_per_s
                                  ? rates.port_fraction * *rates.link.inter_node_bytes_per_s
                                  : links.inside_bytes_per_s;
  return links;
}

detail::RankSpeed Planner::Implementation::speed_of(const ParallelPlan& plan) const {
  detail::RankSpeed speed;
  const double matrix = rates.efficiency.matrix * computing_share(plan, rates.processors);
  speed.flops_per_s = rates.flops_per_s * matrix;
  speed.peak_flops_per_s = rates.flops_per_s;
  speed.layer_gemm_peak_flops_per_s = rates.layer_gemm_flops_per_s.value_or(rates.flops_per_s);
  speed.processors = rates.processors;
  speed.layer_gemm_processors = rates.layer_gemm_processors;
  speed.memory_bytes_per_s = rates.memory_bytes_per_s * rates.efficiency.memory;
  speed.cache_bytes_per_s = speed.memory_bytes_per_s * rates.efficiency.cache;
  if (query.decode_attention == DecodeAttention::whole)
    speed.head_elements_per_s = head_elements_per_s(speed);
  speed.fixed_factor = rates.efficiency.fixed;
  speed.whole_memory_bytes_per_s = rates.memory_bytes_per_s;
  speed.gradient_bytes = static_cast<double>(info(query.states.recipe).gradient_bytes);
  speed.saved_inputs = info(query.states.recipe).saved_inputs;
  speed.kernel_s = rates.kernel_s;
  speed.layer_gemm_kernel_s = rates.layer_gemm_kernel_s;
  speed.collective_latency_s = rates.collective_latency_s;
  speed.collective_step_s = rates.collective_step_s;
  speed.collective_node_step_s = rates.collective_node_step_s;
  speed.tensor_ranks = plan.tensor;
  speed.tensor_nodes = detail::span_of(plan.tensor, 1, rates.link.devices_per_node).nodes;
  speed.tensor_bytes_per_s = rate_among(plan.tensor, 1);
  speed.engine_bytes_per_s = detail::engine_all_reduce_rate(query.purpose, rates, plan.tensor);
  speed.switch_bytes_per_s = detail::switch_all_reduce_rate(query.purpose, rates, plan.tensor);
  speed.context_ranks = plan.context;
  speed.context_nodes =
      detail::span_of(plan.context, plan.tensor, rates.link.devices_per_node).nodes;
  speed.context_bytes_per_s = rate_among(plan.context, plan.tensor);
  speed.expert = expert_links(plan);
  speed.dispatch_share = dispatch_share(query);
  if (plan.expert > 1) {
    speed.expert_load = std::min(query.expert_imbalance, most_expert_imbalance(spec, plan.expert));
  }
  speed.layer_gemm_flops_per_s = speed.layer_gemm_peak_flops_per_s * matrix;
  return speed;
}

}  // namespace headroom
