// ServeReport -> Document and JSON: the verdict, latencies, throughput, and how full the replicas
// are.
#include <fmt/format.h>

#include <cmath>

#include "describe.h"
#include "headroom/serve.h"
#include "plan_words.h"
#include "units.h"
#include "visit.h"
#include "writers.h"

namespace headroom::detail {
namespace {

/// "2 000 tokens in, 300 out"
std::string lengths_text(const ServeTraffic& traffic) {
  return fmt::format("{} tokens in · {} out", with_separators(traffic.input_tokens),
                     with_separators(traffic.output_tokens));
}

std::string traffic_text(const ServeTraffic& traffic) {
  const auto count = [](std::int64_t requests) {
    return fmt::format("{} requests", with_separators(requests));
  };
  return std::visit(
      Overloaded{[&](const PoissonArrivals& arrivals) {
                   return fmt::format("{:.4g} requests/s at random times · {} · {}",
                                      arrivals.requests_per_s, lengths_text(traffic),
                                      count(traffic.requests));
                 },
                 [&](const UserArrivals& arrivals) {
                   return fmt::format("{} users · {} · {}", with_separators(arrivals.users),
                                      lengths_text(traffic), count(traffic.requests));
                 },
                 [&](const TraceArrivals& arrivals) {
                   return fmt::format("{} of a trace",
                                      count(static_cast<std::int64_t>(arrivals.requests.size())));
                 }},
      traffic.arrivals);
}

/// "TTFT 312.000 ms ≤ 500.000 ms"
std::string target_text(const char* name, const LatencySummary& latency, double target, bool met) {
  return fmt::format("{} {} {} {}", name, duration(latency.at_target), met ? "≤" : ">",
                     duration(target));
}

std::string verdict_text(const ServeReport& report) {
  const LatencyTargets& targets = report.question.targets;
  const ServedPlan& plan = report.plans.front();
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const LatencySummary& latency,
                       const std::optional<double>& target, bool met) {
    if (target) parts.push_back(target_text(name, latency, *target, met));
  };
  add("TTFT", plan.figures.ttft, targets.ttft_s, plan.verdict.ttft);
  if (plan.figures.tpot) add("TPOT", *plan.figures.tpot, targets.tpot_s, plan.verdict.tpot);
  add("end to end", plan.figures.end_to_end, targets.end_to_end_s, plan.verdict.end_to_end);
  return fmt::format("{} — {} for {:.4g} % of the requests", plan.verdict.met() ? "MET" : "MISSED",
                     fmt::join(parts, " · "), targets.percentile);
}

std::string throughput_text(const ServeFigures& figures) {
  return fmt::format("{} output tokens/s · {} input tokens/s · {:.4g} requests/s",
                     grouped(figures.output_tokens_per_s, 1),
                     grouped(figures.input_tokens_per_s, 1), figures.requests_per_s);
}

struct Price {
  double per_hour;
  double per_million_output_tokens;
};

std::optional<Price> price_of(const ServeReport& report) {
  if (!report.question.price_per_hour) return std::nullopt;
  const ServedPlan& plan = report.plans.front();
  const double per_hour =
      *report.question.price_per_hour * static_cast<double>(plan.choice.parallel.devices());
  constexpr double kSecondsPerHour = 3600;
  return Price{per_hour, per_hour / kSecondsPerHour / plan.figures.output_tokens_per_s * 1e6};
}

/// Seconds, shown as milliseconds with one decimal: a simulation tells no more.
Column latency_column(const char* key, const char* title) {
  return number_column(key, title, {"[ms]", 1, 1, 1000});
}

Table latency_table(const ServeFigures& figures) {
  Table table;
  table.columns = {words_column("latency", "Latency"), latency_column("mean_s", "Mean"),
                   latency_column("p50_s", "p50"), latency_column("p90_s", "p90"),
                   latency_column("p99_s", "p99")};
  const auto add = [&](const char* name, const LatencySummary& latency) {
    table.rows.push_back({std::string(name), latency.mean, latency.p50, latency.p90, latency.p99});
  };
  add("TTFT", figures.ttft);
  if (figures.tpot) add("TPOT", *figures.tpot);
  add("end to end", figures.end_to_end);
  return table;
}

Table replica_table(const ServeFigures& figures) {
  Table table;
  table.columns = {words_column("quantity", "Quantity"), number_column("mean", "Mean", {"", 1}),
                   number_column("peak", "Peak", {"", 1})};
  const auto add = [&](const char* name, double mean, double peak) {
    table.rows.push_back({std::string(name), mean, peak});
  };
  add("running sequences", figures.mean_running, static_cast<double>(figures.peak_running));
  add("waiting requests", figures.mean_waiting, static_cast<double>(figures.peak_waiting));
  add("KV-cache in use [%]", 100 * figures.mean_cache, 100 * figures.peak_cache);
  table.rows.push_back({std::string("time in a step [%]"), 100 * figures.busy, Cell{}});
  return table;
}

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

/// Why a plan has its place: "TPOT 19 % below target".
std::string why_text(const ServedPlan& plan, const LatencyTargets& targets) {
  const auto tightest = tightest_target(plan.figures, targets);
  if (!tightest) return "";
  const double percent = 100 * std::abs(tightest->ratio - 1);
  return fmt::format("{} {:.{}f} % {} target", title_of(tightest->latency), percent,
                     percent < 10 ? 1 : 0, tightest->ratio > 1 ? "over" : "below");
}

/// "none meets the targets · closest: 8 devices, tp 8, TPOT 4.9 % over target"
std::string fewer_text(const ServedPlan& closest, const LatencyTargets& targets) {
  const std::int64_t devices = closest.choice.parallel.devices();
  return fmt::format("none meets the targets · closest: {}{}, {}",
                     devices == 1 ? "" : fmt::format("{} devices, ", devices),
                     describe(closest.choice, Purpose::serve), why_text(closest, targets));
}

Table plans_table(const ServeReport& report) {
  Table table;
  table.columns = {words_column("plan", "Plan"),
                   words_column("targets", "Targets"),
                   words_column("why", "Why"),
                   latency_column("ttft_s", "TTFT"),
                   latency_column("tpot_s", "TPOT"),
                   latency_column("end_to_end_s", "End to end"),
                   number_column("output_tokens_per_s", "Output", {"[tokens/s]", 1})};
  for (const ServedPlan& plan : report.plans) {
    const ServeFigures& figures = plan.figures;
    const Cell tpot = figures.tpot ? Cell{figures.tpot->at_target} : Cell{};
    table.rows.push_back(
        {describe(plan.choice, Purpose::serve),
         Verdict{plan.verdict.met() ? "met" : "missed", outcome_of(plan.verdict.met())},
         why_text(plan, report.question.targets), figures.ttft.at_target, tpot,
         figures.end_to_end.at_target, figures.output_tokens_per_s});
  }
  return table;
}

/// "3 tokens by mtp, each accepted with probability 0.7: 2.53 tokens per step"
std::string speculation_text(const Speculation& speculation, const ServeFigures& figures) {
  return fmt::format("{} token{} by {}, each accepted with probability {:.3g}: {:.2f} per step",
                     speculation.tokens, speculation.tokens == 1 ? "" : "s",
                     name_of(speculation.drafter), speculation.acceptance, figures.tokens_per_step);
}

Json speculation_json(const std::optional<Speculation>& speculation) {
  if (!speculation) return nullptr;
  return {{"drafter", name_of(speculation->drafter)},
          {"tokens", speculation->tokens},
          {"acceptance", speculation->acceptance}};
}

/// "dp 4 · 1 replica prefills, 3 decode, 2.100 ms between them"
std::string plan_text(const ServedPlan& plan, const SchedulerLimits& limits) {
  std::string text = describe(plan.choice, Purpose::serve);
  const std::int64_t prefilling = limits.prefill_replicas;
  if (prefilling == 0) return text;
  const std::int64_t decoding = plan.choice.parallel.data - prefilling;
  return fmt::format("{} · {} replica{}, {} decode{}, {} between them", text, prefilling,
                     prefilling == 1 ? " prefills" : "s prefill", decoding,
                     decoding == 1 ? "s" : "", duration(plan.figures.mean_transfer_s));
}

std::string types_text(const PlanQuestion& question) {
  std::vector<std::string> words{fmt::format("{} × {}", question.devices, question.rates.name),
                                 fmt::format("{} attention", name_of(question.query.attention))};
  if (question.query.adapter.kind != AdapterKind::none) {
    words.push_back(describe_adapter(question.query));
  }
  return fmt::format("{}", fmt::join(words, " · "));
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

Json figures_json(const ServeFigures& figures) {
  return {{"requests", figures.requests},
          {"duration_s", figures.duration_s},
          {"requests_per_s", figures.requests_per_s},
          {"input_tokens_per_s", figures.input_tokens_per_s},
          {"output_tokens_per_s", figures.output_tokens_per_s},
          {"ttft", latency_json(figures.ttft)},
          {"tpot", figures.tpot ? latency_json(*figures.tpot) : Json(nullptr)},
          {"end_to_end", latency_json(figures.end_to_end)},
          {"steps", figures.steps},
          {"busy", figures.busy},
          {"mean_running", figures.mean_running},
          {"peak_running", figures.peak_running},
          {"mean_waiting", figures.mean_waiting},
          {"peak_waiting", figures.peak_waiting},
          {"mean_kv_cache", figures.mean_cache},
          {"peak_kv_cache", figures.peak_cache},
          {"preemptions", figures.preemptions},
          {"mean_transfer_s", figures.mean_transfer_s},
          {"tokens_per_step", figures.tokens_per_step},
          {"warm_up_requests", figures.warm_up_requests}};
}

Json tightest_json(const ServedPlan& plan, const LatencyTargets& targets) {
  const auto tightest = tightest_target(plan.figures, targets);
  if (!tightest) return nullptr;
  return {{"latency", name_of(tightest->latency)}, {"ratio", tightest->ratio}};
}

Json served_json(const ServedPlan& plan, const LatencyTargets& targets) {
  Json json;
  json["plan"] = plan_json(plan.choice);
  json["devices"] = plan.choice.parallel.devices();
  json["meets_targets"] = plan.verdict.met();
  json["tightest_target"] = tightest_json(plan, targets);
  json["kv_cache"] = {{"capacity_bytes", json_integer(plan.cache.bytes)},
                      {"longest_tokens", plan.cache.tokens},
                      {"requests", plan.cache.requests}};
  json["figures"] = figures_json(plan.figures);
  json["time_range"] = plan.time_range;
  return json;
}

/// A largest rate is looked for with targets and random arrivals only.
void add_largest_rate(const ServeReport& report, Document& document) {
  const ServeQuestion& question = report.question;
  const bool is_random = std::holds_alternative<PoissonArrivals>(question.traffic.arrivals);
  if (question.targets.empty() || !is_random) return;
  document.add_line("largest rate",
                    report.largest_rate
                        ? fmt::format("{:.3g} requests/s meet the targets", *report.largest_rate)
                        : "none: slower arrivals miss the targets, too");
}

}  // namespace

Document to_document(const ServeReport& report) {
  const ServeQuestion& question = report.question;
  const ServedPlan& plan = report.plans.front();
  Document document;
  const ModelSpec& spec = question.plan.model.spec;
  document.add_subject(spec.name, describe(spec));
  document.add_line("requests", traffic_text(question.traffic));
  document.add_line("devices", types_text(question.plan));
  document.add_line("plan", plan_text(plan, question.limits));
  add_device(question.plan, document);
  if (!question.targets.empty()) {
    document.add_verdict("targets", verdict_text(report), outcome_of(plan.verdict.met()));
  }
  if (report.closest_below) {
    document.add_line("fewer devices", fewer_text(*report.closest_below, question.targets));
  }
  if (question.speculation) {
    document.add_line("speculation", speculation_text(*question.speculation, plan.figures));
  }
  document.add_line("throughput", throughput_text(plan.figures));
  document.add_line("range", factor_text(1 + plan.time_range));
  add_largest_rate(report, document);
  document.add_line(
      "KV-cache",
      fmt::format("{} per rank · room for {} such requests at once on each replica",
                  describe_bytes(plan.cache.bytes), with_separators(plan.cache.requests)));
  if (const auto price = price_of(report)) {
    document.add_line("price", fmt::format("{:.2f} per hour · {:.3g} per million output tokens",
                                           price->per_hour, price->per_million_output_tokens));
  }
  if (!report.engine_command.empty()) document.add_line("command", report.engine_command);
  document.blocks.emplace_back(latency_table(plan.figures));
  document.blocks.emplace_back(Heading{"Load of one replica"});
  document.blocks.emplace_back(replica_table(plan.figures));
  if (report.searched) {
    document.blocks.emplace_back(
        Heading{fmt::format("Best plans on {} device{} of {} simulated", question.plan.devices,
                            question.plan.devices == 1 ? "" : "s", report.simulated)});
    document.blocks.emplace_back(plans_table(report));
  }
  return document;
}

Json to_json(const ServeReport& report) {
  const ServeQuestion& question = report.question;
  Json json = question_json(question.plan, "serve.schema.json");
  // Requests take the place of a batch of one length.
  Json& workload = json["workload"];
  workload["batch_size"] = nullptr;
  workload["seq_len"] = nullptr;
  workload["traffic"] = traffic_json(question.traffic);
  const bool has_targets = !question.targets.empty();
  json["verdict"] = has_targets
                        ? verdict_json(report.plans.front().verdict.met(), verdict_text(report))
                        : verdict_json(std::nullopt, "no targets");
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
                     {"percentile", question.targets.percentile}};
  json["largest_requests_per_s"] = json_or_null(report.largest_rate);
  const auto price = price_of(report);
  json["price_per_hour"] = price ? Json(price->per_hour) : Json(nullptr);
  json["price_per_million_output_tokens"] =
      price ? Json(price->per_million_output_tokens) : Json(nullptr);
  json["engine_command"] =
      report.engine_command.empty() ? Json(nullptr) : Json(report.engine_command);
  json["simulated_plans"] = report.simulated;
  json["plans"] = Json::array();
  for (const ServedPlan& plan : report.plans) {
    json["plans"].push_back(served_json(plan, question.targets));
  }
  json["closest_below"] =
      report.closest_below ? served_json(*report.closest_below, question.targets) : Json(nullptr);
  return json;
}

}  // namespace headroom::detail
