#include "headroom/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "identity.h"

namespace headroom {
namespace {

/// Default tolerance of one operator's time, which scatters more than the total.
constexpr double kOperatorTolerance = 0.3;
/// Operators below this fraction of the time are too short for the clock.
constexpr double kLeastTimeFraction = 0.02;
/// Times of runs with a larger spread are not judged.
constexpr double kTooNoisy = 0.10;
/// With less resident growth, pages of libraries and allocator outweigh the model's.
constexpr Integer kLeastRssGrowth = Integer{128} << 20;

double as_double(const Amount& amount) {
  return std::visit([](auto value) { return static_cast<double>(value); }, amount);
}

/// (measured − predicted) / predicted. Counts are subtracted as integers: beyond 2^53, a double
/// cannot tell neighbours apart.
double difference_of(const Amount& predicted, const Amount& measured) {
  const auto* const expected = std::get_if<Integer>(&predicted);
  const auto* const counted = std::get_if<Integer>(&measured);
  const double difference = expected != nullptr && counted != nullptr
                                ? static_cast<double>(*counted - *expected)
                                : as_double(measured) - as_double(predicted);
  if (difference == 0) return 0;
  const double base = as_double(predicted);
  return base != 0 ? difference / base : std::numeric_limits<double>::infinity();
}

/// The predicted amount. The resident peak is the process's memory before the run plus the model's
/// growth.
std::optional<Amount> predicted_amount(Quantity quantity, const ComparedRun& predicted,
                                       const ComparedRun& measured) {
  if (quantity == Quantity::rss_peak_bytes) {
    if (!predicted.rss_growth_bytes || !measured.rss_before_bytes) return std::nullopt;
    return Amount{checked_add(*predicted.rss_growth_bytes, *measured.rss_before_bytes)};
  }
  const auto found = predicted.amounts.find(quantity);
  return found == predicted.amounts.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Amount> measured_amount(Quantity quantity, const ComparedRun& measured) {
  const auto found = measured.amounts.find(quantity);
  return found == measured.amounts.end() ? std::nullopt : std::optional(found->second);
}

void judge(ComparisonRow& row, double tolerance) {
  row.tolerance = tolerance;
  row.result =
      row.difference && std::abs(*row.difference) <= tolerance ? RowResult::pass : RowResult::fail;
}

/// Why the measured times cannot be judged, whatever tolerance is asked for; empty if they can.
std::string unjudged_measurement(const ComparedRun& measured) {
  if (!measured.disturbance.empty()) return measured.disturbance;
  return measured.time_spread.value_or(0) > kTooNoisy ? "runs too noisy" : "";
}

/// Why a time is not judged; empty if it is.
std::string unjudged_time(const ComparedRun& predicted, const ComparedRun& measured) {
  if (predicted.time_is_assumed) return "device rates are assumed";
  return unjudged_measurement(measured);
}

/// Why a quantity that both sides have is not judged; empty if it is. A tolerance that was asked
/// for overrides everything but a measurement that is not the machine's own.
std::string unjudged_quantity(const QuantityInfo& info, const ComparedRun& predicted,
                              const ComparedRun& measured, bool asked) {
  switch (info.kind) {
    case QuantityKind::count:
    case QuantityKind::printed:
      return {};
    case QuantityKind::modelled:
      return asked ? "" : "the engine's own memory is modelled";
    case QuantityKind::resident_memory:
      return !asked && *predicted.rss_growth_bytes < kLeastRssGrowth
                 ? "model too small: libraries dominate"
                 : "";
    case QuantityKind::time:
      break;
  }
  return asked ? unjudged_measurement(measured) : unjudged_time(predicted, measured);
}

/// A quantity that at least one side lacks. headroom counts everything on both sides, so a count
/// that one of its own files lacks was removed, and fails.
void judge_missing(ComparisonRow& row, const QuantityInfo& info, const ComparedRun& measured) {
  row.reason = !row.predicted && !row.measured ? "does not apply"
               : !row.predicted                ? "not predicted"
                                               : "not measured";
  const bool one_side = row.predicted.has_value() != row.measured.has_value();
  if (one_side && info.kind == QuantityKind::count && measured.engine == kOwnEngine) {
    judge(row, default_tolerance(info.quantity));
  }
}

ComparisonRow compare_quantity(const QuantityInfo& info, const ComparedRun& predicted,
                               const ComparedRun& measured, const CompareOptions& options) {
  ComparisonRow row;
  row.quantity = info.name;
  row.title = info.title;
  row.kind = info.kind;
  row.predicted = predicted_amount(info.quantity, predicted, measured);
  row.measured = measured_amount(info.quantity, measured);
  if (!row.predicted || !row.measured) {
    judge_missing(row, info, measured);
    return row;
  }
  row.difference = difference_of(*row.predicted, *row.measured);
  const auto asked = options.tolerances.find(info.quantity);
  const bool is_asked = asked != options.tolerances.end();
  row.reason = unjudged_quantity(info, predicted, measured, is_asked);
  if (row.reason.empty()) {
    judge(row, is_asked ? asked->second : default_tolerance(info.quantity));
  }
  return row;
}

/// True for quantities that only an engine's start-up log has.
bool is_of_logs(QuantityKind kind) {
  return kind == QuantityKind::printed || kind == QuantityKind::modelled;
}

ComparisonRow compare_operator(const std::string& path, double seconds,
                               const ComparedRun& predicted, const ComparedRun& measured,
                               double total_s, const CompareOptions& options) {
  ComparisonRow row;
  row.quantity = "time_s:" + path;
  row.title = path + " [ms]";
  row.measured = seconds;
  const auto found =
      std::ranges::find(predicted.operator_times, path, &std::pair<std::string, double>::first);
  if (found == predicted.operator_times.end()) {
    row.reason = "not predicted";
    return row;
  }
  row.predicted = found->second;
  row.difference = found->second > 0 ? seconds / found->second - 1 : 0;
  row.reason = seconds < kLeastTimeFraction * total_s ? "less than 2 % of the time"
                                                      : unjudged_time(predicted, measured);
  if (row.reason.empty()) judge(row, options.operator_tolerance.value_or(kOperatorTolerance));
  return row;
}

void add_operators(const ComparedRun& predicted, const ComparedRun& measured,
                   const CompareOptions& options, std::vector<ComparisonRow>& rows) {
  double total_s = 0;
  for (const auto& [path, seconds] : measured.operator_times) total_s += seconds;
  for (const auto& [path, seconds] : measured.operator_times) {
    rows.push_back(compare_operator(path, seconds, predicted, measured, total_s, options));
  }
}

/// True for a time of the run that both sides have and no tolerance judges.
bool is_unjudged_time(const ComparisonRow& row) {
  const bool of_run = row.kind == QuantityKind::time && !row.quantity.starts_with("time_s:");
  return of_run && row.result == RowResult::skip && row.predicted && row.measured;
}

/// The verdict in words, failed quantities first.
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
        // Tables have no row for what neither side has.
        if (row.predicted || row.measured) ++skipped;
        break;
    }
  }
  const bool leaves_time = std::ranges::any_of(rows, is_unjudged_time);
  const std::string counts =
      fmt::format("{} passed ({} exact, {} within tolerance), {} skipped{}", exact + within, exact,
                  within, skipped, leaves_time ? "; time not judged" : "");
  switch (result) {
    case RowResult::pass:
      return "PASS — " + counts;
    case RowResult::fail:
      return fmt::format("FAIL — {}; {}", failed, counts);
    case RowResult::skip:
      break;
  }
  return "NOT JUDGED — " + counts;
}

}  // namespace

Comparison compare(const ComparedRun& predicted, const ComparedRun& measured,
                   const CompareOptions& options) {
  detail::require_same(predicted.identity, measured.identity);
  Comparison comparison;
  comparison.model = predicted.identity.model.value_or("");
  comparison.workload = detail::workload_text(predicted.identity);
  comparison.run = predicted.identity;
  for (const QuantityInfo& quantity : quantities()) {
    ComparisonRow row = compare_quantity(quantity, predicted, measured, options);
    const bool is_known = row.predicted || row.measured;
    if (is_known || !is_of_logs(quantity.kind)) comparison.rows.push_back(row);
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
  comparison.allocated = measured.allocated;
  if (!measured.note.empty()) comparison.notes.push_back(measured.note);
  return comparison;
}

}  // namespace headroom
