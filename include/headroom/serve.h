// Serving with continuous batching: an event simulation of requests on the planner's step times,
// and the search for the fewest devices that keep latency targets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/engine_command.h"
#include "headroom/fewest_devices.h"
#include "headroom/plan_report.h"

namespace headroom {

/// One request: lengths in tokens. Its first token comes from the prefill, the others from
/// `output_tokens` − 1 decode steps.
struct ServeRequest {
  double arrival_s = 0;
  std::int64_t input_tokens = 1;
  std::int64_t output_tokens = 1;
};

/// Requests of equal length at random times, independent of each other.
struct PoissonArrivals {
  double requests_per_s = 1;
};
/// Users that send their next request as soon as the last one is answered.
struct UserArrivals {
  std::int64_t users = 1;
};
/// Given requests, in order of arrival.
struct TraceArrivals {
  std::vector<ServeRequest> requests;
  bool names_prefixes = false;  ///< of prompts; the simulation shares none of them by name
};
using Arrivals = std::variant<PoissonArrivals, UserArrivals, TraceArrivals>;

/// The requests of a simulation.
struct ServeTraffic {
  Arrivals arrivals;
  std::int64_t input_tokens = 1024;  ///< of each request, unless a trace gives it
  std::int64_t output_tokens = 256;  ///< likewise
  std::int64_t requests = 1000;      ///< simulated, unless a trace gives them
  std::uint64_t seed = 1;            ///< of random arrivals
};

/// The cache that must be free before a waiting request runs.
enum class Admission {
  prompt,   ///< of its prompt: later, a sequence may lose its cache to an older one (vLLM)
  request,  ///< of its prompt and answer, so that none is lost (TensorRT-LLM's GUARANTEED_NO_EVICT)
};
/// "prompt" or "request".
[[nodiscard]] std::string_view name_of(Admission admission) noexcept;

/// Limits of the scheduler, as vLLM names them.
struct SchedulerLimits {
  Admission admission = Admission::prompt;
  std::int64_t max_sequences = 256;    ///< max_num_seqs: running at once on one replica
  std::int64_t batched_tokens = 2048;  ///< max_num_batched_tokens: of one step
  std::int64_t block_tokens = 16;      ///< block_size of the KV-cache
  /// Fraction of each prompt that all prompts share and whose cache is kept.
  double prefix_hit = 0;
  /// Replicas that only prefill. They send the cache of a prompt to one of the others, which only
  /// decode (arXiv 2401.09670); 0: every replica does both.
  std::int64_t prefill_replicas = 0;
};

/// vLLM's defaults of a server on a device: 1,024 sequences and 8,192 tokens of a step where it has
/// 70 GiB or more and is no A100, else 256 and 2,048 (EngineArgs.get_batch_defaults,
/// vllm/engine/arg_utils.py).
[[nodiscard]] SchedulerLimits default_limits(const DeviceRates& rates);

// Drafters of speculative decoding.

/// A module for multi-token prediction: a projection that joins a token's embedding to the last
/// hidden state, one more layer of the model, and its head (arXiv 2412.19437, section 2.2).
struct PredictionModule {};
/// Text that occurred before, at no cost.
struct NgramLookup {};
/// A smaller model with weights as stored, on as many tensor-parallel ranks, or on one.
struct DraftModel {
  ModelSpec spec;
};
using Drafter = std::variant<PredictionModule, NgramLookup, DraftModel>;
/// "mtp", "ngram", or the draft model's name.
[[nodiscard]] std::string name_of(const Drafter& drafter);

/// Speculative decoding (arXiv 2211.17192): in each step a drafter proposes tokens for every
/// decoding sequence, one after the other, and the model checks them in one pass.
struct Speculation {
  Drafter drafter;
  std::int64_t tokens = 1;  ///< proposed per sequence and step
  double acceptance = 0;    ///< probability of each, if those before it are accepted
};

/// Steps with which targets must be met: as long as predicted, or the slowest of nine of ten runs.
enum class TargetSteps { predicted, slowest };
/// "predicted" or "slowest".
[[nodiscard]] std::string_view name_of(TargetSteps steps) noexcept;

/// Latencies that a percentile of the requests must keep, in seconds. Empty: no limit.
struct LatencyTargets {
  std::optional<double> ttft_s;
  std::optional<double> tpot_s;
  std::optional<double> end_to_end_s;
  double percentile = 99;
  TargetSteps steps = TargetSteps::predicted;
  [[nodiscard]] bool empty() const { return !ttft_s && !tpot_s && !end_to_end_s; }
};

/// Latency over all requests, in seconds; percentiles by the nearest rank.
struct LatencySummary {
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double at_target = 0;  ///< LatencyTargets::percentile
};

/// Load of a replica, the mean of several; peaks are the highest.
struct ReplicaLoad {
  double busy = 0;          ///< fraction of the time in which it runs a step
  double mean_running = 0;  ///< sequences, weighted by time
  std::int64_t peak_running = 0;
  double mean_waiting = 0;
  std::int64_t peak_waiting = 0;
  double mean_cache = 0;  ///< occupied fraction of the KV-cache, weighted by time
  double peak_cache = 0;
};

/// Loads of replicas of which some only prefill.
struct RoleLoads {
  ReplicaLoad prefill;
  ReplicaLoad decode;
};

/// Result of one simulation.
struct ServeFigures {
  std::int64_t requests = 0;
  double duration_s = 0;  ///< from the first arrival to the last token
  double requests_per_s = 0;
  double input_tokens_per_s = 0;
  double output_tokens_per_s = 0;
  LatencySummary ttft;                  ///< from arrival to the first token
  std::optional<LatencySummary> tpot;   ///< between tokens; empty if no request has two
  LatencySummary end_to_end;            ///< from arrival to the last token
  std::int64_t steps = 0;               ///< of all replicas
  double compute_share = 0;             ///< part of the time in steps that arithmetic bounds
  ReplicaLoad load;                     ///< of all replicas
  std::optional<RoleLoads> role_loads;  ///< empty where every replica does both
  std::int64_t preemptions = 0;  ///< sequences that lost their cache and were prefilled again
  double mean_transfer_s = 0;    ///< of a prompt's cache to the replica that decodes
  double tokens_per_step = 1;    ///< of a decoding sequence; above 1 only with speculation
  double arrivals_per_s = 0;     ///< requests over the time between the first and last arrival
  /// Likewise, over the time to the last answer, less what the fastest answer took, or the tokens
  /// of the last one at the least TPOT.
  double answers_per_s = 0;
  /// Requests that latencies leave out: the first of each user, which all arrive at once. 0 unless
  /// at least as many follow.
  std::int64_t warm_up_requests = 0;
};

/// True if answers come at less than nine tenths of the rate of arrivals: the queue then grows as
/// long as requests come.
[[nodiscard]] bool queue_grows(const ServeFigures& figures);

/// Answer to targets.
struct TargetVerdict {
  bool ttft = true;
  bool tpot = true;
  bool end_to_end = true;
  [[nodiscard]] bool met() const { return ttft && tpot && end_to_end; }
};
[[nodiscard]] TargetVerdict verdict_of(const ServeFigures& figures, const LatencyTargets& targets);

enum class LatencyKind { ttft, tpot, end_to_end };
/// "ttft", "tpot" or "end_to_end".
[[nodiscard]] std::string_view name_of(LatencyKind latency) noexcept;

/// The target that a plan misses by most, or comes closest to missing.
struct TightestTarget {
  LatencyKind latency = LatencyKind::end_to_end;
  double ratio = 0;  ///< of the latency to its target: above 1 if it is missed
};
/// Empty without targets.
[[nodiscard]] std::optional<TightestTarget> tightest_target(const ServeFigures& figures,
                                                            const LatencyTargets& targets);

/// KV-cache of one replica.
struct CacheCapacity {
  Integer bytes = 0;          ///< on the rank with the least room
  std::int64_t tokens = 0;    ///< of one sequence that fills it
  std::int64_t requests = 0;  ///< of the mean length that it holds at once
};

/// The input of `headroom serve`.
struct ServeQuestion {
  PlanQuestion plan;  ///< model, types, device and number of devices; its load is not read
  ServeTraffic traffic;
  SchedulerLimits limits;
  std::optional<Speculation> speculation;
  LatencyTargets targets;
  std::optional<double> price_per_hour;  ///< of one device
};

/// A plan and its simulation.
struct ServedPlan {
  PlanChoice choice;
  CacheCapacity cache;
  ServeFigures figures;
  TargetVerdict verdict;
  double time_range = 0;  ///< of the steps, as Planner::time_range
  /// With all steps as fast, and as slow, as in nine of ten runs; of the plan that a report answers
  /// with. `slowest` also of every plan whose targets are for the slowest steps.
  std::optional<ServeFigures> fastest{};
  std::optional<ServeFigures> slowest{};

