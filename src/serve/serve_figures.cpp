#include "serve_figures.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

namespace headroom {

std::string_view name_of(Admission admission) noexcept {
  switch (admission) {
    case Admission::request:
      return "request";
    case Admission::prompt:
      break;
  }
  return "prompt";
}

SchedulerLimits default_limits(const DeviceRates& rates) {
  constexpr Integer kLarge = Integer{70} << 30U;
  SchedulerLimits limits;
  const bool is_a100 = rates.name.find("a100") != std::string::npos;
  if (rates.memory_bytes < kLarge || is_a100) return limits;
  limits.max_sequences = 1024;
  limits.batched_tokens = 8192;
  return limits;
}

std::string_view name_of(LatencyKind latency) noexcept {
  switch (latency) {
    case LatencyKind::ttft:
      return "ttft";
    case LatencyKind::tpot:
      return "tpot";
    case LatencyKind::end_to_end:
      break;
  }
  return "end_to_end";
}

std::string_view name_of(TargetSteps steps) noexcept {
  switch (steps) {
    case TargetSteps::slowest:
      return "slowest";
    case TargetSteps::predicted:
      break;
  }
  return "predicted";
}

std::string_view name_of(RunsThatMeet runs) noexcept {
  switch (runs) {
    case RunsThatMeet::none:
      return "no run";
    case RunsThatMeet::some:
      return "some runs";
    case RunsThatMeet::all:
      break;
  }
  return "all runs";
}

std::optional<RunsThatMeet> runs_that_meet(const ServedPlan& plan, const LatencyTargets& targets) {
  if (targets.empty() || !plan.fastest || !plan.slowest) return std::nullopt;
  if (verdict_of(*plan.slowest, targets).met()) return RunsThatMeet::all;
  return verdict_of(*plan.fastest, targets).met() ? RunsThatMeet::some : RunsThatMeet::none;
}

bool queue_grows(const ServeFigures& figures) {
  constexpr double kServedFraction = 0.9;
  return figures.answers_per_s < kServedFraction * figures.arrivals_per_s;
}

TargetVerdict verdict_of(const ServeFigures& figures, const LatencyTargets& targets) {
  const auto keeps = [](const LatencySummary& latency, const std::optional<double>& limit) {
    return !limit || latency.at_target <= *limit;
  };
  return {keeps(figures.ttft, targets.ttft_s),
          !figures.tpot || keeps(*figures.tpot, targets.tpot_s),
          keeps(figures.end_to_end, targets.end_to_end_s)};
}

std::optional<TightestTarget> tightest_target(const ServeFigures& figures,
                                              const LatencyTargets& targets) {
  std::optional<TightestTarget> tightest;
  const auto add = [&](LatencyKind kind, const LatencySummary& latency,
                       const std::optional<double>& target) {
    if (!target) return;
    const double ratio = latency.at_target / *target;
    if (!tightest || ratio > tightest->ratio) tightest = TightestTarget{kind, ratio};
  };
  add(LatencyKind::ttft, figures.ttft, targets.ttft_s);
  if (figures.tpot) add(LatencyKind::tpot, *figures.tpot, targets.tpot_s);
  add(LatencyKind::end_to_end, figures.end_to_end, targets.end_to_end_s);
  return tightest;
}

namespace detail {
namespace {

/// Seconds between the tokens of each request that has two.
std::vector<double> times_per_token(std::span<const Progress> progress) {
  std::vector<double> seconds;
  for (const Progress& one : progress) {
    if (const auto between = seconds_per_token(one)) seconds.push_back(*between);
  }
  return seconds;
}

void add_latencies(std::span<const Progress> progress, double percentile, ServeFigures& figures) {
  std::vector<double> first;
  std::vector<double> whole;
  for (const Progress& one : progress) {
    first.push_back(one.first_token_s - one.request.arrival_s);
    whole.push_back(one.end_s - one.request.arrival_s);
  }
  figures.ttft = summarize_latency(std::move(first), percentile);
  figures.end_to_end = summarize_latency(std::move(whole), percentile);
  std::vector<double> per_token = times_per_token(progress);
  if (!per_token.empty()) figures.tpot = summarize_latency(std::move(per_token), percentile);
}

void add_throughput(const std::vector<Progress>& progress, ServeFigures& figures) {
  const auto arrival_of = [](const Progress& one) { return one.request.arrival_s; };
  double input = 0;
  double output = 0;
  for (const Progress& one : progress) {
    input += static_cast<double>(one.request.input_tokens);
    output += static_cast<double>(one.request.output_tokens);
  }
  const auto [first, last] = std::ranges::minmax_element(progress, {}, arrival_of);
  const double begin_s = arrival_of(*first);
  const Progress& last_answered = *std::ranges::max_element(progress, {}, &Progress::end_s);
  const double end_s = last_answered.end_s;
  figures.requests = static_cast<std::int64_t>(progress.size());
  figures.duration_s = end_s - begin_s;
  figures.requests_per_s = static_cast<double>(progress.size()) / figures.duration_s;
  figures.input_tokens_per_s = input / figures.duration_s;
  figures.output_tokens_per_s = output / figures.duration_s;
  const double arrivals_s = arrival_of(*last) - begin_s;
  if (arrivals_s <= 0) return;
  const auto seconds_of = [](const Progress& one) { return one.end_s - one.request.arrival_s; };
  const double fastest_s = seconds_of(*std::ranges::min_element(progress, {}, seconds_of));
  const std::vector<double> per_token = times_per_token(progress);
  const double least_s = per_token.empty() ? 0 : std::ranges::min(per_token);
  const double last_tokens_s = static_cast<double>(last_answered.generated - 1) * least_s;
  const auto later = static_cast<double>(progress.size() - 1);
  figures.arrivals_per_s = later / arrivals_s;
  figures.answers_per_s = later / (figures.duration_s - std::max(fastest_s, last_tokens_s));
}

void raise(double& peak, double value) { peak = std::max(peak, value); }

void raise(std::int64_t& peak, double count) {
  peak = std::max(peak, static_cast<std::int64_t>(count));
}

ReplicaLoad load_of(std::span<const Replica> replicas, double duration_s) {
  const double all_s = duration_s * static_cast<double>(replicas.size());
  ReplicaLoad load;
  for (const Replica& replica : replicas) {
    const Occupation& occupation = replica.occupation();
    load.busy += occupation.busy_s / all_s;
    load.mean_running += occupation.running.integral() / all_s;
    load.mean_waiting += occupation.waiting.integral() / all_s;
    load.mean_cache += occupation.cache.integral() / all_s;
    raise(load.peak_running, occupation.running.peak());
    raise(load.peak_waiting, occupation.waiting.peak());
    raise(load.peak_cache, occupation.cache.peak());
  }
  load.busy = std::min(load.busy, 1.0);  // the sum of many steps is rounded
  return load;
}

void add_loads(std::span<const Replica> replicas, ServeFigures& figures) {
  figures.load = load_of(replicas, figures.duration_s);
  const auto prefilling =
      static_cast<std::size_t>(std::ranges::count(replicas, ReplicaRole::prefill, &Replica::role));
  if (prefilling == 0) return;
  figures.role_loads = {load_of(replicas.first(prefilling), figures.duration_s),
                        load_of(replicas.subspan(prefilling), figures.duration_s)};
}

void add_steps(std::span<const Replica> replicas, ServeFigures& figures) {
  std::int64_t decode_steps = 0;
  std::int64_t decoded_tokens = 0;
  double busy_s = 0;
  double compute_bound_s = 0;
  for (const Replica& replica : replicas) {
    const Occupation& occupation = replica.occupation();
    figures.steps += occupation.steps;
    figures.preemptions += occupation.preemptions;
    decode_steps += occupation.decode_steps;
    decoded_tokens += occupation.decoded_tokens;
    busy_s += occupation.busy_s;
    compute_bound_s += occupation.compute_bound_s;
  }
  figures.compute_share = compute_bound_s / busy_s;
  if (decode_steps > 0) {
    figures.tokens_per_step =
        static_cast<double>(decoded_tokens) / static_cast<double>(decode_steps);
  }
}

}  // namespace

std::int64_t nearest_rank(double percentile, std::int64_t count) {
  const auto rank = std::ceil(percentile / 100 * static_cast<double>(count));
  return std::clamp(static_cast<std::int64_t>(rank), std::min<std::int64_t>(1, count), count);
}

std::optional<double> seconds_per_token(const Progress& answered) {
  if (answered.generated < 2) return std::nullopt;
  return (answered.end_s - answered.first_token_s) / static_cast<double>(answered.generated - 1);
}

LatencySummary summarize_latency(std::vector<double> seconds, double percentile) {
  std::ranges::sort(seconds);
  const auto at = [&](double percent) {
    return seconds[static_cast<std::size_t>(nearest_rank(percent, std::ssize(seconds))) - 1];
  };
  const double sum = std::reduce(seconds.begin(), seconds.end());
  return {sum / static_cast<double>(seconds.size()), at(50), at(90), at(99), at(percentile)};
}

ServeFigures figures_of(const std::vector<Progress>& progress, const std::vector<Replica>& replicas,
                        std::int64_t warm_up, double percentile) {
  ServeFigures figures;
  figures.warm_up_requests = warm_up;
  add_throughput(progress, figures);
  add_latencies(std::span(progress).subspan(static_cast<std::size_t>(warm_up)), percentile,
                figures);
  add_steps(replicas, figures);
  add_loads(replicas, figures);
  return figures;
}

}  // namespace detail
}  // namespace headroom
