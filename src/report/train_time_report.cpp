// TrainTimeReport -> Document and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "describe.h"
#include "plan_words.h"
#include "units.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

struct TimeUnit {
  const char* name;
  double seconds;
};
constexpr TimeUnit kTimeUnits[] = {{"days", 86400}, {"h", 3600}, {"min", 60}};
/// A unit is shown from this many of it on: 47 hours, then 2 days.
constexpr double kLeastOfUnit = 2;

constexpr double kJoulesPerKilowattHour = 3.6e6;
constexpr double kJoulesPerMegawattHour = 3.6e9;
/// FLOPs are shown in this unit, or in a smaller one.
constexpr double kZettaFlop = 1e21;

/// "67.4 days", "14.7 min" or "51.250 s": `seconds` in the unit that suits a run of `run_s`.
std::string run_time(double seconds, double run_s) {
  for (const TimeUnit& unit : kTimeUnits) {
    if (run_s < kLeastOfUnit * unit.seconds) continue;
    return fmt::format("{} {}", grouped(seconds / unit.seconds, 1), unit.name);
  }
  return duration(seconds);
}

/// `value` without its fraction; it may exceed 64 bits.
std::string whole(double value) { return grouped(std::floor(value), 0); }

/// Without its fraction from 100 on, else with three digits.
std::string device_hours_text(double hours) {
  return hours >= 100 ? whole(hours) : short_text(hours);
}

/// Without its fraction from 1,000 on, else with hundredths, or three digits below them.
std::string price_text(double price) {
  if (price >= 1000) return whole(price);
  return price >= 0.01 ? fmt::format("{:.2f}", price) : short_text(price);
}

std::string energy_text(double joules) {
  if (joules >= kJoulesPerMegawattHour) return short_text(joules / kJoulesPerMegawattHour) + " MWh";
  return short_text(joules / kJoulesPerKilowattHour) + " kWh";
}

/// The answer: how long the run takes.
std::string verdict_of(const TrainTimeReport& report) {
  return fmt::format("{} — {} {} of {}", run_time(report.seconds, report.seconds),
                     whole(report.steps), plural(static_cast<Integer>(report.steps), "step"),
                     duration(report.plan.figures.time.iteration_s));
}

/// FLOPs per parameter and token, times N·D.
std::vector<Cell> rule_row(const TrainTimeReport& report, int factor, const char* recomputation) {
  const double of_six = factor / 6.0;
  return {fmt::format("{}·N·D, {}", factor, recomputation), of_six * report.six_nd,
          of_six * report.six_nd_share};
}

Table rule_table(const TrainTimeReport& report) {
  const auto largest = static_cast<Integer>(std::min(report.six_nd, kZettaFlop));
  Table table;
  table.columns = {
      words_column("rule", "Rule of thumb"),
      number_column("flops", "FLOPs", in_unit(operation_unit(largest, OperationUnit::flop), 1)),
      number_column("share", "Of peak", {"[%]", 1, 1, 100})};
  table.rows = {rule_row(report, report.flops_per_parameter, "no recomputation"),
                rule_row(report, report.flops_per_parameter + 2, "all recomputed")};
  return table;
}

/// A column of a run's figures and the value in it.
struct RunFigure {
  const char* key;
  Cell value;
};

std::vector<RunFigure> run_figures(const TrainTimeReport& report) {
  const TrainingBudget& budget = report.budget;
  return {{"tokens", budget.tokens},
          {"steps", report.steps},
          {"iteration_s", report.plan.figures.time.iteration_s},
          {"total_s", report.seconds},
          {"low_s", report.low_s},
          {"high_s", report.high_s},
          {"device_hours", report.device_hours},
          {"power_w", cell_or_none(budget.power_w)},
          {"energy_j", cell_or_none(report.energy_j)},
          {"price_per_device_hour", cell_or_none(budget.price_per_hour)},
          {"price", cell_or_none(report.price)},
          {"active_parameters", report.active_parameters},
          {"six_nd_flops", report.six_nd},
          {"six_nd_share", report.six_nd_share},
          {"eight_nd_flops", report.eight_nd},
          {"eight_nd_share", report.eight_nd_share}};
}

}  // namespace

Document to_run_table(const TrainTimeReport& report) {
  Table table;
  table.rows.emplace_back();
  for (RunFigure& figure : run_figures(report)) {
    table.columns.push_back(number_column(figure.key, figure.key));
    table.rows.front().push_back(std::move(figure.value));
  }
  table.columns.push_back(words_column("plan", "plan"));
  table.rows.front().emplace_back(describe(report.plan.choice, Purpose::train));
  return {{std::move(table)}};
}

Document to_document(const TrainTimeReport& report) {
  Document document = document_of(report.question);
  document.add_line("plan", describe(report.plan.choice, Purpose::train));
  add_device(report.question, document);
  add_host_link(report.question, report.plan.choice, document);
  document.add_verdict("time", verdict_of(report));
  document.add_line(
      "range", fmt::format("{} to {}, for nine of ten runs", run_time(report.low_s, report.seconds),
                           run_time(report.high_s, report.seconds)));
  document.add_line("device-hours", device_hours_text(report.device_hours));
  if (report.energy_j) {
    document.add_line(
        "energy", fmt::format("{} at {} W per device, excluding hosts and cooling",
                              energy_text(*report.energy_j), grouped(*report.budget.power_w, 0)));
  }
  if (report.price) {
    document.add_line("price", fmt::format("{} at {} per device-hour", price_text(*report.price),
                                           price_text(*report.budget.price_per_hour)));
  }
  if (report.plan.figures.time.mfu) {
    document.add_line("MFU", fmt::format("{:.1f} %", 100 * *report.plan.figures.time.mfu));
  }
  document.add_line(
      "N, D",
      fmt::format("{} active parameters{}, {} tokens", with_separators(report.active_parameters),
                  report.flops_per_parameter == 6 ? "" : " that an adapter freezes",
                  whole(report.budget.tokens)));
  document.blocks.emplace_back(rule_table(report));
  return document;
}

Json to_json(const TrainTimeReport& report) {
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json json = question_json(report.question, "train-time.schema.json");
  add_host_link(report.question, report.plan.choice, json);
  json.update(result_json(report.plan, report.question));
  json["verdict"] = verdict_json(std::nullopt, verdict_of(report));
  json["tokens"] = report.budget.tokens;
  json["availability"] = report.budget.availability;
  json["steps"] = report.steps;
  json["total_s"] = report.seconds;
  json["low_s"] = report.low_s;
  json["high_s"] = report.high_s;
  json["device_hours"] = report.device_hours;
  json["power_w"] = number(report.budget.power_w);
  json["energy_j"] = number(report.energy_j);
  json["price_per_device_hour"] = number(report.budget.price_per_hour);
  json["price"] = number(report.price);
  json["active_parameters"] = json_integer(report.active_parameters);
  json["six_nd_flops"] = report.six_nd;
  json["six_nd_share"] = report.six_nd_share;
  json["eight_nd_flops"] = report.eight_nd;
  json["eight_nd_share"] = report.eight_nd_share;
  json["flops_per_parameter"] = report.flops_per_parameter;
  return json;
}

}  // namespace headroom::detail
