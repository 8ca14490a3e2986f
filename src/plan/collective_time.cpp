#include "collective_time.h"

#include <algorithm>

namespace headroom::detail {
namespace {

struct Link {
  std::int64_t ranks;
  double bytes_per_s;
};

Link link_of(RankGroup group, const RankSpeed& speed) {
  switch (group) {
    case RankGroup::context:
      return {speed.context_ranks, speed.context_bytes_per_s};
    case RankGroup::expert:
      return {speed.expert_ranks, speed.expert_bytes_per_s};
    case RankGroup::tensor:
    case RankGroup::pipeline:
    case RankGroup::data:
      break;
  }
  return {speed.tensor_ranks, speed.tensor_bytes_per_s};
}

/// vLLM's all-reduce among 2, 4 and 8 H100 takes 9 to 12 µs for up to 128 KiB, and reaches 210 to
/// 240 of NVLink's 450 GB/s on the wire up to 4 MiB (github.com/sgl-project/sglang, pull request
/// 2904, which times float32 by sgl-kernel/tests/test_trt_reduce.py).
constexpr double kEngineLatency = 10e-6;
constexpr double kEngineShare = 0.5;
/// Of vLLM's buffer (max_size of its CustomAllreduce); NCCL reduces more.
constexpr double kMostEngineBytes = 8 << 20;

}  // namespace

double collective_wire_bytes(CollectiveKind kind, double bytes, RankGroup group,
                             const RankSpeed& speed) {
  return wire_bytes(kind, bytes, link_of(group, speed).ranks);
}

double collective_seconds(CollectiveKind kind, double bytes, RankGroup group,
                          const RankSpeed& speed) {
  if (kind == CollectiveKind::none) return 0;
  const Link link = link_of(group, speed);
  const double wire = collective_wire_bytes(kind, bytes, group, speed);
  const double by_nccl =
      wire / link.bytes_per_s +
      collective_latency(link.ranks, speed.collective_latency_s, speed.collective_step_s);
  const bool has_engine = kind == CollectiveKind::all_reduce && group == RankGroup::tensor &&
                          speed.engine_bytes_per_s > 0 && bytes <= kMostEngineBytes;
  if (!has_engine) return by_nccl;
  return std::min(by_nccl, kEngineLatency + wire / speed.engine_bytes_per_s);
}

double collective_latency(std::int64_t ranks, double fixed_s, double step_s) noexcept {
  return fixed_s + step_s * collective_steps(ranks);
}

double engine_all_reduce_rate(Purpose purpose, const Interconnect& link,
                              std::int64_t ranks) noexcept {
  const bool is_inside = ranks <= link.devices_per_node;
  return purpose == Purpose::serve && is_inside ? kEngineShare * link.intra_node_bytes_per_s : 0;
}

}  // namespace headroom::detail
