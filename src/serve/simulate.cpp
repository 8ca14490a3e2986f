#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "arrivals.h"
#include "event_loop.h"
#include "headroom/error.h"
#include "headroom/no_plan_fits.h"
#include "serve_figures.h"
#include "simulation.h"
#include "with_noun.h"

namespace headroom {
namespace detail {
namespace {

/// Longest sequence whose room is looked for.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 34U;

/// Tokens with keys and values in the cache at the end of a request: not the last token's.
std::int64_t cached_tokens(const ServeRequest& request) {
  return request.input_tokens + request.output_tokens - 1;
}

std::int64_t longest_of(const std::vector<ServeRequest>& requests) {
  return std::ranges::max(requests, {}, cached_tokens).input_tokens +
         std::ranges::max(requests, {}, cached_tokens).output_tokens - 1;
}

std::int64_t shortest_prompt(const std::vector<ServeRequest>& requests) {
  return std::ranges::min(requests, {}, &ServeRequest::input_tokens).input_tokens;
}

std::int64_t mean_tokens(const std::vector<ServeRequest>& requests) {
  Integer sum = 0;
  for (const ServeRequest& request : requests) sum += cached_tokens(request);
  return static_cast<std::int64_t>(
      ceil_div(sum, Integer{static_cast<std::int64_t>(requests.size())}));
}

/// Bytes that weights, activations and runtime leave on the rank with the least room. A step may
/// have tokens of several prompts: its activations are those of one prompt as long as all of them.
std::int64_t capacity_of(Planner& planner, const PlanChoice& choice, const ServeQuestion& question,
                         std::int64_t longest) {
  const SchedulerLimits& limits = question.limits;
  const std::int64_t sequences = limits.max_sequences * choice.parallel.data;
  const Integer together = Integer{limits.max_sequences} * longest;
  const auto of_step =
      static_cast<std::int64_t>(std::min(Integer{limits.batched_tokens}, together));
  const PlanMemory memory =
      planner.evaluate(choice, {sequences, std::max(longest, of_step)}).memory;
  const Integer left = planner.rates().memory_bytes - (memory.total() - memory.kv_cache);
  return static_cast<std::int64_t>(
      std::clamp<Integer>(left, 0, std::numeric_limits<std::int64_t>::max()));
}

/// Of the layers, on each stage of a pipeline.
std::vector<double> stage_shares(const Planner& planner, const PlanChoice& choice,
                                 std::int64_t longest) {
  const StackLayers layers = planner.limits(longest).layers;
  std::vector<double> shares;
  for (std::int64_t stage = 0; stage < choice.parallel.pipeline; ++stage) {
    std::int64_t of_stage = 0;
    for (const LayerRange& range : layers_of_stage(layers, choice.parallel, stage)) {
      of_stage += range.size();
    }
    shares.push_back(static_cast<double>(of_stage) / static_cast<double>(layers.total()));
  }
  return shares;
}

void require_decoding_replica(const SchedulerLimits& limits, const PlanChoice& choice) {
  const std::int64_t replicas = choice.parallel.data;
  if (limits.prefill_replicas < replicas || limits.prefill_replicas == 0) return;
  throw_invalid_input(fmt::format("every replica prefills ({} of {}), so none decodes",
                                  limits.prefill_replicas, replicas),
                      "use more data parallelism, or fewer replicas that prefill");
}

}  // namespace

bool is_decoder(const Planner& planner) {
  return planner.decodes() && planner.spec().kind == ModelKind::decoder;
}

void require_decoder(const Planner& planner) {
  const ModelSpec& spec = planner.spec();
  if (is_decoder(planner)) return;
  throw_invalid_input(fmt::format("{} is not a decoder, so it has no tokens to serve", spec.name),
                      "ask `headroom fit` for the time of a pass");
}

PlanQuery query_of(const ServeQuestion& question) {
  PlanQuery query = question.plan.query;
  query.prefill_tokens = question.limits.batched_tokens;
  // A policy that reserves room for the tokens of a step has the scheduler's.
  KvCacheRequest& cache = query.kv_cache;
  if (!cache.batched_tokens && info(cache.policy).batched_tokens > 0) {
    cache.batched_tokens = query.prefill_tokens;
  }
  return query;
}

Simulation::Simulation(Planner& planner, const ServeQuestion& question, const PlanChoice& choice)
    : planner_(&planner),
      choice_(choice),
      limits_(question.limits),
      times_(planner, choice),
      settings_{question.limits},
      bytes_(planner, choice, question.limits.block_tokens) {
  const std::vector<ServeRequest> requests = requests_of(question.traffic);
  const std::int64_t longest = longest_of(requests);
  require_legal(choice, {choice.parallel.data, longest}, planner.limits(longest));
  require_decoding_replica(limits_, choice);
  settings_.stage_shares = stage_shares(planner, choice, longest);
  capacity_bytes_ = capacity_of(planner, choice, question, longest);
  if (question.speculation) add_drafting(question, longest);
  const auto shared = static_cast<std::int64_t>(limits_.prefix_hit *
                                                static_cast<double>(shortest_prompt(requests)));
  shared_tokens_ = shared / limits_.block_tokens * limits_.block_tokens;
  CachePool pool(bytes_, capacity_bytes_, shared_tokens_);
  cache_ = {capacity_bytes_, pool.longest(kMostTokens), pool.sequences(mean_tokens(requests))};
}

void Simulation::add_drafting(const ServeQuestion& question, std::int64_t longest) {
  drafting_ = std::make_unique<DraftCosts>(*planner_, choice_, question, longest);
  acceptance_ = question.speculation->acceptance;
  const Integer left = std::max<Integer>(0, capacity_bytes_ - drafting_->weight_bytes());
  capacity_bytes_ =
      static_cast<std::int64_t>(static_cast<double>(left) / (1 + drafting_->cache_share()));
}

bool Simulation::holds(const std::vector<ServeRequest>& requests) {
  return CachePool(bytes_, capacity_bytes_, shared_tokens_).can_hold(longest_of(requests));
}

ServeFigures Simulation::run(const ServeTraffic& traffic, double percentile, double time_factor) {
  LatencyTargets none;
  none.percentile = percentile;
  return run_if_met(traffic, none, time_factor).value();
}

std::optional<ServeFigures> Simulation::run_if_met(const ServeTraffic& traffic,
                                                   const LatencyTargets& targets,
                                                   double time_factor) {
  std::vector<Progress> progress;
  for (const ServeRequest& request : requests_of(traffic)) progress.push_back({request});
  const CachePool pool(bytes_, capacity_bytes_, shared_tokens_);
  Acceptance acceptance(acceptance_, traffic.seed);
  ReplicaSettings settings = settings_;
  settings.drafting = {drafting_.get(), &acceptance};
  settings.time_factor = time_factor;
  std::vector<Replica> replicas;
  for (std::int64_t i = 0; i < choice_.parallel.data; ++i) {
    settings.role = role_of(i);
    replicas.emplace_back(settings, pool, times_, progress);
  }
  EventLoop loop(replicas, progress, limits_.prefill_replicas,
                 [this](std::int64_t tokens) { return transfer_s(tokens); });
  const std::int64_t warm_up = warm_up_of(traffic);
  LateRequests late(progress, targets, warm_up);
  loop.run(late);
  if (late.missed()) return std::nullopt;
  ServeFigures figures = figures_of(progress, replicas, warm_up, targets.percentile);
  figures.mean_transfer_s = loop.transferred_s() / static_cast<double>(progress.size());
  return figures;
}

double Simulation::time_range(const ServeFigures& figures) const {
  return planner_->time_range(choice_, figures.compute_share);
}

ServedPlan Simulation::served(const ServeQuestion& question) {
  const LatencyTargets& targets = question.targets;
  ServedPlan plan;
  plan.choice = choice_;
  plan.cache = cache_;
  plan.figures = run(question.traffic, targets.percentile);
  plan.time_range = time_range(plan.figures);
  if (targets.steps == TargetSteps::slowest) {
    plan.slowest = run(question.traffic, targets.percentile, 1 + plan.time_range);
  }
  plan.verdict = verdict_of(plan.judged(targets), targets);
  return plan;
}

ReplicaRole Simulation::role_of(std::int64_t replica) const {
  if (limits_.prefill_replicas == 0) return ReplicaRole::both;
  return replica < limits_.prefill_replicas ? ReplicaRole::prefill : ReplicaRole::decode;
}

double Simulation::transfer_s(std::int64_t tokens) {
  const DeviceRates& rates = planner_->rates();
  const Interconnect& link = rates.link;
  const bool inside = choice_.parallel.devices() <= link.devices_per_node;
  const double bytes_per_s = inside ? link.intra_node_bytes_per_s : *link.inter_node_bytes_per_s;
  const auto bytes =
      static_cast<double>(bytes_.of_tokens(tokens) - bytes_.of_tokens(shared_tokens_));
  return bytes / (bytes_per_s * rates.efficiency.network) + rates.collective_latency_s +
         (inside ? 0 : rates.collective_node_step_s);
}

}  // namespace detail

ServedPlan simulate(const ServeQuestion& question, const PlanChoice& choice) {
  Planner planner(question.plan.model.spec, detail::query_of(question), question.plan.rates);
  detail::require_decoder(planner);
  detail::Simulation simulation(planner, question, choice);
  const std::vector<ServeRequest> requests = detail::requests_of(question.traffic);
  if (simulation.cache().bytes <= 0) {
    throw NoPlanFits(
        fmt::format("{} and the activations of {} leave no room for a KV-cache on a "
                    "replica of {}",
                    question.plan.model.spec.name,
                    detail::with_noun(question.limits.max_sequences, "sequence"),
                    detail::with_noun(choice.parallel.devices() / choice.parallel.data, "device")),
        "use a higher tensor-parallel or pipeline degree, smaller weights, or fewer sequences at "
        "once");
  }
  if (!simulation.holds(requests)) {
    throw NoPlanFits(
        fmt::format("a request of {} tokens does not fit: the KV-cache has room for {}",
                    detail::longest_of(requests), simulation.cache().tokens),
        "use more devices, a higher tensor-parallel degree, smaller weights or shorter requests");
  }
  return simulation.served(question);
}

}  // namespace headroom
