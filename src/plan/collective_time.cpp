#include "collective_time.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace headroom::detail {
namespace {

struct Link {
  GroupSpan span;
  double bytes_per_s;
};

Link link_of(RankGroup group, const RankSpeed& speed) {
  switch (group) {
    case RankGroup::context:
      return {{speed.context_ranks, speed.context_nodes}, speed.context_bytes_per_s};
    case RankGroup::tensor:
    case RankGroup::expert:  // exchange_seconds
    case RankGroup::pipeline:
    case RankGroup::data:
      break;
  }
  return {{speed.tensor_ranks, speed.tensor_nodes}, speed.tensor_bytes_per_s};
}

/// vLLM's all-reduce among 2, 4 and 8 H100 takes 9 to 12 µs for up to 128 KiB (github.com/
/// sgl-project/sglang, pull request 2904, which times float32 by
/// sgl-kernel/tests/test_trt_reduce.py): ranks wait for each other. A kernel alone, in a CUDA
/// graph, takes 2 to 5 (docs/device-time.md).
constexpr double kEngineLatency = 10e-6;
/// Of the link, and of a second wait among the ranks: single kernels on A100, H100, H200 and
/// Blackwell (tests/data/kernels).
constexpr double kEngineShare = 0.69;
constexpr double kEngineSecondWait = 4e-6;
/// Of vLLM's buffer (max_size of its CustomAllreduce); NCCL reduces more.
constexpr double kMostEngineBytes = 8 << 20;

/// Ranks read the whole buffer of every other (one-shot) or reduce a part each, which the others
/// then read (two-shot), whichever is faster (vLLM, csrc/custom_all_reduce.cuh).
double engine_seconds(const CollectiveMessage& message, const RankSpeed& speed) {
  const auto others = static_cast<double>(speed.tensor_ranks - 1);
  const double one_shot = others * message.bytes / speed.engine_bytes_per_s;
  const double two_shot = speed.fixed_factor * kEngineSecondWait +
                          collective_wire_bytes(message, speed) / speed.engine_bytes_per_s;
  return speed.fixed_factor * kEngineLatency + std::min(one_shot, two_shot);
}

/// Links over which every GPU reaches every other.
constexpr std::array<std::string_view, 2> kMeshes{"NVLink", "Infinity Fabric"};
constexpr std::array<std::string_view, 1> kBuses{"PCIe"};

/// NVLink SHARP reduces 275 GB/s of a buffer among 8 H100 with 450 GB/s (github.com/NVIDIA/
/// nccl-tests, issue 212), and 123 among 8 H800 with 200 (github.com/NVIDIA/nccl, issue 1374).
/// This is of the 0.80 that links reach (efficiency.cpp); of NVLink 5, it is assumed.
constexpr double kSwitchShare = 0.61 / 0.80;
constexpr std::array<std::string_view, 2> kReducingSwitches{"NVLink 4", "NVLink 5"};
/// Fewer devices of these links are joined by bridges.
constexpr std::int64_t kSwitchedDevices = 8;

bool is_among(std::string_view link, std::span<const std::string_view> kinds) {
  return std::ranges::any_of(kinds, [&](std::string_view kind) { return link.starts_with(kind); });
}

bool has_engine_kernel(const Interconnect& link, std::int64_t ranks) {
  constexpr std::array<std::int64_t, 4> kGroups{2, 4, 6, 8};
  if (is_among(link.intra_node_kind, kBuses)) return ranks == 2;
  return is_among(link.intra_node_kind, kMeshes) && std::ranges::count(kGroups, ranks) > 0;
}

/// Bytes that a rank sends over each kind of link.
struct ExchangedBytes {
  double inside = 0;
  double outside = 0;
  [[nodiscard]] double total() const noexcept { return inside + outside; }
};

ExchangedBytes exchanged_bytes(const CollectiveMessage& message, const ExpertLinks& links) {
  const TokenRouting& routing = *message.routing;
  const TokenCopies copies = copies_of_token(routing, links);
  const double of_copy = message.bytes / static_cast<double>(routing.per_token);
  return {of_copy * copies.inside, of_copy * copies.outside};
}

/// Both kinds of links carry their bytes at once, and all copies travel in one step.
double exchange_seconds(const CollectiveMessage& message, const RankSpeed& speed) {
  const ExpertLinks& links = speed.expert;
  const ExchangedBytes sent = exchanged_bytes(message, links);
  const double outside = sent.outside > 0 ? sent.outside / links.outside_bytes_per_s : 0;
  return std::max(sent.inside / links.inside_bytes_per_s, outside) + speed.collective_latency_s +
         speed.collective_step_s;
}

}  // namespace

