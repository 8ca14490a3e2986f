// Comparison: a prediction and a measurement, quantity by quantity, with a verdict. No other module
// sees both.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headroom/engine_info.h"
#include "headroom/measurement.h"
#include "headroom/report.h"

namespace headroom {

/// Quantities of a whole run. Times of operators are compared by path.
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
  kv_cache_tokens,
  kv_cache_blocks,
  kv_cache_available_bytes,
  max_concurrency,
};

/// Decides the default tolerance of a quantity.
enum class QuantityKind {
  count,  ///< exact
  resident_memory,
  time,
  printed,   ///< by an engine's start-up log alone, and rounded
  modelled,  ///< likewise, of memory that the engine's runtime takes a part of
};

struct QuantityInfo {
  Quantity quantity;
  QuantityKind kind;
  std::string_view name;   ///< in JSON, CSV and tolerances
  std::string_view title;  ///< on screen, with its unit
};

/// Every quantity, in the order of the table.
[[nodiscard]] std::span<const QuantityInfo> quantities() noexcept;
[[nodiscard]] const QuantityInfo& info_of(Quantity quantity) noexcept;
[[nodiscard]] std::string_view name_of(Quantity quantity) noexcept;

/// Model and workload of a run; a field is empty if a file from outside does not state it.
struct RunIdentity {
  std::optional<std::string> model;
  std::optional<MeasuredPhase> phase;
  std::optional<std::int64_t> batch_size;
  std::optional<std::int64_t> seq_len;
  std::optional<std::int64_t> enc_seq_len;
  std::optional<std::int64_t> past_len;
  std::optional<std::int64_t> visual_tokens{};    ///< per sequence; 0: text alone
  std::optional<std::int64_t> audio_tokens{};     ///< per sequence; 0: no sound
  std::optional<std::int64_t> compared_images{};  ///< of a model that compares them with texts
  std::optional<std::int64_t> global_tokens{};    ///< per sequence; 0: none
  std::optional<std::int64_t> new_tokens;
  std::optional<std::int64_t> requests{};  ///< of a benchmark of many; not compared
  std::optional<std::string>
      weights{};  ///< type they are converted to; "stored": none; not compared
  std::optional<std::string> dtype;
  std::optional<std::string> attention;
  std::optional<std::string> logits{};  ///< of a model that can generate
  std::optional<std::int64_t> threads;
};

/// An exact count, or seconds.
using Amount = std::variant<Integer, double>;

/// One side of a comparison: a predicted or a measured run. A missing amount is unknown.
struct ComparedRun {
  RunIdentity identity;
  std::map<Quantity, Amount> amounts;
  std::vector<std::pair<std::string, double>> operator_times;  ///< path, seconds; in run order
  std::optional<double> time_low_s;                            ///< prediction only
  std::optional<double> time_high_s;                           ///< prediction only
  std::optional<double> time_spread;        ///< measurement only: MAD of the runs over their median
  std::optional<Integer> rss_before_bytes;  ///< measurement only
  std::optional<Integer> rss_growth_bytes;  ///< prediction only
  std::string disturbance;  ///< measurement only: why its times are not the machine's own
  std::optional<AllocatedMemory> allocated;  ///< measurement only
  bool time_of_all_requests = false;         ///< measurement only: of a benchmark of many
  bool time_is_assumed = false;  ///< from a datasheet: judged only if a tolerance is given
  std::string engine;            ///< measurement only
  std::string note;              ///< such as the file's definition of TPOT
  /// Measurement only: whose kernels ran, where its rates are known.
  std::optional<Engine> kernels{};
};

enum class RowResult { pass, fail, skip };

[[nodiscard]] std::string_view name_of(RowResult result) noexcept;

struct ComparisonRow {
  std::string quantity;  ///< its name; "time_s:" and the path for an operator
  std::string title;     ///< on screen
  QuantityKind kind = QuantityKind::time;
  std::optional<Amount> predicted;
  std::optional<Amount> measured;
  std::optional<double> difference;  ///< (measured − predicted) / predicted
  std::optional<double> tolerance;   ///< 0 is exact; empty if the row is not judged
  RowResult result = RowResult::skip;
  std::string reason;  ///< why the row is skipped
};

