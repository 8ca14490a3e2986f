// Summaries of a simulation. Internal to src/serve.
#pragma once

#include <optional>
#include <vector>

#include "replica.h"

namespace headroom::detail {

/// Rank of a percentile among `count` sorted values, from 1 on; 0 of none.
[[nodiscard]] std::int64_t nearest_rank(double percentile, std::int64_t count);

/// Seconds between the tokens of an answer; empty if it has one token.
[[nodiscard]] std::optional<double> seconds_per_token(const Progress& answered);

/// Mean and percentiles by the nearest rank; `seconds` must not be empty.
[[nodiscard]] LatencySummary summarize_latency(std::vector<double> seconds, double percentile);

/// Figures of answered requests and of the replicas that answered them, those that only prefill
/// first. Latencies leave out the first `warm_up` requests.
[[nodiscard]] ServeFigures figures_of(const std::vector<Progress>& progress,
                                      const std::vector<Replica>& replicas, std::int64_t warm_up,
                                      double percentile);

}  // namespace headroom::detail
