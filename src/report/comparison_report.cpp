// Comparison -> Document and JSON (reports/compare.schema.json).
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>

#include "describe.h"
#include "schema_version.h"
#include "units.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

/// Milliseconds of the table's precision, as the table of a measurement shows them.
std::string milliseconds_text(double seconds) {
  constexpr double kLeastShown = 0.5e-6;
  return seconds > 0 && seconds < kLeastShown ? "<0.001" : grouped(seconds * 1e3, 3);
}

/// Counts whole, times in milliseconds, ratios with the two decimals that engines print.
std::string amount_text(const std::optional<Amount>& amount, QuantityKind kind) {
  if (!amount) return "–";
  if (const auto* count = std::get_if<Integer>(&*amount)) return with_separators(*count);
  const double value = std::get<double>(*amount);
  return kind == QuantityKind::printed ? fmt::format("{:.2f}", value) : milliseconds_text(value);
}

std::string difference_text(const ComparisonRow& row) {
  const bool is_finite = row.difference && std::isfinite(*row.difference);  // predicted as 0
  return is_finite ? deviation_text(*row.difference) : "–";
}

std::string tolerance_text(const ComparisonRow& row) {
  if (!row.tolerance) return "–";
  return *row.tolerance == 0 ? "exact" : fmt::format("±{:.4g} %", 100 * *row.tolerance);
}

/// Rows of quantities that neither side has are left out.
bool is_shown(const ComparisonRow& row) { return row.predicted || row.measured; }

/// Longer reasons would make the table wider than a terminal.
constexpr std::size_t kLongestReason = 16;

/// Titles of skipped rows by their reason, where it stands below the table: once for several rows,
/// or because it is long.
using RowsByReason = std::map<std::string, std::vector<std::string>>;

RowsByReason rows_by_reason(const Comparison& comparison) {
  RowsByReason reasons;
  for (const ComparisonRow& row : comparison.rows) {
    const bool is_skipped = is_shown(row) && row.result == RowResult::skip;
    if (is_skipped && !row.reason.empty()) reasons[row.reason].push_back(row.title);
  }
  std::erase_if(reasons, [](const auto& one) {
    return one.second.size() == 1 && one.first.size() <= kLongestReason;
  });
  return reasons;
}

/// "2 rows: not measured", "time: device rates are assumed".
std::string skipped_text(const std::string& reason, const std::vector<std::string>& titles) {
  const std::string& first = titles.front();
  const std::string rows = titles.size() == 1
                               ? first.substr(0, first.find(" ["))
                               : with_noun(static_cast<Integer>(titles.size()), "row");
  return fmt::format("{}: {}", rows, reason);
}

Verdict result_of(const ComparisonRow& row, const RowsByReason& below) {
  switch (row.result) {
    case RowResult::pass:
      return {"PASS", Outcome::good};
    case RowResult::fail:
      return {"FAIL", Outcome::bad};
    case RowResult::skip:
      break;
  }
  const bool is_below = row.reason.empty() || below.contains(row.reason);
  return {is_below ? "SKIP" : "SKIP: " + row.reason, Outcome::none};
}

std::string drift_text(const DriftReport& drift) {
  return fmt::format(
      "GEMM {:.2f} → {:.2f}×, memory {:.2f} → {:.2f}× the calibrated time; the prediction accounts "
      "for it",
      drift.before.compute, drift.after.compute, drift.before.memory, drift.after.memory);
}

Cell amount_cell(const std::optional<Amount>& amount) {
  return amount ? std::visit([](auto value) { return Cell{value}; }, *amount) : Cell{};
}

Cell count_cell(const std::optional<std::int64_t>& count) {
  return count ? Cell{Integer{*count}} : Cell{};
}

Json amount_json(const std::optional<Amount>& amount) {
  if (!amount) return nullptr;
  if (const auto* count = std::get_if<Integer>(&*amount)) return json_integer(*count);
  return std::get<double>(*amount);
}

template <class Value>
Json value_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Null for fields that a file from outside does not state.
Json workload_json(const RunIdentity& run) {
  Json json;
  json["phase"] = run.phase ? Json(name_of(first_pass(*run.phase))) : Json(nullptr);
  json["batch_size"] = value_or_null(run.batch_size);
  json["seq_len"] = value_or_null(run.seq_len);
  json["enc_seq_len"] = value_or_null(run.enc_seq_len);
  json["past_len"] = value_or_null(run.past_len);
  if (run.visual_tokens.value_or(0) > 0) json["visual_tokens"] = *run.visual_tokens;
  if (run.audio_tokens.value_or(0) > 0) json["audio_tokens"] = *run.audio_tokens;
  if (run.global_tokens.value_or(0) > 0) json["global_tokens"] = *run.global_tokens;
  json["weights"] = value_or_null(run.weights);
  json["dtype"] = value_or_null(run.dtype);
  json["attention"] = value_or_null(run.attention);
  json["logits"] = value_or_null(run.logits);
  json["new_tokens"] = value_or_null(run.new_tokens);
  return json;
}

