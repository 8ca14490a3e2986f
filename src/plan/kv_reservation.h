// KV-cache of a rank by an engine's policy. Internal to src/plan.
#pragma once

#include <vector>

#include "headroom/storage.h"

namespace headroom::detail {

/// Bytes of the whole model's KV-cache by kind of layer of a decode graph.
struct KvReservation {
  std::vector<Integer> counted;   ///< as the graph's polynomials count them
  std::vector<Integer> reserved;  ///< as the policy does, with the stored types
};

/// Returns whether `request` needs more than the graph's polynomials.
[[nodiscard]] bool needs_reservation(const KvCacheRequest& request) noexcept;

/// Counts the reservation of `graph`, a decode graph of `spec` with `kinds` kinds of layers. A
/// capacity or slots below the workload's tokens or batch are raised to them.
[[nodiscard]] KvReservation kv_reservation(const ModelSpec& spec, const Graph& graph,
                                           const Workload& workload, KvCacheRequest request,
                                           std::size_t kinds);

/// Bytes of one rank that the graph counts as `counted`: a rank shards each policy's cache as it
/// shards the graph's, by heads and layers.
[[nodiscard]] std::vector<Integer> reserved_on_rank(const KvReservation& whole,
                                                    const std::vector<Integer>& counted);

}  // namespace headroom::detail
