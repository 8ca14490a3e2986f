// SharesReport -> Document and JSON: FLOPs and time by part of a model as sequences grow.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "describe.h"
#include "ffn_crossover.h"
#include "legend.h"
#include "schema_version.h"
#include "study_words.h"
#include "writers.h"

namespace headroom::detail {
namespace {

constexpr std::array kShares{Share::projections, Share::attention, Share::ffn, Share::head,
                             Share::other};

std::string title_of(Share share) {
  switch (share) {
    case Share::projections:
      return "Projections";
    case Share::attention:
      return "Attention";
    case Share::ffn:
      return "FFN";
    case Share::head:
      return "Head";
    case Share::other:
      break;
  }
  return "Other";
}

template <class Value>
double total_of(const Shares<Value>& shares) {
  double total = 0;
  for (const Value& value : shares.values) total += static_cast<double>(value);
  return total;
}

template <class Value>
void add_percents(const std::optional<Shares<Value>>& shares, std::vector<Cell>& row) {
  for (const Share share : kShares) {
    row.push_back(shares ? Cell{100 * static_cast<double>((*shares)[share]) / total_of(*shares)}
                         : Cell{});
  }
}

/// `get` selects FLOPs, predicted or measured times of a row.
template <class Value, class Get>
Table percent_table(const SharesReport& report, Get get) {
  Table table;
  table.columns = {number_column("seq_len", "s")};
  for (const Share share : kShares) {
    table.columns.push_back(
        number_column(fmt::format("{}_percent", name_of(share)), title_of(share), {"[%]", 1}));
  }
  const bool is_time = std::is_same_v<Value, double>;
  table.columns.push_back(
      is_time ? milliseconds_column("total_s", "Total")
              : number_column("matrix_flops", "Total", {"[GFLOP]", 3, 1'000'000'000}));
  for (const ShareRow& one : report.rows) {
    const std::optional<Shares<Value>> shares = get(one);
    std::vector<Cell> row{Integer{one.seq_len}};
    row.reserve(kShareCount + 2);
    add_percents(shares, row);
    row.push_back(shares ? Cell{total_of(*shares)} : Cell{});
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string verdict_of(const SharesReport& report, Legend& legend) {
  if (!report.attention_side || !report.ffn_side) {
    return "this model does not have both attention and a feed-forward network";
  }
  return "attention " + legend.note(describe(FfnCrossover{*report.attention_side, *report.ffn_side,
                                                          report.attention_passes_ffn}));
}

bool has_times(const SharesReport& report, std::optional<Shares<double>> ShareRow::*times) {
  return std::ranges::any_of(report.rows,
                             [&](const ShareRow& row) { return (row.*times).has_value(); });
}

Json shares_json(const Shares<Integer>& shares) {
  Json json;
  for (const Share share : kShares) {
    json[std::string(name_of(share))] = json_integer(shares[share]);
  }
  return json;
}

Json shares_json(const std::optional<Shares<double>>& shares) {
  if (!shares) return nullptr;
  Json json;
  for (const Share share : kShares) json[std::string(name_of(share))] = (*shares)[share];
  return json;
}

}  // namespace

Document to_document(const SharesReport& report) {
  const ModelSpec& spec = report.model.model.spec;
  Document document;
  document.add_subject(spec.name, describe(spec));
  Legend legend;
  const std::string verdict = verdict_of(report, legend);
  legend.note(format(Symbol::seq_len));
  std::string lengths = "one sequence";
  if (spec.reads_two_sequences()) lengths += legend.note(", n = s");
  add_lines(legend.lines(), document);
  add_machines(report.machine, report.context, document);
  document.add_verdict("verdict", verdict);
  document.blocks.push_back(Heading{"Matrix FLOPs by part, " + lengths});
  document.blocks.push_back(
      percent_table<Integer>(report, [](const ShareRow& row) { return std::optional(row.flops); }));
  if (has_times(report, &ShareRow::predicted_s)) {
    document.blocks.push_back(Heading{"Predicted time by part"});
    document.blocks.push_back(
        percent_table<double>(report, [](const ShareRow& row) { return row.predicted_s; }));
  }
  if (has_times(report, &ShareRow::measured_s)) {
    document.blocks.push_back(Heading{"Measured time by part"});
    document.blocks.push_back(
        percent_table<double>(report, [](const ShareRow& row) { return row.measured_s; }));
  }
  for (const SkippedRun& skipped : report.skipped) {
    document.add_line("not run", fmt::format("s = {}: {}", skipped.seq_len, skipped.reason));
  }
  return document;
}

Document to_length_table(const SharesReport& report) {
  Table table;
  table.columns = {number_column("seq_len", "s"), words_column("share", "Part"),
                   number_column("matrix_flops", "Matrix"),
                   number_column("predicted_s", "Predicted"),
                   number_column("measured_s", "Measured")};
  for (const ShareRow& row : report.rows) {
    for (const Share share : kShares) {
      table.rows.push_back({Integer{row.seq_len}, std::string(name_of(share)), row.flops[share],
                            row.predicted_s ? Cell{(*row.predicted_s)[share]} : Cell{},
                            row.measured_s ? Cell{(*row.measured_s)[share]} : Cell{}});
    }
  }
  return {{std::move(table)}};
}

Json to_json(const SharesReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "complexity.schema.json";
  json["study"] = "shares";
  json["model"] = to_json(report.model.model);
  json["workload"] =
      to_json(workload_at(report.model, report.rows.back().seq_len), report.model.model.spec);
  json["workload"]["seq_len"] = nullptr;
  Legend legend;
  json["verdict"] = verdict_json(std::nullopt, verdict_of(report, legend));
  const auto side = [](const std::optional<Expr>& expr) {
    return expr ? Json(format(*expr)) : Json(nullptr);
  };
  json["attention_passes_ffn"] = {
      {"from",
       report.attention_passes_ffn ? json_integer(*report.attention_passes_ffn) : Json(nullptr)},
      {"attention", side(report.attention_side)},
      {"ffn", side(report.ffn_side)}};
  Json formulas;
  for (const Share share : kShares) {
    formulas[std::string(name_of(share))] = format(report.formulas[share]);
  }
  json["formulas"] = std::move(formulas);
  json["rows"] = Json::array();
  for (const ShareRow& row : report.rows) {
    json["rows"].push_back({{"seq_len", row.seq_len},
                            {"matrix_flops", shares_json(row.flops)},
                            {"predicted_s", shares_json(row.predicted_s)},
                            {"measured_s", shares_json(row.measured_s)}});
  }
  json["skipped"] = skipped_json(report.skipped);
  json["machine"] = report.machine.empty() ? Json(nullptr) : Json(report.machine);
  json["context"] = report.context ? context_json(*report.context) : Json(nullptr);
  json["notes"] = report.notes;
  return json;
}

}  // namespace headroom::detail
