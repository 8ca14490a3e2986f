// Comparison: every prediction beside its measurement, and a verdict. The only module that sees
// both sides.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headroom/measurement.h"
#include "headroom/report.h"

namespace headroom {

/// What is compared, but for single operators.
enum class Quantity {
  parameters,
  matrix_flops,
  weight_bytes,
  kv_cache_bytes,
  peak_activation_bytes,
  rss_peak_bytes,
  time_s,
  ttft_s,
  tpot_s,
};

/// What a quantity is, which decides how near a prediction has to come.
enum class QuantityKind {
  count,  ///< exact
  resident_memory,
  time,
};

struct QuantityInfo {
  Quantity quantity;
  QuantityKind kind;
  std::string_view name;   ///< the word in JSON and in --tolerance
  std::string_view title;  ///< on screen, with its unit
};

/// Every quantity, in the order of the table.
[[nodiscard]] std::span<const QuantityInfo> quantities() noexcept;
[[nodiscard]] const QuantityInfo& info_of(Quantity quantity) noexcept;
[[nodiscard]] std::string_view name_of(Quantity quantity) noexcept;

/// What was asked of a model; empty where a foreign file does not say.
struct RunIdentity {
  std::optional<std::string> model;
  std::optional<MeasuredPhase> phase;
  std::optional<std::int64_t> batch_size;
  std::optional<std::int64_t> seq_len;
  std::optional<std::int64_t> enc_seq_len;
  std::optional<std::int64_t> past_len;
  std::optional<std::int64_t> new_tokens;
  std::optional<std::string> dtype;
  std::optional<std::string> attention;
  std::optional<std::int64_t> threads;
};

/// A count, which is exact, or seconds.
using Amount = std::variant<Integer, double>;

/// One side of a comparison. What is not in it is not known there.
struct Figured {
  RunIdentity identity;
  std::map<Quantity, Amount> amounts;
  std::vector<std::pair<std::string, double>> operator_times;  ///< by path, in order of execution
  std::optional<double> time_low_s;                            ///< of a prediction
  std::optional<double> time_high_s;
  std::optional<double> time_spread;  ///< of a measurement: median absolute deviation over median
  std::optional<Integer> rss_before_bytes;  ///< of a measurement
  std::optional<Integer> rss_growth_bytes;  ///< of a prediction
  bool time_is_assumed = false;             ///< from a datasheet, with no claim to be exact
  std::string engine;                       ///< of a measurement
  std::string note;                         ///< such as which definition of TPOT a file has
};

enum class RowResult { pass, fail, skip };

[[nodiscard]] std::string_view name_of(RowResult result) noexcept;

struct ComparisonRow {
  std::string quantity;  ///< its name; that of an operator's time is "time_s:" and its path
  std::string title;     ///< on screen
  std::optional<Amount> predicted;
  std::optional<Amount> measured;
  std::optional<double> difference;  ///< (measured − predicted) / predicted
  std::optional<double> tolerance;   ///< zero is exact; none where nothing is judged
  RowResult result = RowResult::skip;
  std::string reason;  ///< why it is skipped, or what to know
};

/// How much faster or slower the machine was during the run than when it was calibrated.
struct DriftReport {
  Drift before;
  Drift after;
};

/// The prediction as the machine was during the runs: each of `samples_s` is held against what the
/// machine would have taken just then, drifted by the `drifts` of the same place.
[[nodiscard]] TimePrediction corrected_for_drift(TimePrediction prediction,
                                                 std::span<const double> samples_s,
                                                 std::span<const Drift> drifts);

/// How much runs scatter once the machine's own changes are taken away: the median absolute
/// deviation over the median.
[[nodiscard]] double spread_beside_drift(const TimePrediction& prediction,
                                         std::span<const double> samples_s,
                                         std::span<const Drift> drifts);

struct CompareOptions {
  std::map<Quantity, double> tolerances;     ///< in the place of the defaults
  std::optional<double> operator_tolerance;  ///< of single operators
  Detail detail = Detail::summary;
};

struct Comparison {
  std::string model;
  std::string workload;  ///< in words
  std::vector<ComparisonRow> rows;
  RowResult result = RowResult::skip;
  std::string verdict;
  std::optional<DriftReport> drift;
  std::string machine;
  std::optional<MachineContext> context;
  std::vector<std::string> notes;
};

/// The predicted side, of a report with a prediction.
[[nodiscard]] Figured predicted_figures(const AnalyzeReport& report);
/// The measured side.
[[nodiscard]] Figured measured_figures(const Measurement& measurement);

/// The same from JSON that `analyze` and `measure` wrote. Throws Error{invalid_input} naming what
/// is missing, impossible, or of the other kind.
[[nodiscard]] Figured predicted_from_json(std::string_view text, const std::string& where);
[[nodiscard]] Figured measured_from_json(std::string_view text, const std::string& where);

/// The tolerance of a quantity where none is asked for.
[[nodiscard]] double default_tolerance(Quantity quantity) noexcept;

/// Lays both sides beside each other. Throws Error{invalid_input} when they are not of the same
/// model and workload.
[[nodiscard]] Comparison compare(const Figured& predicted, const Figured& measured,
                                 const CompareOptions& options);

/// Measurements of another engine. Throws Error{invalid_input} where the file is none that is
/// known, or broken. One file may hold several runs.
[[nodiscard]] std::vector<Figured> import_measurements(std::string_view text,
                                                       const std::string& where);

/// One after another; in JSON one object, or a list of several.
[[nodiscard]] std::string render(std::span<const Comparison> comparisons,
                                 const RenderOptions& options);

}  // namespace headroom
