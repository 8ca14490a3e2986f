// Seconds and bytes of collectives. Internal to src/plan.
#pragma once

#include "headroom/plan.h"
#include "rank_program.h"

namespace headroom::detail {

/// Ranks of a group, and the nodes that they lie in.
struct GroupSpan {
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
};
/// That of ranks `apart` devices from each other, with `devices_per_node`.
[[nodiscard]] GroupSpan span_of(std::int64_t ranks, std::int64_t apart,
                                std::int64_t devices_per_node) noexcept;

/// Latencies of a collective: of one, of each of its steps from rank to rank, and of each step
/// between nodes, besides.
struct CollectiveLatencies {
  double fixed_s = 0;
  double step_s = 0;
  double node_step_s = 0;
};
[[nodiscard]] CollectiveLatencies latencies_of(const DeviceRates& rates) noexcept;
/// Latency of one collective among the ranks of `span`.
[[nodiscard]] double collective_latency(const GroupSpan& span,
                                        const CollectiveLatencies& latencies) noexcept;
/// Seconds of one collective. All-reduces of up to 8 MiB among the tensor ranks take the engine's
/// own kernel if that is faster.
[[nodiscard]] double collective_seconds(const CollectiveMessage& message, const RankSpeed& speed);
/// Fraction of the ring's hideable time that runs hide; chunked GEMMs beside copies are slower.
/// Chosen with the steps of torchtitan and Megatron-Bridge at hand (reports/published.md);
/// torchtitan's alone show 0.24 to 0.61.
inline constexpr double kHiddenShare = 0.5;
/// The part of a collective's `seconds` among `ranks` that GEMMs of `gemm_s` hide when both run in
/// one chunk per rank: a rank has a chunk of its own, so that one chunk's GEMM runs alone while
/// each other travels beside one.
[[nodiscard]] double hidden_by_gemms(double seconds, double gemm_s, std::int64_t ranks) noexcept;
/// Bytes that a rank sends for one collective; of an exchange with experts also those that it
/// forwards.
[[nodiscard]] double collective_wire_bytes(const CollectiveMessage& message,
                                           const RankSpeed& speed);

/// Bytes of a buffer per second that switches of NVLink 4 and 5 reduce among `ranks` devices of a
/// serving node (NVLink SHARP, by NCCL); 0 on other links.
[[nodiscard]] double switch_all_reduce_rate(Purpose purpose, const DeviceRates& rates,
                                            std::int64_t ranks) noexcept;

/// Bytes per second on the wire of a serving engine's own all-reduce among `ranks` devices; 0 where
/// engines call the communication library: in training, between nodes, over links that are assumed
/// or join no GPUs, among more than two devices on PCIe, and among other than 2, 4, 6 or 8 (vLLM,
/// vllm/distributed/device_communicators/custom_all_reduce.py).
[[nodiscard]] double engine_all_reduce_rate(Purpose purpose, const DeviceRates& rates,
                                            std::int64_t ranks) noexcept;

}  // namespace headroom::detail
