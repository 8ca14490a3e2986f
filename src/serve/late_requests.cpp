#include "late_requests.h"

#include <algorithm>
#include <span>

#include "serve_figures.h"

namespace headroom::detail {

LateRequests::LateRequests(const std::vector<Progress>& progress, const LatencyTargets& targets,
                           std::int64_t warm_up)
    : progress_(&progress), warm_up_(static_cast<std::size_t>(warm_up)) {
  const auto counted = std::span(progress).subspan(warm_up_);
  const auto with_tpot = std::ranges::count_if(
      counted, [](const Progress& one) { return one.request.output_tokens > 1; });
  const auto target = [&](const std::optional<double>& seconds, std::int64_t requests) {
    return Target{seconds, requests - nearest_rank(targets.percentile, requests)};
  };
  ttft_ = target(targets.ttft_s, std::ssize(counted));
  tpot_ = target(targets.tpot_s, with_tpot);
  end_to_end_ = target(targets.end_to_end_s, std::ssize(counted));
}

void LateRequests::Target::add(double latency_s) {
  if (seconds && latency_s > *seconds) ++late;
}

void LateRequests::add(std::size_t request) {
  if (request < warm_up_) return;
  const Progress& one = (*progress_)[request];
  ttft_.add(one.first_token_s - one.request.arrival_s);
  end_to_end_.add(one.end_s - one.request.arrival_s);
  if (const auto seconds = seconds_per_token(one)) tpot_.add(*seconds);
}

bool LateRequests::missed() const {
  return ttft_.missed() || tpot_.missed() || end_to_end_.missed();
}

}  // namespace headroom::detail
