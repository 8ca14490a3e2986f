#include "size_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "arrivals.h"
#include "device_counts.h"
#include "simulation.h"

namespace headroom::detail {
namespace {

std::vector<std::int64_t> divisors(std::int64_t number) {
  std::vector<std::int64_t> result;
  for (std::int64_t n = 1; n <= number; ++n) {
    if (number % n == 0) result.push_back(n);
  }
  return result;
}

/// True if `fixed` leaves this degree open or asks for it.
bool allows(const std::optional<std::int64_t>& fixed, std::int64_t degree) {
  return !fixed || *fixed == degree;
}

/// The degrees that `fixed` gives and no search varies.
PlanChoice base_of(const FixedDegrees& fixed) {
  PlanChoice choice;
  ParallelPlan& plan = choice.parallel;
  plan.context = fixed.context.value_or(1);
  plan.sequence = fixed.sequence.value_or(SequenceParallel::off);
  plan.expert_tensor = fixed.expert_tensor;
  plan.expert_exchange = fixed.expert_exchange;
  plan.batch_overlap = fixed.batch_overlap;
  return choice;
}

std::vector<PlanChoice> plans_of(std::int64_t devices, const FixedDegrees& fixed,
                                 const ShardingLimits& limits) {
  std::vector<PlanChoice> plans;
  PlanChoice choice = base_of(fixed);
  ParallelPlan& plan = choice.parallel;
  if (devices % plan.context != 0) return plans;
  const std::vector<std::int64_t> experts =
      fixed.expert ? std::vector{*fixed.expert}
                   : divisors(std::max<std::int64_t>(1, limits.experts));
  for (const std::int64_t tensor : divisors(devices / plan.context)) {
    for (const std::int64_t pipeline : divisors(devices / plan.context / tensor)) {
      for (const std::int64_t expert : experts) {
        plan.tensor = tensor;
        plan.pipeline = pipeline;
        plan.expert = expert;
        plan.data = devices / plan.context / tensor / pipeline;
        const bool asked = allows(fixed.tensor, tensor) && allows(fixed.pipeline, pipeline) &&
                           allows(fixed.data, plan.data);
        if (asked && !broken_rule(plan, limits)) plans.push_back(choice);
      }
    }
  }
  return plans;
}

/// The asked degrees on the fewest devices that they need.
PlanChoice fewest_devices_of(const FixedDegrees& fixed) {
  PlanChoice choice = base_of(fixed);
  ParallelPlan& plan = choice.parallel;
  plan.tensor = fixed.tensor.value_or(1);
  plan.pipeline = fixed.pipeline.value_or(1);
  plan.expert = fixed.expert.value_or(1);
  plan.data = fixed.data.value_or(plan.expert);
  return choice;
}

/// Throws IllegalPlan with a rule that the asked degrees break, if they break one on every number
/// of devices.
void require_legal_degrees(const DeviceCounts& counts, const FixedDegrees& fixed,
                           const ShardingLimits& limits) {
  const PlanChoice least = fewest_devices_of(fixed);
  if (!broken_rule(least.parallel, limits)) return;
  for (const auto& numbers : {counts.single(), counts.doubling()}) {
    for (const std::int64_t devices : numbers) {
      if (!plans_of(devices, fixed, limits).empty()) return;
    }
  }
  require_legal(least, {least.parallel.data, limits.seq_len}, limits);
}

/// The largest of latency over target. Without targets: seconds per request.
double strain(const ServeFigures& figures, const LatencyTargets& targets) {
  const auto tightest = tightest_target(figures, targets);
  return tightest ? tightest->ratio : figures.end_to_end.mean;
}

/// The degrees of a plan apart from its replicas.
struct ReplicaDegrees {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t expert = 1;

  friend bool operator<(const ReplicaDegrees& one, const ReplicaDegrees& other) noexcept {
    return std::tie(one.tensor, one.pipeline, one.expert) <
           std::tie(other.tensor, other.pipeline, other.expert);
  }
};

ReplicaDegrees degrees_of(const PlanChoice& choice) {
  return {choice.parallel.tensor, choice.parallel.pipeline, choice.parallel.expert};
}

/// One request that none of `requests` is faster than; empty where its time is random or spared by
/// a shared prefix.
std::optional<ServeTraffic> lone_request(const ServeQuestion& question,
                                         const std::vector<ServeRequest>& requests) {
  if (question.speculation || question.limits.prefix_hit > 0) return std::nullopt;
  ServeTraffic lone;
  lone.arrivals = UserArrivals{1};
  lone.requests = 1;
  lone.input_tokens = std::ranges::min(requests, {}, &ServeRequest::input_tokens).input_tokens;
  lone.output_tokens = std::ranges::min(requests, {}, &ServeRequest::output_tokens).output_tokens;
  return lone;
}

/// Simulates the plans of one number of devices after another. A plan that misses the targets is
/// not simulated with fewer replicas, which get more requests each, nor with any number if a
/// request alone misses them. A plan without room has none with more replicas, whose communication
/// takes memory, but may have some with fewer.
class PlanTrials {
 public:
  PlanTrials(Planner& planner, const ServeQuestion& question, const FixedDegrees& fixed)
      : planner_(planner),
        question_(question),
        fixed_(fixed),
        requests_(requests_of(question.traffic)),
        lone_(lone_request(question, requests_)) {}

