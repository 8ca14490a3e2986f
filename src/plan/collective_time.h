// Seconds and bytes of collectives. Internal to src/plan.
#pragma once

#include "headroom/plan.h"
#include "rank_program.h"

namespace headroom::detail {

/// Latency of one collective among `ranks`.
[[nodiscard]] double collective_latency(std::int64_t ranks, double fixed_s, double step_s) noexcept;
/// Seconds of one collective. All-reduces of up to 8 MiB among the tensor ranks take the engine's
/// own kernel if that is faster.
[[nodiscard]] double collective_seconds(const CollectiveMessage& message, const RankSpeed& speed);
/// Bytes that a rank sends for one collective; of an exchange with experts also those that it
/// forwards.
[[nodiscard]] double collective_wire_bytes(const CollectiveMessage& message,
                                           const RankSpeed& speed);

/// Bytes per second on the wire of a serving engine's own all-reduce among `ranks` devices; 0 where
/// engines call the communication library: in training, between nodes, over links that are assumed
/// or join no GPUs, among more than two devices on PCIe, and among other than 2, 4, 6 or 8 (vLLM,
/// vllm/distributed/device_communicators/custom_all_reduce.py).
[[nodiscard]] double engine_all_reduce_rate(Purpose purpose, const DeviceRates& rates,
                                            std::int64_t ranks) noexcept;

}  // namespace headroom::detail