/// Drift of the machine since its calibration, before and after the run.
struct DriftReport {
  Drift before;
  Drift after;
};

/// Why times under this drift are not judged; empty if they are.
[[nodiscard]] std::string disturbance_of(const DriftReport& drift);

/// `prediction` scaled to the state of the machine during the runs: `samples_s[i]` is compared with
/// the prediction under `drifts[i]`.
[[nodiscard]] TimePrediction corrected_for_drift(TimePrediction prediction,
                                                 std::span<const double> samples_s,
                                                 std::span<const Drift> drifts);

/// Spread of the runs with the machine's drift removed: MAD over median of sample over prediction.
[[nodiscard]] double spread_without_drift(const TimePrediction& prediction,
                                          std::span<const double> samples_s,
                                          std::span<const Drift> drifts);

/// Predicted and measured seconds of one rank of a run over several processes. Communication is
/// transfer, and waiting for other ranks.
struct ComparedRank {
  std::int64_t rank = 0;
  std::int64_t stage = 0;
  std::int64_t tensor_rank = 0;
  double predicted_s = 0;
  double predicted_communication_s = 0;  ///< of predicted_s
  double measured_s = 0;
  double measured_communication_s = 0;  ///< of measured_s
};

struct ComparedRanks {
  std::string plan;  ///< "tp 2 · pp 2"
  std::vector<ComparedRank> ranks;

  /// The rank that computes longest, by the prediction or the measurement.
  [[nodiscard]] const ComparedRank& slowest_predicted() const;
  [[nodiscard]] const ComparedRank& slowest_measured() const;
};

struct CompareOptions {
  std::map<Quantity, double> tolerances;     ///< override `default_tolerance`
  std::optional<double> operator_tolerance;  ///< of single operators
  Detail detail = Detail::summary;
};

struct Comparison {
  std::string model;
  std::string workload;  ///< in words
  RunIdentity run;       ///< the same workload, field by field
  std::vector<ComparisonRow> rows;
  RowResult result = RowResult::skip;
  std::string verdict;
  std::optional<AllocatedMemory> allocated;  ///< beside the counted peak of activations
  std::optional<DriftReport> drift;
  std::string machine;
  std::optional<MachineContext> context;
  std::vector<std::string> notes;
  bool interrupted = false;              ///< the measurement was ended by a signal
  std::optional<ComparedRanks> ranks{};  ///< of a run over several processes
};

/// The predicted side. `report` must have a prediction.
[[nodiscard]] ComparedRun predicted_run(const AnalyzeReport& report);
/// Counts of a run over several processes are the sums over its ranks, peaks the largest of one.
[[nodiscard]] ComparedRun measured_run(const Measurement& measurement);

/// Of figures that an engine prints rounded. It adds tables and padding of its own to weights.
inline constexpr double kPrintedTolerance = 0.01;

/// 0 for counts, 3 % for resident memory, 15 % for times, `kPrintedTolerance` for printed figures,
/// and 5 % for modelled ones, which are judged only if a tolerance is given.
[[nodiscard]] double default_tolerance(Quantity quantity) noexcept;

/// Compares both sides. Throws Error{invalid_input} if their models or workloads differ.
[[nodiscard]] Comparison compare(const ComparedRun& predicted, const ComparedRun& measured,
                                 const CompareOptions& options);

/// The prediction in the JSON of `headroom analyze` with a machine. Throws Error{invalid_input} if
/// a figure is missing or contradicts another, or if the file is a measurement.
[[nodiscard]] ComparedRun import_prediction(std::string_view text, const std::string& where);

/// The measurement in JSON as `headroom measure` writes it (reports/measure.schema.json). Throws
/// Error{invalid_input} as above.
[[nodiscard]] ComparedRun import_measurement(std::string_view text, const std::string& where);

/// The runs in a file of any engine: headroom, llama-bench, vLLM bench, optimum-benchmark. Throws
/// Error{invalid_input} if the format is unknown or the file is damaged.
[[nodiscard]] std::vector<ComparedRun> import_runs(std::string_view text, const std::string& where);

}  // namespace headroom
