// The graph that a rank runs, or the whole model's without a part. Internal to src/predict.
#pragma once

#include <utility>

#include "headroom/predict.h"

namespace headroom::detail {

[[nodiscard]] inline Graph graph_of(Graph whole, const RankPart* part) {
  return part == nullptr ? std::move(whole) : part->shard(whole);
}

[[nodiscard]] inline Bindings bindings_of_part(const Workload& workload, const Graph& graph,
                                               const RankPart* part) {
  return part == nullptr ? bindings_of(workload, graph) : part->bindings(workload, graph);
}

/// As predict_held_weight_bytes, of a rank's part.
[[nodiscard]] Integer held_weight_bytes(const ModelSpec& spec, const Workload& workload,
                                        const TimeRequest& request, const RankPart* part);

/// The most bytes of weights at once while a run loads them: each as it is read and as it is
/// packed, the largest first.
[[nodiscard]] Integer load_peak_bytes(const ModelSpec& spec, const Workload& workload,
                                      const TimeRequest& request);

}  // namespace headroom::detail
