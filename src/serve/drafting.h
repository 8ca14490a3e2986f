// Costs and success of speculative decoding. Internal to src/serve.
#pragma once

#include <memory>
#include <random>

#include "headroom/serve.h"
#include "step_times.h"

namespace headroom::detail {

/// Seconds and bytes that drafting adds on one replica.
class DraftCosts {
 public:
  /// `planner`, the model's, must outlive it. `longest` tokens is the longest sequence. Throws
  /// Error{invalid_input} for a draft model that is no decoder.
  DraftCosts(Planner& planner, const PlanChoice& choice, const ServeQuestion& question,
             std::int64_t longest);
  DraftCosts(const DraftCosts&) = delete;
  DraftCosts& operator=(const DraftCosts&) = delete;

  /// Tokens proposed per sequence and step.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  /// One token for each of `sequences` sequences, without their caches.
  BoundSeconds propose(std::int64_t sequences) {
    return sequences == 0 ? BoundSeconds{} : propose_(sequences);
  }
  /// The cache of one sequence in that.
  BoundSeconds propose_cache(std::int64_t past_len) { return propose_cache_(past_len); }
  /// The model's operators without weights, for one sequence whose proposals it checks.
  BoundSeconds check(std::int64_t past_len) { return check_(past_len); }

  /// Weights of the drafter on the rank with most of them.
  [[nodiscard]] Integer weight_bytes() const { return weight_bytes_; }
  /// KV-cache of the drafter over that of the model, at the longest sequence.
  [[nodiscard]] double cache_share() const { return cache_share_; }

 private:
  /// A model's own planner, plan and step times.
  struct Draft {
    Draft(const DraftModel& model, const ServeQuestion& question, const PlanChoice& choice,
          std::int64_t longest);
    Planner planner;
    PlanChoice choice;
    StepTimes times;
  };

  void set_costs(const PredictionModule& module, Planner& planner, const PlanChoice& choice,
                 const ServeQuestion& question, std::int64_t longest);
  void set_costs(const NgramLookup& lookup, Planner& planner, const PlanChoice& choice,
                 const ServeQuestion& question, std::int64_t longest);
  void set_costs(const DraftModel& model, Planner& planner, const PlanChoice& choice,
                 const ServeQuestion& question, std::int64_t longest);

  std::int64_t tokens_;
  SampledFunction check_;
  SampledFunction propose_;
  SampledFunction propose_cache_;
  std::unique_ptr<Draft> draft_;  ///< its address is in the functions
  Integer weight_bytes_ = 0;
  double cache_share_ = 0;
};

/// Draws of accepted proposals. A seed gives the same draws with every standard library.
class Acceptance {
 public:
  Acceptance(double probability, std::uint64_t seed) : probability_(probability), random_(seed) {}
  /// Accepted ones of `proposed`: those before the first that is not.
  std::int64_t of(std::int64_t proposed);

 private:
  double probability_;
  std::mt19937_64 random_;
};

}  // namespace headroom::detail
