#include "serve_words.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "describe.h"
#include "plan_words.h"
#include "units.h"
#include "visit.h"
#include "with_noun.h"

namespace headroom::detail {
namespace {

/// "2 000 tokens in, 300 out"
std::string lengths_text(const ServeTraffic& traffic) {
  return fmt::format("{} tokens in · {} out", with_separators(traffic.input_tokens),
                     with_separators(traffic.output_tokens));
}

}  // namespace

std::string traffic_text(const ServeTraffic& traffic) {
  const auto count = [](std::int64_t requests) { return with_noun_grouped(requests, "request"); };
  return std::visit(
      Overloaded{[&](const PoissonArrivals& arrivals) {
                   return fmt::format("{:.4g} requests/s at random times · {} · {}",
                                      arrivals.requests_per_s, lengths_text(traffic),
                                      count(traffic.requests));
                 },
                 [&](const UserArrivals& arrivals) {
                   return fmt::format("{} · {} · {}", with_noun_grouped(arrivals.users, "user"),
                                      lengths_text(traffic), count(traffic.requests));
                 },
                 [&](const TraceArrivals& arrivals) {
                   return fmt::format("{} of a trace",
                                      count(static_cast<std::int64_t>(arrivals.requests.size())));
                 }},
      traffic.arrivals);
}

namespace {

std::string_view title_of(LatencyKind latency) {
  switch (latency) {
    case LatencyKind::ttft:
      return "TTFT";
    case LatencyKind::tpot:
      return "TPOT";
    case LatencyKind::end_to_end:
      break;
  }
  return "end to end";
}

}  // namespace

std::string why_text(const ServedPlan& plan, const LatencyTargets& targets) {
  const auto tightest = tightest_target(plan.judged(targets), targets);
  if (!tightest) return "";
  const double percent = 100 * std::abs(tightest->ratio - 1);
  return fmt::format("{} {:.{}f} % {} target", title_of(tightest->latency), percent,
                     percent < 10 ? 1 : 0, tightest->ratio > 1 ? "over" : "below");
}

std::string steps_text(TargetSteps steps) {
  return steps == TargetSteps::slowest ? ", with the slowest steps" : "";
}

std::string targets_text(const LatencyTargets& targets) {
  std::vector<std::string> parts;
  const auto add = [&](LatencyKind latency, const std::optional<double>& target) {
    if (target) parts.push_back(fmt::format("{} ≤ {}", title_of(latency), duration(*target)));
  };
  add(LatencyKind::ttft, targets.ttft_s);
  add(LatencyKind::tpot, targets.tpot_s);
  add(LatencyKind::end_to_end, targets.end_to_end_s);
  return fmt::format("{} for {:.4g} % of the requests{}", fmt::join(parts, " · "),
                     targets.percentile, steps_text(targets.steps));
}

Column latency_column(std::string key, std::string title) {
  return number_column(std::move(key), std::move(title), {"[ms]", 1, 1, 1000});
}

Column throughput_column(std::string key, std::string title) {
  return number_column(std::move(key), std::move(title), {"[tokens/s]", 1});
}

namespace {

Json speculation_json(const std::optional<Speculation>& speculation) {
  if (!speculation) return nullptr;
  return {{"drafter", name_of(speculation->drafter)},
          {"tokens", speculation->tokens},
          {"acceptance", speculation->acceptance}};
}

Json latency_json(const LatencySummary& latency) {
  return {{"mean_s", latency.mean},
          {"p50_s", latency.p50},
          {"p90_s", latency.p90},
          {"p99_s", latency.p99},
          {"at_target_s", latency.at_target}};
}

Json traffic_json(const ServeTraffic& traffic) {
  Json json = {{"arrivals", nullptr},     {"requests_per_s", nullptr},
               {"users", nullptr},        {"requests", traffic.requests},
               {"input_tokens", nullptr}, {"output_tokens", nullptr},
               {"seed", nullptr}};
  const auto set_lengths = [&] {
    json["input_tokens"] = traffic.input_tokens;
    json["output_tokens"] = traffic.output_tokens;
  };
  std::visit(Overloaded{[&](const PoissonArrivals& arrivals) {
                          json["arrivals"] = "poisson";
                          json["requests_per_s"] = arrivals.requests_per_s;
                          json["seed"] = traffic.seed;
                          set_lengths();
                        },
                        [&](const UserArrivals& arrivals) {
                          json["arrivals"] = "users";
                          json["users"] = arrivals.users;
                          set_lengths();
                        },
                        [&](const TraceArrivals& arrivals) {
                          json["arrivals"] = "trace";
                          json["requests"] = arrivals.requests.size();
                        }},
             traffic.arrivals);
  return json;
}

/// Adds the keys of a load.
void add_load(const ReplicaLoad& load, Json& json) {
  json["busy"] = load.busy;
  json["mean_running"] = load.mean_running;
  json["peak_running"] = load.peak_running;
  json["mean_waiting"] = load.mean_waiting;
  json["peak_waiting"] = load.peak_waiting;
  json["mean_kv_cache"] = load.mean_cache;
  json["peak_kv_cache"] = load.peak_cache;
}

/// Of the replicas that only prefill, and of the others; null where every replica does both.
Json role_loads_json(const std::optional<RoleLoads>& loads) {
  if (!loads) return nullptr;
  Json json;
  add_load(loads->prefill, json["prefill"]);
  add_load(loads->decode, json["decode"]);
  return json;
}

Json figures_json(const ServeFigures& figures) {
  Json json{{"requests", figures.requests},
            {"duration_s", figures.duration_s},
            {"requests_per_s", figures.requests_per_s},
            {"input_tokens_per_s", figures.input_tokens_per_s},
            {"output_tokens_per_s", figures.output_tokens_per_s},
            {"ttft", latency_json(figures.ttft)},
            {"tpot", figures.tpot ? latency_json(*figures.tpot) : Json(nullptr)},
            {"end_to_end", latency_json(figures.end_to_end)},
            {"steps", figures.steps}};
  add_load(figures.load, json);
  json["role_loads"] = role_loads_json(figures.role_loads);
  json["preemptions"] = figures.preemptions;
  json["mean_transfer_s"] = figures.mean_transfer_s;
  json["tokens_per_step"] = figures.tokens_per_step;
  json["warm_up_requests"] = figures.warm_up_requests;
  return json;
}

Json tightest_json(const ServedPlan& plan, const LatencyTargets& targets) {
  const auto tightest = tightest_target(plan.judged(targets), targets);
  if (!tightest) return nullptr;
  return {{"latency", name_of(tightest->latency)}, {"ratio", tightest->ratio}};
}

}  // namespace

namespace {

Json latency_range(const LatencySummary& low, const LatencySummary& high) {
  return {{"p50_s", {low.p50, high.p50}},
          {"p90_s", {low.p90, high.p90}},
          {"p99_s", {low.p99, high.p99}}};
}

Json runs_json(const ServedPlan& plan, const LatencyTargets& targets) {
  const auto runs = runs_that_meet(plan, targets);
  return runs ? Json(name_of(*runs)) : Json(nullptr);
}

/// From the least to the most; null for plans without.
Json range_json(const ServedPlan& plan, const LatencyTargets& targets) {
  if (!plan.fastest || !plan.slowest) return nullptr;
  const ServeFigures& fastest = *plan.fastest;
  const ServeFigures& slowest = *plan.slowest;
  const bool has_tpot = fastest.tpot && slowest.tpot;
  return {{"ttft", latency_range(fastest.ttft, slowest.ttft)},
          {"tpot", has_tpot ? latency_range(*fastest.tpot, *slowest.tpot) : Json(nullptr)},
          {"end_to_end", latency_range(fastest.end_to_end, slowest.end_to_end)},
          {"requests_per_s", {slowest.requests_per_s, fastest.requests_per_s}},
          {"output_tokens_per_s", {slowest.output_tokens_per_s, fastest.output_tokens_per_s}},
          {"targets_met_by", runs_json(plan, targets)}};
}

}  // namespace

Json served_json(const ServedPlan& plan, const LatencyTargets& targets) {
  Json json;
  json["plan"] = plan_json(plan.choice);
  json["devices"] = plan.choice.parallel.devices();
  json["meets_targets"] = targets.empty() ? Json(nullptr) : Json(plan.verdict.met());
  json["tightest_target"] = tightest_json(plan, targets);
  json["kv_cache"] = {{"capacity_bytes", json_integer(plan.cache.bytes)},
                      {"longest_tokens", plan.cache.tokens},
                      {"requests", plan.cache.requests}};
  json["figures"] = figures_json(plan.figures);
  json["time_range"] = plan.time_range;
  json["range"] = range_json(plan, targets);
  return json;
}

Json served_question_json(const ServeQuestion& question, std::string_view schema) {
  Json json = question_json(question.plan, schema);
  // Requests take the place of a batch of one length.
  Json& workload = json["workload"];
  workload["batch_size"] = nullptr;
  workload["seq_len"] = nullptr;
  workload.erase("enc_seq_len");
  workload["traffic"] = traffic_json(question.traffic);
  // The seed of random acceptance, too.
  if (question.speculation) workload["traffic"]["seed"] = question.traffic.seed;
  json["scheduler"] = {{"max_sequences", question.limits.max_sequences},
                       {"batched_tokens", question.limits.batched_tokens},
                       {"admission", name_of(question.limits.admission)},
                       {"block_tokens", question.limits.block_tokens},
                       {"prefix_hit", question.limits.prefix_hit},
                       {"prefill_replicas", question.limits.prefill_replicas}};
  json["speculation"] = speculation_json(question.speculation);
  json["targets"] = {{"ttft_s", json_or_null(question.targets.ttft_s)},
                     {"tpot_s", json_or_null(question.targets.tpot_s)},
                     {"end_to_end_s", json_or_null(question.targets.end_to_end_s)},
                     {"percentile", question.targets.percentile},
                     {"steps", name_of(question.targets.steps)}};
  return json;
}

}  // namespace headroom::detail
