// DeviceChoiceReport -> Document and JSON: machines by types of weights, with the fewest devices of
// each and their speed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "describe.h"
#include "headroom/device_choice.h"
#include "plan_words.h"
#include "storage_report.h"
#include "units.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

using MaybeFewest = std::optional<FewestDevices>;

bool decodes(const DeviceChoiceReport& report) {
  return report.question.model.spec.main_stack().causal();
}

bool has_prices(const DeviceChoiceReport& report) { return !report.question.hour_prices.empty(); }

/// On a narrow screen, all but the devices of further types are left out.
void add_columns(const DeviceChoiceReport& report, const std::string& weights, Table& table) {
  const bool first = table.columns.size() == 2;
  const Importance importance = first ? Importance::essential : Importance::optional;
  const char* const speed = decodes(report) ? "decode" : "pass";
  table.columns.push_back(number_column(weights + "_devices", weights, {"[devices]", 0}));
  table.columns.push_back(
      number_column(weights + "_tokens_per_s", speed, {"[tokens/s]", 1}, importance));
  if (!has_prices(report)) return;
  table.columns.push_back(
      number_column(weights + "_price_per_hour", "price", {"[per hour]", 2}, importance));
  if (!decodes(report)) return;
  table.columns.push_back(number_column(weights + "_price_per_million_tokens", "price",
                                        {"[per M tokens]", 2}, Importance::optional));
}

void add_cells(const DeviceChoiceReport& report, const MaybeFewest& fewest,
               std::vector<Cell>& row) {
  const auto cell = [&](auto value_of) { return fewest ? Cell{value_of(*fewest)} : Cell{}; };
  row.push_back(
      cell([](const FewestDevices& one) { return Integer{one.choice.parallel.devices()}; }));
  row.push_back(cell([](const FewestDevices& one) { return one.time.tokens_per_s; }));
  if (!has_prices(report)) return;
  const auto price = [&](std::optional<double> FewestDevices::*member) {
    return fewest ? cell_or_none((*fewest).*member) : Cell{};
  };
  row.push_back(price(&FewestDevices::price_per_hour));
  if (decodes(report)) row.push_back(price(&FewestDevices::price_per_million_tokens));
}

Table device_table(const DeviceChoiceReport& report) {
  // Memory of devices is sold by the GiB.
  constexpr Unit kGiB{"GiB", Integer{1} << 30U};
  Table table;
  table.columns = {words_column("machine", "Machine"),
                   number_column("memory_bytes", "Memory", in_unit(kGiB, 1))};
  for (const auto& weights : report.question.weights) {
    add_columns(report, name_of(weights), table);
  }
  for (const DeviceRow& row : report.rows) {
    std::vector<Cell> cells{row.machine, row.memory_bytes};
    for (const MaybeFewest& fewest : row.fewest) add_cells(report, fewest, cells);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// The head of a report on one plan, with no machine yet.
PlanQuestion head_of(const DeviceQuestion& question) {
  PlanQuestion head;
  head.model = question.model;
  head.query = question.query;
  // Several types have a column each.
  if (question.weights.size() == 1) head.query.weights = question.weights.front();
  head.load = question.load;
  head.images = question.images;
  head.audio = question.audio;
  return head;
}

/// The factors of all times in the table: machines and types of weights have ranges of their own.
std::string factors_text(const DeviceChoiceReport& report) {
  std::vector<double> factors;
  for (const DeviceRow& row : report.rows) {
    for (const MaybeFewest& fewest : row.fewest) {
      if (fewest) factors.push_back(fewest->time.high_s / fewest->time.iteration_s);
    }
  }
  const auto [least, most] = std::ranges::minmax(factors);
  const std::string low = fmt::format("{:.2g}", least);
  const std::string high = fmt::format("{:.2g}", most);
  if (low == high) return factor_text(most);
  return fmt::format("nine of ten runs lie within a factor of {} to {}, by machine and weights",
                     low, high);
}

/// "as stored", or "in q4_k_m".
std::string first_type(const DeviceChoiceReport& report) {
  const std::optional<WeightForm>& first = report.question.weights.front();
  return first ? fmt::format("in {}", name_of(first)) : "as stored";
}

std::string verdict_of(const DeviceChoiceReport& report) {
  const std::int64_t most = report.question.most_devices;
  const std::size_t all = report.rows.size() + report.too_small.size();
  return fmt::format("{} of {} machines hold it {} with at most {}",
                     std::ranges::count_if(report.rows, holds_first_type), all, first_type(report),
                     with_noun(most, "device"));
}

Json json_of(const FewestDevices& fewest) {
  return {{"devices", fewest.choice.parallel.devices()},
          {"plan", plan_json(fewest.choice)},
          {"total_bytes", json_integer(fewest.memory_bytes)},
          {"iteration_s", fewest.time.iteration_s},
          {"low_s", fewest.time.low_s},
          {"high_s", fewest.time.high_s},
          {"tokens_per_s", fewest.time.tokens_per_s},
          {"ttft_s", json_or_null(fewest.time.ttft_s)},
          {"price_per_hour", json_or_null(fewest.price_per_hour)},
          {"price_per_million_tokens", json_or_null(fewest.price_per_million_tokens)}};
}

Json json_of(const DeviceRow& row, const DeviceQuestion& question) {
  Json json;
  json["name"] = row.machine;
  json["memory_bytes"] = json_integer(row.memory_bytes);
  json["weights"] = Json::array();
  for (std::size_t i = 0; i < row.fewest.size(); ++i) {
    json["weights"].push_back(
        {{"type", name_of(question.weights[i])},
         {"fewest", row.fewest[i] ? json_of(*row.fewest[i]) : Json(nullptr)}});
  }
  return json;
}

}  // namespace

Document to_document(const DeviceChoiceReport& report) {
  Document document = document_of(head_of(report.question));
  document.add_verdict("verdict", verdict_of(report), outcome_of(any_holds_first_type(report)));
  if (!report.rows.empty()) {
    document.add_line("range", factors_text(report));
    document.blocks.push_back(Heading{"Fewest devices by weight type"});
    document.blocks.push_back(device_table(report));
  }
  if (!report.too_small.empty()) {
    document.blocks.push_back(Heading{"Too small"});
    document.add_line("machines", fmt::format("{}", fmt::join(report.too_small, ", ")));
  }
  return document;
}

Json to_json(const DeviceChoiceReport& report) {
  Json json = question_json(head_of(report.question), "fit_devices.schema.json");
  json["verdict"] = verdict_json(any_holds_first_type(report), verdict_of(report));
  json["machine"] = nullptr;
  json["most_devices"] = report.question.most_devices;
  json["machines"] = Json::array();
  for (const DeviceRow& row : report.rows)
    json["machines"].push_back(json_of(row, report.question));
  json["too_small"] = report.too_small;
  return json;
}

}  // namespace headroom::detail
