// The complexity study: cost of layers as the sequence grows, derived from their graphs. An
// extended Table 1 of "Attention Is All You Need" (arXiv 1706.03762), the crossovers between
// layers, and measurements of both.
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

/// A cost as a formula, an order of growth and a function of the length.
struct GrowingCost {
  Expr formula;  ///< for one sequence without a past, in the letters of growth.h
  Growth growth;
  LengthFunction by_length;
};

/// Derived costs of one layer or a stack of layers.
struct LayerComplexity {
  Model model;
  AttentionImplementation attention = AttentionImplementation::eager;
  Graph graph;
  Analysis analysis;
  GrowingCost flops;                ///< matrix FLOPs of the whole layer
  std::optional<GrowingCost> core;  ///< matrix FLOPs of position mixing, if any
  GrowingCost activation_bytes;     ///< peak, in float32
  std::string peak_path;            ///< operator at that peak, for long sequences
  Expr sequential;                  ///< dependent steps
  Growth sequential_growth;
  /// Dependent steps of a parallel prefix sum, where the running state is a plain sum.
  std::optional<Growth> parallel_growth;
  PathLength path;
  Integer parameters = 0;
  std::optional<Integer> state_bytes_per_token;  ///< decode state in float32; empty if not causal
  std::optional<Integer> state_bytes;   ///< its constant part; empty if the layer is not causal
  std::vector<std::string> core_paths;  ///< position-mixing operators, as named in measurements
};

/// Default attention implementation of the study: eager, which shows the N² pairs that are
/// computed; fused for sliding windows, since eager computes all pairs and masks most.
[[nodiscard]] AttentionImplementation default_attention(const ModelSpec& spec) noexcept;

/// Derives a layer's costs from its graph. Throws Error{invalid_input}, Error{overflow}.
[[nodiscard]] LayerComplexity layer_complexity(Model model, AttentionImplementation attention);

/// Fraction of the cost in the leading power of the length, the smaller of those for FLOPs and
/// bytes moved. Near 1 the layer is in its asymptotic range.
[[nodiscard]] double leading_share(const LayerComplexity& layer, Integer length);
/// That fraction for position mixing.
[[nodiscard]] double leading_share_of_core(const LayerComplexity& layer, Integer length);

/// Bytes that the layer's operators move at one length, in float32.
[[nodiscard]] Integer moved_bytes(const LayerComplexity& layer, Integer length);
/// Bytes that position mixing moves.
[[nodiscard]] Integer moved_bytes_of_core(const LayerComplexity& layer, Integer length);

/// Measurement of one layer at one length. Times are the fastest of the runs, since interference
/// only adds time.
struct LengthRun {
  std::int64_t seq_len = 0;
  double time_s = 0;
  double core_time_s = 0;  ///< of position mixing, in that run
  double median_s = 0;     ///< over all runs
  int runs = 0;
};

/// A length that was not run, with the reason.
struct SkippedRun {
  std::int64_t seq_len = 0;
  std::string reason;
};

/// Time predicted from a machine's profile.
struct PredictedRun {
  std::int64_t seq_len = 0;
  double time_s = 0;
  double core_time_s = 0;
};

/// Measured and predicted times of one layer.
struct LayerRuns {
  std::vector<LengthRun> runs;
  std::vector<SkippedRun> skipped;
  std::vector<PredictedRun> predicted;  ///< for the same lengths; empty without a machine
};

/// Measured exponent of growth, with the theoretical one over the same lengths.
struct ExponentRow {
  ExponentFit measured;
  double predicted = 0;                  ///< slope of FLOPs
  std::optional<double> predicted_time;  ///< slope of predicted times
  std::int64_t from = 0;                 ///< first length of the asymptotic range
  std::int64_t to = 0;
  /// True if no operands fit the last-level cache. Time of a memory-bound kernel jumps where
  /// operands outgrow the cache, so that no exponent holds across that length.
  bool beyond_cache = false;
};

/// Least leading share of an asymptotic range.
inline constexpr double kAsymptoticShare = 0.8;
/// Fewest points of a fit with a confidence interval.
inline constexpr std::size_t kFewestFitPoints = 3;

/// One layer of a report.
struct LayerStudy {
  LayerComplexity layer;
  LayerRuns times;                           ///< empty without measurement or prediction
  std::optional<ExponentRow> exponent;       ///< empty with too few asymptotic lengths
  std::optional<ExponentRow> core_exponent;  ///< of position mixing; empty likewise
};

/// Length from which layer `above` always costs more than layer `below`.
struct CrossoverRow {
  std::size_t above = 0;  ///< index of the layer that costs more for long sequences
  std::size_t below = 0;
  std::optional<Integer> flops;  ///< by FLOPs; 1: at every length; empty: equal FLOPs
  std::optional<double> predicted_time;
  std::optional<double> measured_time;
};

/// Result of the study.
struct ComplexityReport {
  std::vector<std::int64_t> lengths;
  std::vector<LayerStudy> layers;
  std::vector<CrossoverRow> crossovers;       ///< of each pair of layers
  std::vector<CrossoverRow> core_crossovers;  ///< of the position mixing of each pair
  std::string machine;                        ///< of the predicted times; empty: none
  std::optional<MachineContext> context;      ///< of the measured times
  Integer uncached_bytes = 0;  ///< working set that outgrows that machine's caches; 0: unknown
  std::vector<std::string> notes;
};

/// Makes the report without measurements. `lengths` must ascend and not be empty.
[[nodiscard]] ComplexityReport make_complexity_report(std::vector<LayerComplexity> layers,
                                                      std::vector<std::int64_t> lengths);

/// Workload of a layer at one length: one sequence in float32; the encoder reads as many tokens as
/// the decoder. Throws Error{invalid_input} if the model cannot run it.
[[nodiscard]] Workload workload_at(const LayerComplexity& layer, std::int64_t length);

/// Predicts the times of a layer from a machine's profile. Throws Error{invalid_input}.
[[nodiscard]] std::vector<PredictedRun> predict_runs(const LayerComplexity& layer,
                                                     std::span<const std::int64_t> lengths,
                                                     const MachineProfile& machine,
                                                     const TimeRequest& request);

/// Adds predicted times, one entry per layer, and finds their crossovers.
void add_predictions(ComplexityReport& report, std::vector<LayerRuns> predicted);

/// Adds measured times, one entry per layer; fits exponents and finds crossovers.
void add_measurements(ComplexityReport& report, std::vector<LayerRuns> runs);

}  // namespace headroom