std::optional<bool> passed(RowResult result) {
  if (result == RowResult::skip) return std::nullopt;
  return result == RowResult::pass;
}

Outcome outcome_of_rows(RowResult result) {
  const std::optional<bool> pass = passed(result);
  return pass ? outcome_of(*pass) : Outcome::none;
}

Json drift_json(const Drift& drift) {
  return {{"compute", drift.compute}, {"memory", drift.memory}};
}

}  // namespace

Document to_document(const Comparison& comparison) {
  Table table;
  table.columns = {words_column("quantity", "Quantity"),
                   number_column("predicted", "Predicted"),
                   number_column("measured", "Measured"),
                   number_column("difference", "Difference"),
                   number_column("tolerance", "Allowed", {}, Importance::optional),
                   words_column("result", "Result")};
  const RowsByReason below = rows_by_reason(comparison);
  for (const ComparisonRow& row : comparison.rows) {
    if (!is_shown(row)) continue;
    table.rows.push_back({row.title, amount_text(row.predicted, row.kind),
                          amount_text(row.measured, row.kind), difference_text(row),
                          tolerance_text(row), result_of(row, below)});
  }
  Document document;
  document.add_subject(comparison.model, comparison.workload);
  document.add_line("machine", comparison.machine);
  if (comparison.interrupted) document.add_line("interrupted", kInterruptedText);
  document.blocks.emplace_back(std::move(table));
  for (const auto& [reason, titles] : below) {
    document.add_line("skipped", skipped_text(reason, titles));
  }
  if (comparison.allocated) {
    document.add_line("allocated", describe_allocated(*comparison.allocated));
  }
  if (comparison.ranks) add_ranks(*comparison.ranks, document);
  if (comparison.drift) document.add_line("drift", drift_text(*comparison.drift));
  document.add_verdict("verdict", comparison.verdict, outcome_of_rows(comparison.result));
  return document;
}

Document to_row_table(std::span<const Comparison> comparisons) {
  Table table;
  for (const char* key : {"model", "workload", "threads", "quantity", "predicted", "measured",
                          "difference", "tolerance", "result", "reason"}) {
    table.columns.push_back(words_column(key, ""));
  }
  for (const Comparison& comparison : comparisons) {
    for (const ComparisonRow& row : comparison.rows) {
      table.rows.push_back(
          {comparison.model, comparison.workload, count_cell(comparison.run.threads), row.quantity,
           amount_cell(row.predicted), amount_cell(row.measured), cell_or_none(row.difference),
           cell_or_none(row.tolerance), std::string(name_of(row.result)), row.reason});
    }
  }
  return {{std::move(table)}};
}

Json to_json(const Comparison& comparison) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "compare.schema.json";
  json["model"] = comparison.model;
  json["workload"] = workload_json(comparison.run);
  json["verdict"] = verdict_json(passed(comparison.result), comparison.verdict);
  json["rows"] = Json::array();
  for (const ComparisonRow& row : comparison.rows) {
    json["rows"].push_back({{"quantity", row.quantity},
                            {"predicted", amount_json(row.predicted)},
                            {"measured", amount_json(row.measured)},
                            {"difference", json_or_null(row.difference)},
                            {"tolerance", json_or_null(row.tolerance)},
                            {"result", name_of(row.result)},
                            {"reason", row.reason.empty() ? Json(nullptr) : Json(row.reason)}});
  }
  json["allocated"] = nullptr;
  if (comparison.allocated) {
    const AllocatedMemory& allocated = *comparison.allocated;
    json["allocated"] = {{"arena_bytes", allocated.arena_bytes},
                         {"strided_copy_bytes", allocated.strided_copy_bytes},
                         {"kernel_scratch_bytes", allocated.kernel_scratch_bytes},
                         {"gemm_scratchpad_bytes", allocated.gemm_scratchpad_bytes}};
  }
  json["drift"] = nullptr;
  if (comparison.drift) {
    json["drift"] = {{"before", drift_json(comparison.drift->before)},
                     {"after", drift_json(comparison.drift->after)}};
  }
  if (comparison.ranks) json["processes"] = ranks_json(*comparison.ranks);
  json["context"] = {{"machine", comparison.machine}};
  if (comparison.context) {
    json["context"]["cpu"] = comparison.context->cpu;
    json["context"]["threads"] = comparison.context->threads;
    json["context"]["backend"] = comparison.context->backend;
    json["context"]["compiler"] = comparison.context->compiler;
    json["context"]["load_average"] = comparison.context->load_average;
    json["context"]["other_programs_cpus"] = json_or_null(comparison.context->other_programs_cpus);
  }
  json["notes"] = comparison.notes;
  json["interrupted"] = comparison.interrupted;
  return json;
}

}  // namespace headroom::detail
