// The complexity study: what layers cost as the sequence grows, derived from their graphs. The
// table of "Attention Is All You Need" (arXiv 1706.03762, Table 1), with more columns; where one
// layer's cost overtakes another's; and beside both what was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/exponent_fit.h"
#include "headroom/growth.h"
#include "headroom/length_function.h"
#include "headroom/measurement.h"
#include "headroom/model_source.h"
#include "headroom/position_mixing.h"
#include "headroom/predict.h"

namespace headroom {

/// A cost as formula, order, and function of the length.
struct GrowingCost {
  Expr formula;  ///< of one sequence without a past, in the letters of growth.h
  Growth growth;
  LengthFunction by_length;
};

/// One layer, or a stack of them, before anything is measured.
struct LayerComplexity {
  Model model;
  AttentionImplementation attention = AttentionImplementation::eager;
  Graph graph;
  Analysis analysis;
  GrowingCost flops;                ///< matrix FLOPs of everything
  std::optional<GrowingCost> core;  ///< of what mixes positions; none where nothing does
  GrowingCost activation_bytes;     ///< peak, in float32
  std::string peak_path;            ///< the operator that it is at when sequences are long
  Expr sequential;                  ///< steps that have to wait for one another
  Growth sequential_growth;
  /// The same by a parallel prefix sum, where a running state is a mere sum.
  std::optional<Growth> parallel_growth;
  PathLength path;
  Integer parameters = 0;
  /// Decode's state in float32: what every further token adds, and what stays however many there
  /// are. None where the layer is not causal, and cannot decode.
  std::optional<Integer> state_bytes_per_token;
  std::optional<Integer> state_bytes;
  std::vector<std::string> core_paths;  ///< of operators, as measurements name them
};

/// How attention is run where nothing else is asked for: eager, so that the N² that are computed
/// are seen; fused where there is a window, since eager computes all pairs and hides most.
[[nodiscard]] AttentionImplementation default_attention(const ModelSpec& spec) noexcept;

/// Derives all of it from the graph. Throws Error{invalid_input}, Error{overflow}.
[[nodiscard]] LayerComplexity layer_complexity(Model model, AttentionImplementation attention);

/// The share of a cost's leading power of the length in the whole, the smaller one of FLOPs and of
/// bytes moved: near 1, the layer is in its asymptotic range.
[[nodiscard]] double leading_share(const LayerComplexity& layer, Integer length);
/// The same of what mixes positions.
[[nodiscard]] double leading_share_of_core(const LayerComplexity& layer, Integer length);

/// Bytes that the layer's operators move at one length, in float32, and those of what mixes
/// positions.
[[nodiscard]] Integer moved_bytes(const LayerComplexity& layer, Integer length);
[[nodiscard]] Integer moved_bytes_of_core(const LayerComplexity& layer, Integer length);

/// One layer run at one length. Times are the fastest of the runs: others at work on the machine
/// only ever add to them.
struct LengthRun {
  std::int64_t seq_len = 0;
  double time_s = 0;
  double core_time_s = 0;  ///< of that run's operators that mix positions
  double median_s = 0;     ///< of all runs
  int runs = 0;
};

/// A length that was not run, and why.
struct SkippedRun {
  std::int64_t seq_len = 0;
  std::string reason;
};

/// A time that a machine's profile predicts.
struct PredictedRun {
  std::int64_t seq_len = 0;
  double time_s = 0;
  double core_time_s = 0;
};

struct LayerRuns {
  std::vector<LengthRun> runs;
  std::vector<SkippedRun> skipped;
  std::vector<PredictedRun> predicted;  ///< of the same lengths; empty without a machine
};

/// Measured growth beside what theory has over the very same lengths.
struct ExponentRow {
  ExponentFit measured;
  double predicted = 0;                  ///< slope of the FLOPs
  std::optional<double> predicted_time;  ///< slope of the predicted times
  std::int64_t from = 0;                 ///< where the asymptotic range begins
  std::int64_t to = 0;
  /// Whether no operands of it stay in the last cache. Where less is multiplied with a number than
  /// reading it takes, time grows by a step as they leave it, so that a range across that is none.
  bool beyond_cache = false;
};

/// The share that makes a range asymptotic.
inline constexpr double kAsymptoticShare = 0.8;
/// Points that a fit needs, so that it has a confidence interval.
inline constexpr std::size_t kFewestFitPoints = 3;

struct LayerStudy {
  LayerComplexity layer;
  LayerRuns times;                           ///< nothing where nothing was run or predicted
  std::optional<ExponentRow> exponent;       ///< none where too few lengths were asymptotic
  std::optional<ExponentRow> core_exponent;  ///< likewise
};

/// Where the first layer costs more than the second, for good.
struct CrossoverRow {
  std::size_t above = 0;  ///< index of the layer that costs more in the end
  std::size_t below = 0;
  std::optional<Integer> flops;  ///< the first length of that; 1: always; none: equal FLOPs
  std::optional<double> predicted_time;
  std::optional<double> measured_time;
};

struct ComplexityReport {
  std::vector<std::int64_t> lengths;
  std::vector<LayerStudy> layers;
  std::vector<CrossoverRow> crossovers;       ///< of each pair, the whole layers
  std::vector<CrossoverRow> core_crossovers;  ///< of each pair that both mix positions
  std::string machine;                        ///< that times are predicted for; empty: none
  std::optional<MachineContext> context;      ///< that was measured on
  Integer uncached_bytes = 0;  ///< of which that machine's caches keep hardly any; 0: not known
  std::vector<std::string> notes;
};

/// The study without measurements. `lengths` ascend and are not empty.
[[nodiscard]] ComplexityReport make_complexity_report(std::vector<LayerComplexity> layers,
                                                      std::vector<std::int64_t> lengths);

/// What a layer is asked at one length: one sequence in float32; an encoder reads as much as its
/// decoder. Throws Error{invalid_input} where the model cannot be asked that.
[[nodiscard]] Workload workload_at(const LayerComplexity& layer, std::int64_t length);

/// The times of a layer that a machine's profile predicts. Throws Error{invalid_input}.
[[nodiscard]] std::vector<PredictedRun> predict_runs(const LayerComplexity& layer,
                                                     std::span<const std::int64_t> lengths,
                                                     const MachineProfile& machine,
                                                     const TimeRequest& request);

/// Adds predicted times alone, one entry for each layer of the report: finds their crossovers.
void add_predictions(ComplexityReport& report, std::vector<LayerRuns> predicted);

/// Adds what was run, one entry for each layer of the report: fits exponents, finds crossovers.
void add_measurements(ComplexityReport& report, std::vector<LayerRuns> runs);

}  // namespace headroom
