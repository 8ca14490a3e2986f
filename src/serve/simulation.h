// A plan ready to be simulated: its step times and cache are kept for further traffic. Internal to
// src/serve.
#pragma once

#include <memory>
#include <optional>

#include "replica.h"

namespace headroom::detail {

class Simulation {
 public:
  /// Throws Error{invalid_input} if the plan is illegal. `planner` must outlive it.
  Simulation(Planner& planner, const ServeQuestion& question, const PlanChoice& choice);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// True if the longest request of `requests` fits into the cache of a replica.
  [[nodiscard]] bool holds(const std::vector<ServeRequest>& requests);
  [[nodiscard]] const CacheCapacity& cache() const { return cache_; }
  /// Answers all requests, in steps that take `time_factor` times as long as predicted. They must
  /// fit.
  [[nodiscard]] ServeFigures run(const ServeTraffic& traffic, double percentile,
                                 double time_factor = 1);
  /// Figures of such a run if they meet the targets. It ends as soon as they cannot.
  [[nodiscard]] std::optional<ServeFigures> run_if_met(const ServeTraffic& traffic,
                                                       const LatencyTargets& targets,
                                                       double time_factor = 1);
  /// As ServedPlan::time_range, of a run with these figures.
  [[nodiscard]] double time_range(const ServeFigures& figures) const;
  /// The plan with its figures and verdict. The requests must fit.
  [[nodiscard]] ServedPlan served(const ServeQuestion& question);
  void set_stepping(Stepping stepping) { settings_.stepping = stepping; }

 private:
  [[nodiscard]] ReplicaRole role_of(std::int64_t replica) const;
  /// Seconds to send the cache of a prompt to another replica, every rank its own part. All
  /// replicas hold the shared prefix.
  double transfer_s(std::int64_t tokens);
  /// Takes the drafter's weights and cache from the KV-cache's room.
  void add_drafting(const ServeQuestion& question, std::int64_t longest);

  Planner* planner_;
  PlanChoice choice_;
  SchedulerLimits limits_;
  StepTimes times_;
  std::unique_ptr<DraftCosts> drafting_;  ///< null without speculation
  double acceptance_ = 0;
  ReplicaSettings settings_;
  CacheBytes bytes_;
  std::int64_t capacity_bytes_ = 0;
  std::int64_t shared_tokens_ = 0;
  CacheCapacity cache_;
};

/// True if the model generates tokens from a KV-cache, without an encoder.
[[nodiscard]] bool is_decoder(const Planner& planner);

/// Throws Error{invalid_input} if the model has no KV-cache to serve from, or an encoder.
void require_decoder(const Planner& planner);

/// The question with the scheduler's tokens per step as the longest chunk of a prefill.
[[nodiscard]] PlanQuery query_of(const ServeQuestion& question);

}  // namespace headroom::detail