  /// The figures that `verdict` is about.
  [[nodiscard]] const ServeFigures& judged(const LatencyTargets& targets) const {
    return targets.steps == TargetSteps::slowest && slowest ? *slowest : figures;
  }
};

/// Which of nine of ten runs meet the targets.
enum class RunsThatMeet { none, some, all };
/// "no run", "some runs" or "all runs".
[[nodiscard]] std::string_view name_of(RunsThatMeet runs) noexcept;
/// Empty without targets, or for a plan without a range.
[[nodiscard]] std::optional<RunsThatMeet> runs_that_meet(const ServedPlan& plan,
                                                         const LatencyTargets& targets);

struct ServeReport {
  ServeQuestion question;
  std::vector<ServedPlan> plans;  ///< the answer first; a search adds its runners-up
  std::int64_t simulated = 0;     ///< plans
  bool searched = false;
  /// Of a search that tried fewer devices: the best plan on these, which misses the targets.
  std::optional<ServedPlan> closest_below;
  /// Most Poisson requests per second that meet the targets, and that are answered as fast as they
  /// come. Empty also where the requests are too few to tell.
  std::optional<double> largest_rate;
  std::string engine_command;    ///< of an engine that serves the first plan; empty: none
  std::optional<Engine> engine;  ///< of that command
  std::vector<std::string> notes;
};

/// Prices of all devices of a plan.
struct ServePrice {
  double per_hour = 0;
  double per_million_output_tokens = 0;
};
/// Of the first plan; empty without a price.
[[nodiscard]] std::optional<ServePrice> price_of(const ServeReport& report);

/// The best plans of several machines for one question.
struct ServeMachinesReport {
  ServeQuestion question;  ///< of no machine
  std::int64_t most_devices = 0;
  /// One a machine, by whether it meets the targets, price per hour, devices, and tightest target.
  std::vector<ServeReport> machines;
  std::vector<std::string> too_small;  ///< machines whose plans have no room for the requests
  std::vector<std::string> notes;
};

/// Simulates one plan. Throws Error{invalid_input} if the model is not a decoder, the plan is
/// illegal, or a request does not fit into the KV-cache.
[[nodiscard]] ServedPlan simulate(const ServeQuestion& question, const PlanChoice& choice);

/// Simulates `request`'s plan.
[[nodiscard]] ServeReport make_serve_report(ServeQuestion question, const PlanRequest& request);

/// Searches the fewest devices, and among their plans the fastest, that meet the targets. Degrees
/// in `fixed` are kept. Up to 64 devices, every number is tried; above, multiples of a node's
/// devices (of 8, where nodes have fewer or more than 64). Throws Error{invalid_input} if no plan
/// has room for the requests. `progress` is told the fraction of the numbers that is done.
[[nodiscard]] ServeReport make_serve_report(ServeQuestion question, const FixedDegrees& fixed,
                                            const DeviceRange& range,
                                            const std::function<void(double)>& progress = {});

/// Searches the fewest devices of each machine. `questions` have one each, and differ in nothing
/// but it and its price; `progress` is told the fraction of them that is done. Throws
/// Error{invalid_input} without questions, and without targets.
[[nodiscard]] ServeMachinesReport make_serve_machines_report(
    std::vector<ServeQuestion> questions, const FixedDegrees& fixed, const DeviceRange& range,
    const std::function<void(double fraction)>& progress = {});

/// The command of an engine that serves `plan` under the question's limits. Throws
/// Error{invalid_input} if the engine trains.
[[nodiscard]] EngineCommand serving_command(Engine engine, const ServeQuestion& question,
                                            const ServedPlan& plan);

/// Reads a trace: one JSON object per line with `arrival_s`, `input_tokens` and `output_tokens`, or
/// Mooncake's `timestamp` in milliseconds, `input_length`, `output_length` and, if given,
/// `hash_ids`. Throws Error{invalid_input} with the line's number.
[[nodiscard]] TraceArrivals parse_trace(const std::string& text, const std::string& name);

}  // namespace headroom