  /// True if a plan on `devices` devices meets the targets.
  bool meets(std::int64_t devices) {
    Tried& tried = tried_[devices];
    for (const PlanChoice& choice : plans_of(devices, fixed_, planner_.limits(1))) {
      if (choice.parallel.data <= question_.limits.prefill_replicas) continue;
      if (is_known_full(choice)) continue;
      if (choice.parallel.data <= missing_[degrees_of(choice)]) {
        tried.left_out.push_back(choice);
      } else {
        try_plan(choice, tried);
      }
    }
    return !tried.plans.empty() && tried.plans.front().verdict.met();
  }

  /// All plans on `answer` devices, or on the most that have room.
  SizeSearch result(const std::optional<std::int64_t>& answer) {
    SizeSearch search;
    const std::int64_t devices = answer ? *answer : most_tried();
    Tried& tried = tried_[devices];
    for (const PlanChoice& choice : tried.left_out) {
      Simulation simulation(planner_, question_, choice);
      if (simulation.holds(requests_)) simulate(choice, simulation, tried);
    }
    search.plans = tried.plans;
    if (answer) search.closest_below = closest_below(devices);
    search.simulated = simulated_;
    return search;
  }

 private:
  struct Tried {
    std::vector<ServedPlan> plans;  ///< best first
    std::vector<PlanChoice> left_out;
  };

  // In place of a number of replicas.
  static constexpr std::int64_t kEvenAlone = std::numeric_limits<std::int64_t>::max();

  /// True if the plan has no room for the requests with as many replicas, or fewer.
  [[nodiscard]] bool is_known_full(const PlanChoice& choice) const {
    const auto full = full_.find(degrees_of(choice));
    return full != full_.end() && choice.parallel.data >= full->second;
  }

  [[nodiscard]] double strain_of(const ServedPlan& plan) const {
    return strain(plan.judged(question_.targets), question_.targets);
  }

  /// True if a request alone takes longer than the targets by more than rounding.
  bool misses_alone(Simulation& simulation) const {
    constexpr double kClearly = 1.01;
    if (!lone_) return false;
    const ServeFigures figures = simulation.run(*lone_, question_.targets.percentile);
    const auto tightest = tightest_target(figures, question_.targets);
    return tightest && tightest->ratio > kClearly;
  }

  void try_plan(const PlanChoice& choice, Tried& tried) {
    Simulation simulation(planner_, question_, choice);
    if (!simulation.holds(requests_)) {
      full_[degrees_of(choice)] = choice.parallel.data;
    } else if (misses_alone(simulation)) {
      missing_[degrees_of(choice)] = kEvenAlone;
      tried.left_out.push_back(choice);
    } else {
      simulate(choice, simulation, tried);
    }
  }

  void simulate(const PlanChoice& choice, Simulation& simulation, Tried& tried) {
    std::int64_t& missing = missing_[degrees_of(choice)];
    ++simulated_;
    const ServedPlan served = simulation.served(question_);
    if (!served.verdict.met()) missing = std::max(missing, choice.parallel.data);
    const auto place =
        std::ranges::upper_bound(tried.plans, strain_of(served), {},
                                 [&](const ServedPlan& plan) { return strain_of(plan); });
    tried.plans.insert(place, served);
  }

  /// The most devices on which a tried plan has room; 0 if none has.
  [[nodiscard]] std::int64_t most_tried() const {
    const auto has_room = [this](const PlanChoice& choice) {
      return Simulation(planner_, question_, choice).holds(requests_);
    };
    for (auto one = tried_.rbegin(); one != tried_.rend(); ++one) {
      const Tried& tried = one->second;
      if (!tried.plans.empty() || std::ranges::any_of(tried.left_out, has_room)) return one->first;
    }
    return 0;
  }

