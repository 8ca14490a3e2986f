// ServeMachinesReport -> Document and JSON: machines with the devices that meet latency targets,
// the best plan on them, its price, and the range of its latencies and throughput.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "describe.h"
#include "headroom/serve.h"
#include "plan_words.h"
#include "serve_words.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

bool meets(const ServeReport& report) { return report.plans.front().verdict.met(); }

bool any_meets(const ServeMachinesReport& report) {
  return std::ranges::any_of(report.machines, meets);
}

std::string verdict_of(const ServeMachinesReport& report) {
  const std::size_t all = report.machines.size() + report.too_small.size();
  return fmt::format("{} of {} machines meet the targets with at most {}",
                     std::ranges::count_if(report.machines, meets), all,
                     with_noun(report.most_devices, "device"));
}

std::vector<Column> columns_of(bool has_prices) {
  std::vector<Column> columns{
      words_column("machine", "Machine"), number_column("devices", "Devices", {"", 0}),
      words_column("plan", "Plan"),       words_column("targets", "Targets"),
      words_column("why", "Why"),         throughput_column("output_tokens_per_s", "Output")};
  if (!has_prices) return columns;
  columns.push_back(number_column("price_per_hour", "Price", {"[per hour]", 2}));
  columns.push_back(number_column("price_per_million_output_tokens", "Price", {"[per M out]", 2},
                                  Importance::optional));
  return columns;
}

Table machines_table(const ServeMachinesReport& report) {
  const bool has_prices = std::ranges::any_of(
      report.machines, [](const ServeReport& one) { return price_of(one).has_value(); });
  Table table;
  table.columns = columns_of(has_prices);
  for (const ServeReport& one : report.machines) {
    const ServedPlan& plan = one.plans.front();
    std::vector<Cell> row{one.question.plan.rates.name,
                          Integer{plan.choice.parallel.devices()},
                          describe(plan.choice, Purpose::serve),
                          Verdict{meets(one) ? "met" : "missed", outcome_of(meets(one))},
                          why_text(plan, report.question.targets),
                          plan.figures.output_tokens_per_s};
    if (has_prices) {
      const auto price = price_of(one);
      row.push_back(price ? Cell{price->per_hour} : Cell{});
      row.push_back(price ? Cell{price->per_million_output_tokens} : Cell{});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Cell met_by(const ServedPlan& plan, const LatencyTargets& targets) {
  const RunsThatMeet runs = runs_that_meet(plan, targets).value();
  return Verdict{std::string(name_of(runs)), outcome_of(runs == RunsThatMeet::all)};
}

/// Median latencies and throughput of each machine's plan, with all steps as fast and as slow as in
/// nine of ten runs:
///
///     Machine     TTFT     to  TPOT    to      Output          to  Met by
///                 [ms]   [ms]  [ms]  [ms]  [tokens/s]  [tokens/s]
Table range_table(const ServeMachinesReport& report) {
  Table table;
  table.columns = {words_column("machine", "Machine"),
                   latency_column("ttft_low_s", "TTFT"),
                   latency_column("ttft_high_s", "to"),
                   latency_column("tpot_low_s", "TPOT"),
                   latency_column("tpot_high_s", "to"),
                   throughput_column("output_tokens_per_s_low", "Output"),
                   throughput_column("output_tokens_per_s_high", "to"),
                   words_column("targets_met_by", "Met by")};
  const auto median = [](const std::optional<LatencySummary>& latency) {
    return latency ? Cell{latency->p50} : Cell{};
  };
  for (const ServeReport& one : report.machines) {
    const ServedPlan& plan = one.plans.front();
    const ServeFigures& fastest = plan.fastest.value();
    const ServeFigures& slowest = plan.slowest.value();
    table.rows.push_back({one.question.plan.rates.name, median(fastest.ttft), median(slowest.ttft),
                          median(fastest.tpot), median(slowest.tpot), slowest.output_tokens_per_s,
                          fastest.output_tokens_per_s, met_by(plan, report.question.targets)});
  }
  return table;
}

/// The factors of all times in the table.
std::string ranges_text(const ServeMachinesReport& report) {
  std::vector<double> factors;
  for (const ServeReport& one : report.machines) {
    factors.push_back(1 + one.plans.front().time_range);
  }
  return factor_text(std::ranges::max(factors));
}

Json machine_json(const ServeReport& report) {
  const auto price = price_of(report);
  return {{"name", report.question.plan.rates.name},
          {"best", served_json(report.plans.front(), report.question.targets)},
          {"largest_requests_per_s", json_or_null(report.largest_rate)},
          {"price_per_hour", price ? Json(price->per_hour) : Json(nullptr)},
          {"price_per_million_output_tokens",
           price ? Json(price->per_million_output_tokens) : Json(nullptr)}};
}

}  // namespace

Document to_document(const ServeMachinesReport& report) {
  Document document;
  const ModelSpec& spec = report.question.plan.model.spec;
  document.add_subject(spec.name, describe(spec));
  document.add_verdict("verdict", verdict_of(report), outcome_of(any_meets(report)));
  document.add_line("requests", traffic_text(report.question.traffic));
  document.add_line("targets", targets_text(report.question.targets));
  if (!report.machines.empty()) {
    document.add_line("range", ranges_text(report));
    document.blocks.emplace_back(Heading{"Fewest devices by machine"});
    document.blocks.emplace_back(machines_table(report));
    document.blocks.emplace_back(Heading{"Median latencies and throughput, for nine of ten runs"});
    document.blocks.emplace_back(range_table(report));
  }
  if (!report.too_small.empty()) {
    document.blocks.emplace_back(Heading{"Too small"});
    document.add_line("machines", fmt::format("{}", fmt::join(report.too_small, ", ")));
  }
  return document;
}

Json to_json(const ServeMachinesReport& report) {
  Json json = served_question_json(report.question, "serve_machines.schema.json");
  json["machine"] = nullptr;
  json["verdict"] = verdict_json(any_meets(report), verdict_of(report));
  json["most_devices"] = report.most_devices;
  json["machines"] = Json::array();
  for (const ServeReport& one : report.machines) json["machines"].push_back(machine_json(one));
  json["too_small"] = report.too_small;
  return json;
}

}  // namespace headroom::detail
