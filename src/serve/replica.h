// One replica under continuous batching with chunked prefill, as vLLM's scheduler works (its v1
// core, vllm/v1/core/sched/scheduler.py, version 0.9): running sequences first, in the order of
// their admission, then waiting ones, until the step has its tokens; the sequence that was admitted
// last gives up its cache when the pool is empty. Internal to src/serve.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "cache_pool.h"
#include "drafting.h"
#include "step_times.h"

namespace headroom::detail {

/// Progress of a request.
struct Progress {
  ServeRequest request;
  std::int64_t generated = 0;
  double first_token_s = -1;
  double end_s = -1;
  bool cache_came = false;  ///< from the replica that prefilled its prompt
};

/// A fraction of the time a quantity is integrated over, and its highest value.
class TimeWeighted {
 public:
  /// The quantity was `value` for `seconds`.
  void add(double value, double seconds);
  [[nodiscard]] double integral() const { return integral_; }
  [[nodiscard]] double peak() const { return peak_; }

 private:
  double integral_ = 0;
  double peak_ = 0;
};

/// Occupation of a replica over time.
struct Occupation {
  TimeWeighted running;
  TimeWeighted waiting;
  TimeWeighted cache;
  double busy_s = 0;           ///< in which the slowest stage runs a step
  double compute_bound_s = 0;  ///< of those, in operators that arithmetic bounds
  std::int64_t steps = 0;
  std::int64_t preemptions = 0;
  std::int64_t decode_steps = 0;    ///< of all sequences
  std::int64_t decoded_tokens = 0;  ///< in those steps
};

/// The work of a replica: with disaggregation, one part prefills and the other decodes.
enum class ReplicaRole { both, prefill, decode };

/// Speculative decoding of a replica; null without it.
struct Drafting {
  DraftCosts* costs = nullptr;
  Acceptance* acceptance = nullptr;
};

/// Steps that differ in nothing but the lengths of caches are computed together, or, to check that,
/// each by itself.
enum class Stepping { together, one_by_one };

/// Settings of a replica. In a pipeline, as many batches as stages are on their way at once, and
/// each has its own sequences.
struct ReplicaSettings {
  SchedulerLimits limits;
  /// Of the layers, on each stage. The last one has the final norm and the head besides.
  std::vector<double> stage_shares{1};
  Drafting drafting{};  ///< must outlive the replica
  ReplicaRole role = ReplicaRole::both;
  double time_factor = 1;  ///< of all steps
  Stepping stepping = Stepping::together;
};

class Replica {
 public:
  /// `times` and `progress`, by request, must outlive it.
  Replica(const ReplicaSettings& settings, CachePool pool, StepTimes& times,
          std::vector<Progress>& progress);

  void add(std::size_t request, double now_s);
  /// Adds a request whose prompt another replica prefilled.
  void add_prefilled(std::size_t request, double now_s);
  /// Requests that are not answered yet.
  [[nodiscard]] std::int64_t outstanding() const { return outstanding_; }
  /// The end of the step that ends first; infinite if none runs.
  [[nodiscard]] double next_end_s() const;
  /// Requests that leave a replica at the end of a step.
  struct Leaving {
    std::vector<std::size_t> answered;
    std::vector<std::size_t> prefilled;  ///< to go on elsewhere; of ReplicaRole::prefill only
  };
  /// Ends that step at next_end_s().
  Leaving end_step();
  /// Starts a step in every idle batch that has work, and further ones of a batch that only decodes
  /// until a sequence is answered: those that begin before `horizon_s`, up to which nothing comes.
  void start_steps(double now_s, double horizon_s);
  [[nodiscard]] const Occupation& occupation() const { return occupation_; }
  [[nodiscard]] ReplicaRole role() const { return settings_.role; }

