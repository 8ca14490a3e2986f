// TrainTimeReport -> Document and JSON.
#include <fmt/format.h>

#include <cmath>

#include "describe.h"
#include "plan_words.h"
#include "writers.h"

namespace headroom::detail {
namespace {

constexpr double kSecondsPerDay = 86400;
constexpr double kJoulesPerMegawattHour = 3.6e9;

std::string days(double seconds) { return grouped(seconds / kSecondsPerDay, 1) + " days"; }

/// `value` without its fraction; it may exceed 64 bits.
std::string whole(double value) { return grouped(std::floor(value), 0); }

/// The answer: how long the run takes.
std::string verdict_of(const TrainTimeReport& report) {
  return fmt::format("{} — {} steps of {}", days(report.seconds), whole(report.steps),
                     duration(report.plan.figures.time.iteration_s));
}

Table rule_table(const TrainTimeReport& report) {
  Table table;
  table.columns = {
      words_column("rule", "Rule of thumb"),
      number_column("flops", "FLOPs", {"[ZFLOP]", 1, Integer{1'000'000'000'000'000'000} * 1000}),
      number_column("share", "Of peak", {"[%]", 1, 1, 100})};
  table.rows.push_back(
      {std::string("6·N·D, no recomputation"), report.six_nd, report.six_nd_share});
  table.rows.push_back(
      {std::string("8·N·D, all recomputed"), report.eight_nd, report.eight_nd_share});
  return table;
}

}  // namespace

Document to_document(const TrainTimeReport& report) {
  Document document = document_of(report.question);
  document.add_line("plan", describe(report.plan.choice, Purpose::train));
  add_device(report.question, document);
  add_host_link(report.question, report.plan.choice, document);
  document.add_verdict("time", verdict_of(report));
  document.add_line("range", fmt::format("{} to {}, for nine of ten runs", days(report.low_s),
                                         days(report.high_s)));
  document.add_line("device-hours", whole(report.device_hours));
  if (report.energy_j) {
    document.add_line("energy",
                      fmt::format("{} MWh at {} W per device, excluding hosts and cooling",
                                  grouped(*report.energy_j / kJoulesPerMegawattHour, 0),
                                  grouped(*report.budget.power_w, 0)));
  }
  if (report.price) {
    document.add_line("price", fmt::format("{} at {:.2f} per device-hour", whole(*report.price),
                                           *report.budget.price_per_hour));
  }
  if (report.plan.figures.time.mfu) {
    document.add_line("MFU", fmt::format("{:.1f} %", 100 * *report.plan.figures.time.mfu));
  }
  document.add_line(
      "N, D", fmt::format("{} active parameters, {} tokens",
                          with_separators(report.active_parameters), whole(report.budget.tokens)));
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
  return json;
}

}  // namespace headroom::detail