double collective_wire_bytes(const CollectiveMessage& message, const RankSpeed& speed) {
  if (message.routing) return exchanged_bytes(message, speed.expert).total();
  return wire_bytes(message.kind, message.bytes, link_of(message.group, speed).span.ranks);
}

double collective_seconds(const CollectiveMessage& message, const RankSpeed& speed) {
  if (message.kind == CollectiveKind::none) return 0;
  if (message.routing) return exchange_seconds(message, speed);
  const Link link = link_of(message.group, speed);
  const double wire = collective_wire_bytes(message, speed);
  double transfer_s = wire / link.bytes_per_s;
  const bool in_tensor_group =
      message.kind == CollectiveKind::all_reduce && message.group == RankGroup::tensor;
  if (in_tensor_group && speed.switch_bytes_per_s > 0) {
    transfer_s = std::min(transfer_s, message.bytes / speed.switch_bytes_per_s);
  }
  const double by_nccl = transfer_s + collective_latency(link.span, {speed.collective_latency_s,
                                                                     speed.collective_step_s,
                                                                     speed.collective_node_step_s});
  const bool has_engine =
      in_tensor_group && speed.engine_bytes_per_s > 0 && message.bytes <= kMostEngineBytes;
  if (!has_engine) return by_nccl;
  return std::min(by_nccl, engine_seconds(message, speed));
}

/// With chunks of g in the GEMM and c on the link, the end is max(τ·g, g + (τ − 1)·c) in place of
/// τ·g + (τ − 1)·c.
double hidden_by_gemms(double seconds, double gemm_s, std::int64_t ranks) noexcept {
  const auto chunks = static_cast<double>(ranks);
  return std::min(seconds, gemm_s * (chunks - 1) / chunks);
}

GroupSpan span_of(std::int64_t ranks, std::int64_t apart, std::int64_t devices_per_node) noexcept {
  const std::int64_t of_node = std::max<std::int64_t>(1, devices_per_node / apart);
  return {ranks, (ranks + of_node - 1) / of_node};
}

CollectiveLatencies latencies_of(const DeviceRates& rates) noexcept {
  return {rates.collective_latency_s, rates.collective_step_s, rates.collective_node_step_s};
}

double collective_latency(const GroupSpan& span, const CollectiveLatencies& latencies) noexcept {
  return latencies.fixed_s + latencies.step_s * collective_steps(span.ranks) +
         latencies.node_step_s * collective_steps(span.nodes);
}

double switch_all_reduce_rate(Purpose purpose, const DeviceRates& rates,
                              std::int64_t ranks) noexcept {
  const Interconnect& link = rates.link;
  const bool reduces = purpose == Purpose::serve && !rates.link_is_assumed &&
                       link.devices_per_node >= kSwitchedDevices &&
                       ranks <= link.devices_per_node &&
                       is_among(link.intra_node_kind, kReducingSwitches);
  return reduces ? kSwitchShare * rates.efficiency.network * link.intra_node_bytes_per_s : 0;
}

double engine_all_reduce_rate(Purpose purpose, const DeviceRates& rates,
                              std::int64_t ranks) noexcept {
  const Interconnect& link = rates.link;
  const bool calls_library = purpose == Purpose::train || rates.link_is_assumed ||
                             ranks > link.devices_per_node || !has_engine_kernel(link, ranks);
  return calls_library ? 0 : kEngineShare * link.intra_node_bytes_per_s;
}

}  // namespace headroom::detail