 private:
  struct Sequence {
    std::size_t request;
    std::int64_t tokens;     ///< known: prompt and generated ones
    std::int64_t computed;   ///< with their keys and values in the cache
    std::int64_t scheduled;  ///< computed by the running step
    std::int64_t drafts;     ///< proposals that it checks besides
    std::int64_t held_bytes;
    bool left;  ///< answered, or prefilled for another replica
  };
  struct Batch {
    std::vector<Sequence> sequences;  ///< in order of admission
    double end_s = std::numeric_limits<double>::infinity();
    std::int64_t steps = 1;  ///< that end then, of equal sequences
    [[nodiscard]] bool idle() const { return end_s == std::numeric_limits<double>::infinity(); }
  };
  /// The work of a step while it is put together.
  struct Step {
    std::int64_t tokens = 0;
    std::int64_t sequences = 0;
    std::int64_t sampled = 0;
    BoundSeconds of_sequences;
    std::int64_t drafting = 0;  ///< sequences with proposals
    BoundSeconds of_drafts;     ///< of their caches in the drafter
    bool preempted = false;
  };

  /// Counts the time since the last event.
  void advance(double now_s);
  void schedule(Sequence& sequence, std::int64_t tokens, Step& step);
  /// Adds proposals to a sequence that decodes.
  void propose(Sequence& sequence, std::int64_t drafts, Step& step);
  /// Sequences of a step, which share the multiprocessors.
  [[nodiscard]] std::int64_t sharing() const;
  /// Proposals for a sequence that decodes: no more than its answer needs.
  [[nodiscard]] std::int64_t drafts_of(const Sequence& sequence) const;
  /// Adds the tokens that a step gave a sequence to it and to its request.
  void add_tokens(Sequence& sequence, Progress& progress, double now_s);
  /// Adds the tokens of `steps` steps before the last one of a batch.
  void add_further(Sequence& sequence, std::int64_t steps);
  /// Room for `tokens` tokens of the sequence at `index`; takes it from later ones if needed.
  bool make_room(Batch& batch, std::size_t index, std::int64_t tokens, Step& step);
  void continue_running(Batch& batch, Step& step);
  void admit_waiting(Batch& batch, Step& step);
  /// Tokens of a waiting request whose cache is there or has come.
  [[nodiscard]] std::int64_t cached_tokens(const Progress& progress) const;
  [[nodiscard]] bool leaves(const Progress& progress) const;
  void preempt_last(Batch& batch);
  /// Tokens whose cache a request gets when it is admitted.
  [[nodiscard]] std::int64_t reserved_tokens(const Progress& progress) const;
  [[nodiscard]] bool is_smallest(const Batch& batch) const;
  /// The drafter's, before the step that checks its proposals.
  [[nodiscard]] BoundSeconds drafting(const Step& step) const;
  /// Passes the step through the stages; returns its end.
  double run(const Step& step, double now_s);

  // steady_steps.cpp
  struct SteadySteps;
  /// True if the step decodes one token of every sequence of the only batch.
  [[nodiscard]] bool is_steady(const Batch& batch, const Step& step) const;
  [[nodiscard]] std::int64_t steps_until_answer(const Batch& batch) const;
  /// The next `count` steps behind those that the batch runs.
  SteadySteps steady_steps(Batch& batch, std::int64_t count);
  /// Runs those that begin before `horizon_s` and have room in the cache; returns their number.
  std::int64_t run_steady(const SteadySteps& steps, const BoundSeconds& weights, double horizon_s,
                          Batch& batch);
  /// Runs steps behind the one that was started at `now_s`.
  void run_further(Batch& batch, const Step& step, double now_s, double horizon_s);

  ReplicaSettings settings_;
  CachePool pool_;
  StepTimes* times_;
  std::vector<Progress>* progress_;
  std::deque<std::size_t> waiting_;
  std::vector<Batch> batches_;
  std::vector<double> stage_free_s_;
  std::int64_t outstanding_ = 0;
  std::int64_t running_ = 0;
  double now_s_ = 0;
  double cache_counted_s_ = 0;  ///< until which occupation_.cache has been counted
  Occupation occupation_;
};

}  // namespace headroom::detail
