// ServeReport -> Document and JSON: the verdict, latencies, throughput, and how full the replicas
// are.
#include <fmt/format.h>

#include "describe.h"
#include "headroom/serve.h"
#include "plan_words.h"
#include "serve_words.h"
#include "units.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

/// "TTFT 312.000 ms ≤ 500.000 ms"
std::string target_text(const char* name, const LatencySummary& latency, double target, bool met) {
  return fmt::format("{} {} {} {}", name, duration(latency.at_target), met ? "≤" : ">",
                     duration(target));
}

std::string verdict_text(const ServeReport& report) {
  const LatencyTargets& targets = report.question.targets;
  const ServedPlan& plan = report.plans.front();
  const ServeFigures& judged = plan.judged(targets);
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const LatencySummary& latency,
                       const std::optional<double>& target, bool met) {
    if (target) parts.push_back(target_text(name, latency, *target, met));
  };
  add("TTFT", judged.ttft, targets.ttft_s, plan.verdict.ttft);
  if (judged.tpot) add("TPOT", *judged.tpot, targets.tpot_s, plan.verdict.tpot);
  add("end to end", judged.end_to_end, targets.end_to_end_s, plan.verdict.end_to_end);
  return fmt::format("{} — {} for {:.4g} % of the requests{}",
                     plan.verdict.met() ? "MET" : "MISSED", fmt::join(parts, " · "),
                     targets.percentile, steps_text(targets.steps));
}

std::string throughput_text(const ServeFigures& figures) {
  return fmt::format("{} output tokens/s · {} input tokens/s · {:.4g} requests/s",
                     grouped(figures.output_tokens_per_s, 1),
                     grouped(figures.input_tokens_per_s, 1), figures.requests_per_s);
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

/// "medians: TTFT 26.2 ms to 140.1 ms · TPOT … · … output tokens/s"; empty without a range.
std::string figures_range(const ServedPlan& plan) {
  if (!plan.fastest || !plan.slowest) return {};
  const auto between = [](const LatencySummary& low, const LatencySummary& high) {
    return fmt::format("{} to {}", duration(low.p50), duration(high.p50));
  };
  std::string text = "medians: TTFT " + between(plan.fastest->ttft, plan.slowest->ttft);
  if (plan.fastest->tpot && plan.slowest->tpot) {
    text += " · TPOT " + between(*plan.fastest->tpot, *plan.slowest->tpot);
  }
  return text + fmt::format(" · {} to {} output tokens/s",
                            grouped(plan.slowest->output_tokens_per_s, 1),
                            grouped(plan.fastest->output_tokens_per_s, 1));
}

Table load_table(const ReplicaLoad& load) {
  Table table;
  table.columns = {words_column("quantity", "Quantity"), number_column("mean", "Mean", {"", 1}),
                   number_column("peak", "Peak", {"", 1})};
  const auto add = [&](const char* name, double mean, double peak) {
    table.rows.push_back({std::string(name), mean, peak});
  };
  add("running sequences", load.mean_running, static_cast<double>(load.peak_running));
  add("waiting requests", load.mean_waiting, static_cast<double>(load.peak_waiting));
  add("KV-cache in use [%]", 100 * load.mean_cache, 100 * load.peak_cache);
  table.rows.push_back({std::string("time in a step [%]"), 100 * load.busy, Cell{}});
  return table;
}

void add_loads(const ServeFigures& figures, Document& document) {
  const auto add = [&](const char* heading, const ReplicaLoad& load) {
    document.blocks.emplace_back(Heading{heading});
    document.blocks.emplace_back(load_table(load));
  };
  if (!figures.role_loads) return add("Load of one replica", figures.load);
  add("Load of one replica that prefills", figures.role_loads->prefill);
  add("Load of one replica that decodes", figures.role_loads->decode);
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
                   throughput_column("output_tokens_per_s", "Output")};
  for (const ServedPlan& plan : report.plans) {
    const ServeFigures& figures = plan.judged(report.question.targets);
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
  return fmt::format("{} by {}, each accepted with probability {:.3g}: {:.2f} per step",
                     with_noun(speculation.tokens, "token"), name_of(speculation.drafter),
                     speculation.acceptance, figures.tokens_per_step);
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
                                 describe_attention(question.query)};
  if (question.query.adapter.kind != AdapterKind::none) {
    words.push_back(describe_adapter(question.query));
  }
  return fmt::format("{}", fmt::join(words, " · "));
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
  if (const std::string text = figures_range(plan); !text.empty()) document.add_line("", text);
  add_largest_rate(report, document);
  document.add_line("KV-cache",
                    fmt::format("{} per rank · room for {} at once on each replica",
                                describe_bytes(plan.cache.bytes),
                                with_noun_grouped(plan.cache.requests, "such request")));
  if (const auto price = price_of(report)) {
    document.add_line("price", fmt::format("{:.2f} per hour · {:.3g} per million output tokens",
                                           price->per_hour, price->per_million_output_tokens));
  }
  add_engine(report.engine_command, report.engine, document);
  document.blocks.emplace_back(latency_table(plan.figures));
  add_loads(plan.figures, document);
  if (report.searched) {
    document.blocks.emplace_back(Heading{fmt::format(
        "Best plans on {} of {} simulated{}", with_noun(question.plan.devices, "device"),
        report.simulated, steps_text(question.targets.steps))});
    document.blocks.emplace_back(plans_table(report));
  }
  return document;
}

Json to_json(const ServeReport& report) {
  const ServeQuestion& question = report.question;
  Json json = served_question_json(question, "serve.schema.json");
  const bool has_targets = !question.targets.empty();
  json["verdict"] = has_targets
                        ? verdict_json(report.plans.front().verdict.met(), verdict_text(report))
                        : verdict_json(std::nullopt, "no targets");
  json["largest_requests_per_s"] = json_or_null(report.largest_rate);
  const auto price = price_of(report);
  json["price_per_hour"] = price ? Json(price->per_hour) : Json(nullptr);
  json["price_per_million_output_tokens"] =
      price ? Json(price->per_million_output_tokens) : Json(nullptr);
  add_engine(report.engine_command, report.engine, json);
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