  [[nodiscard]] std::optional<ServedPlan> closest_below(std::int64_t devices) const {
    const ServedPlan* closest = nullptr;
    for (const auto& [count, tried] : tried_) {
      if (count >= devices || tried.plans.empty()) continue;
      const ServedPlan& best = tried.plans.front();
      if (closest == nullptr || strain_of(best) <= strain_of(*closest)) closest = &best;
    }
    if (closest == nullptr) return std::nullopt;
    return *closest;
  }

  Planner& planner_;
  const ServeQuestion& question_;
  const FixedDegrees& fixed_;
  std::vector<ServeRequest> requests_;
  std::optional<ServeTraffic> lone_;
  std::map<std::int64_t, Tried> tried_;
  std::map<ReplicaDegrees, std::int64_t> missing_;  ///< most replicas that miss the targets
  std::map<ReplicaDegrees, std::int64_t> full_;     ///< fewest replicas without room
  std::int64_t simulated_ = 0;
};

/// Rates below and above the asked one that are tried.
constexpr double kFarthest = 100;

/// With enough requests to fill the caches of all replicas many times over, unless they take too
/// long to arrive: fewer may all run at once, at any rate.
ServeQuestion with_steady_traffic(ServeQuestion question, const CacheCapacity& cache,
                                  std::int64_t replicas, double requests_per_s) {
  constexpr std::int64_t kTimesFilled = 10;
  constexpr std::int64_t kMostSimulated = 20'000;
  const std::int64_t filling = kTimesFilled * replicas * std::min(cache.requests, kMostSimulated);
  const double arriving = kLongestArrivals_s / kFarthest * requests_per_s;
  const auto most = static_cast<std::int64_t>(std::min<double>(kMostSimulated, arriving));
  std::int64_t& requests = question.traffic.requests;
  requests = std::max(requests, std::min(filling, most));
  return question;
}

/// True if the targets are met, and requests are answered as fast as they come.
bool keeps_targets_at(Simulation& simulation, const ServeQuestion& question, double rate) {
  constexpr double kAnswered = 0.97;
  const LatencyTargets& targets = question.targets;
  ServeTraffic traffic = question.traffic;
  traffic.arrivals = PoissonArrivals{rate};
  double time_factor = 1;
  if (targets.steps == TargetSteps::slowest) {
    time_factor += simulation.time_range(simulation.run(traffic, targets.percentile));
  }
  const auto figures = simulation.run_if_met(traffic, targets, time_factor);
  return figures && figures->answers_per_s >= kAnswered * figures->arrivals_per_s;
}

}  // namespace

SizeSearch search_sizes(Planner& planner, const ServeQuestion& question, const FixedDegrees& fixed,
                        const DeviceRange& range, const std::function<void(double)>& progress) {
  PlanTrials trials(planner, question, fixed);
  const DeviceCounts counts(range.least, range.most, planner.rates().link.devices_per_node, fixed);
  require_legal_degrees(counts, fixed, planner.limits(1));
  const std::size_t most = counts.single().size() + counts.doubling().size();
  double done = 0;
  const auto fewest = fewest_that_works(counts, [&](std::int64_t devices) {
    if (progress) progress(std::min(1.0, done++ / static_cast<double>(most)));
    return trials.meets(devices);
  });
  return trials.result(fewest);
}

std::optional<double> largest_rate(Planner& planner, const ServeQuestion& asked,
                                   const PlanChoice& choice) {
  constexpr double kPrecision = 1.02;
  const auto* poisson = std::get_if<PoissonArrivals>(&asked.traffic.arrivals);
  if (poisson == nullptr || asked.targets.empty()) return std::nullopt;
  Simulation simulation(planner, asked, choice);
  const ServeQuestion question =
      with_steady_traffic(asked, simulation.cache(), choice.parallel.data, poisson->requests_per_s);
  double kept = poisson->requests_per_s;
  // Slower requests of one seed arrive in proportion later.
  const double arrivals_s = requests_of(question.traffic).back().arrival_s;
  const double slowest = std::max(kept / kFarthest, kept * arrivals_s / kLongestArrivals_s);
  while (!keeps_targets_at(simulation, question, kept)) {
    kept /= 2;
    if (kept < slowest) return std::nullopt;
  }
  double missed = 2 * kept;
  while (keeps_targets_at(simulation, question, missed)) {
    kept = missed;
    missed *= 2;
    // Short simulations may keep any rate: their requests all arrive at once.
    if (kept > kFarthest * poisson->requests_per_s) return std::nullopt;
  }
  while (missed > kPrecision * kept) {
    const double middle = std::sqrt(kept * missed);
    (keeps_targets_at(simulation, question, middle) ? kept : missed) = middle;
  }
  return kept;
}

}  // namespace headroom::detail
