#include "headroom/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "identity.h"

namespace headroom {
namespace {

/// Of one operator's time, which scatters more than their sum.
constexpr double kOperatorTolerance = 0.3;
/// Operators below this share of the time say more about the clock than about themselves.
constexpr double kLeastShare = 0.02;
/// Where runs differ by more, a verdict on their time would be one on the noise.
constexpr double kTooNoisy = 0.10;
/// Below this growth, pages of libraries and of the allocator weigh more than the model.
constexpr Integer kLeastGrowth = Integer{128} << 20;

double number(const Amount& amount) {
  return std::visit([](auto value) { return static_cast<double>(value); }, amount);
}

/// (measured − predicted) / predicted. Counts, which are not negative, are subtracted as they are:
/// a double would not tell two large ones apart.
double difference_of(const Amount& predicted, const Amount& measured) {
  const auto* const expected = std::get_if<Integer>(&predicted);
  const auto* const counted = std::get_if<Integer>(&measured);
  const double difference = expected != nullptr && counted != nullptr
                                ? static_cast<double>(*counted - *expected)
                                : number(measured) - number(predicted);
  if (difference == 0) return 0;
  const double base = number(predicted);
  return base != 0 ? difference / base : std::numeric_limits<double>::infinity();
}

/// The prediction of the resident peak: what the process had before, and what the model adds.
std::optional<Amount> predicted_amount(Quantity quantity, const Figured& predicted,
                                       const Figured& measured) {
  if (quantity == Quantity::rss_peak_bytes) {
    if (!predicted.rss_growth_bytes || !measured.rss_before_bytes) return std::nullopt;
    return Amount{checked_add(*predicted.rss_growth_bytes, *measured.rss_before_bytes)};
  }
  const auto found = predicted.amounts.find(quantity);
  return found == predicted.amounts.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Amount> measured_amount(Quantity quantity, const Figured& measured) {
  const auto found = measured.amounts.find(quantity);
  return found == measured.amounts.end() ? std::nullopt : std::optional(found->second);
}

void judge(ComparisonRow& row, double tolerance) {
  row.tolerance = tolerance;
  row.result =
      row.difference && std::abs(*row.difference) <= tolerance ? RowResult::pass : RowResult::fail;
}

ComparisonRow compare_quantity(const QuantityInfo& info, const Figured& predicted,
                               const Figured& measured, const CompareOptions& options) {
  const Quantity quantity = info.quantity;
  ComparisonRow row;
  row.quantity = info.name;
  row.title = info.title;
  row.predicted = predicted_amount(quantity, predicted, measured);
  row.measured = measured_amount(quantity, measured);
  if (!row.predicted || !row.measured) {
    row.reason = !row.predicted && !row.measured ? "does not apply"
                 : !row.predicted                ? "not predicted"
                                                 : "not measured";
    // headroom counts on both sides whatever there is.
    const bool one_side = row.predicted.has_value() != row.measured.has_value();
    if (one_side && info.kind == QuantityKind::count && measured.engine == kOwnEngine) {
      judge(row, default_tolerance(quantity));
    }
    return row;
  }
  row.difference = difference_of(*row.predicted, *row.measured);
  const bool asked = options.tolerances.contains(quantity);
  if (quantity == Quantity::rss_peak_bytes && !asked &&
      *predicted.rss_growth_bytes < kLeastGrowth) {
    row.reason = "too small a model: libraries weigh as much";
    return row;
  }
  const bool is_time = info.kind == QuantityKind::time;
  if (is_time && !asked && predicted.time_is_assumed) {
    row.reason = "the machine's speed is assumed";
    return row;
  }
  if (is_time && measured.time_spread.value_or(0) > kTooNoisy) {
    row.reason = "too noisy to tell";
    return row;
  }
  judge(row, asked ? options.tolerances.at(quantity) : default_tolerance(quantity));
  return row;
}

/// Rows of single operators, for information unless a tolerance is asked for.
void add_operators(const Figured& predicted, const Figured& measured, const CompareOptions& options,
                   std::vector<ComparisonRow>& rows) {
  double total = 0;
  for (const auto& [path, seconds] : measured.operator_times) total += seconds;
  for (const auto& [path, seconds] : measured.operator_times) {
    ComparisonRow row;
    row.quantity = "time_s:" + path;
    row.title = path + " [ms]";
    row.measured = seconds;
    const auto found =
        std::ranges::find(predicted.operator_times, path, &std::pair<std::string, double>::first);
    if (found == predicted.operator_times.end()) {
      row.reason = "not predicted";
    } else {
      row.predicted = found->second;
      row.difference = found->second > 0 ? seconds / found->second - 1 : 0;
      if (seconds < kLeastShare * total) {
        row.reason = "less than 2 % of the time";
      } else if (predicted.time_is_assumed || measured.time_spread.value_or(0) > kTooNoisy) {
        row.reason =
            predicted.time_is_assumed ? "the machine's speed is assumed" : "too noisy to tell";
      } else {
        judge(row, options.operator_tolerance.value_or(kOperatorTolerance));
      }
    }
    rows.push_back(std::move(row));
  }
}

/// The verdict in words: what failed first of all.
std::string verdict_of(const std::vector<ComparisonRow>& rows, RowResult result) {
  std::size_t exact = 0;
  std::size_t within = 0;
  std::size_t skipped = 0;
  std::string failed;
  for (const ComparisonRow& row : rows) {
    switch (row.result) {
      case RowResult::pass:
        ++(row.tolerance == 0.0 ? exact : within);
        break;
      case RowResult::fail:
        failed += (failed.empty() ? "" : ", ") + row.quantity;
        break;
      case RowResult::skip:
        // What neither side has is no row of the table.
        if (row.predicted || row.measured) ++skipped;
        break;
    }
  }
  const std::string counts = fmt::format("{} held ({} exact, {} within tolerance), {} skipped",
                                         exact + within, exact, within, skipped);
  switch (result) {
    case RowResult::pass:
      return "PASS — " + counts;
    case RowResult::fail:
      return fmt::format("FAIL — {}; {}", failed, counts);
    case RowResult::skip:
      break;
  }
  return "NOTHING TO JUDGE — " + counts;
}

}  // namespace

Comparison compare(const Figured& predicted, const Figured& measured,
                   const CompareOptions& options) {
  detail::require_same(predicted.identity, measured.identity);
  Comparison comparison;
  comparison.model = predicted.identity.model.value_or("");
  comparison.workload = detail::workload_text(predicted.identity);
  for (const QuantityInfo& quantity : quantities()) {
    comparison.rows.push_back(compare_quantity(quantity, predicted, measured, options));
  }
  if (options.detail == Detail::operators) {
    add_operators(predicted, measured, options, comparison.rows);
  }
  const auto any = [&](RowResult result) {
    return std::ranges::count(comparison.rows, result, &ComparisonRow::result) > 0;
  };
  comparison.result = any(RowResult::fail)   ? RowResult::fail
                      : any(RowResult::pass) ? RowResult::pass
                                             : RowResult::skip;
  comparison.verdict = verdict_of(comparison.rows, comparison.result);
  if (!measured.note.empty()) comparison.notes.push_back(measured.note);
  return comparison;
}

}  // namespace headroom
