// Requests that are answered later than the targets, as a simulation runs. Internal to src/serve.
#pragma once

#include <optional>
#include <vector>

#include "replica.h"

namespace headroom::detail {

/// Counts the requests that are later than each target. A percentile allows so many of them; with
/// one more, it misses its target whenever the others are answered.
class LateRequests {
 public:
  /// `progress`, by request, must outlive it. Leaves out the first `warm_up` requests.
  LateRequests(const std::vector<Progress>& progress, const LatencyTargets& targets,
               std::int64_t warm_up);

  /// Counts an answered request.
  void add(std::size_t request);
  /// True if a target is missed. After all requests: the verdict of their figures.
  [[nodiscard]] bool missed() const;

 private:
  struct Target {
    std::optional<double> seconds;
    std::int64_t allowed = 0;
    std::int64_t late = 0;

    void add(double latency_s);
    [[nodiscard]] bool missed() const { return late > allowed; }
  };

  const std::vector<Progress>* progress_;
  std::size_t warm_up_;
  Target ttft_;
  Target tpot_;
  Target end_to_end_;
};

}  // namespace headroom::detail
