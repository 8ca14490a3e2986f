// The complexity study: cost of layers as the sequence grows, derived from their graphs. An
// extended Table 1 of "Attention Is All You Need" (arXiv 1706.03762), the crossovers between
// layers, and measurements of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/graph.h"
#include "headroom/measurement.h"
#include "headroom/model_source.h"
#include "headroom/predict.h"

namespace headroom {

// Orders of growth, derived from exact costs, with the columns of Table 1 of "Attention Is All You
// Need" (arXiv 1706.03762). Letters are those of expr.h: the paper's n is s, its kernel k is κ, its
// neighbourhood r is w.

/// The dominant monomials of a sum, without constant factors. Empty for zero.
struct Growth {
  Expr dominant;  ///< every coefficient is 1
  bool operator==(const Growth&) const = default;
};

/// Order of growth of `cost`, for one sequence without a past, as all sizes grow. Products that
/// equal the hidden size collapse (h·k → d), the feed-forward width counts as d, and a
/// head is at most as wide as the model. Layer counts and bytes per element are constants.
[[nodiscard]] Growth growth_of(const Expr& cost, const Graph& graph);

/// "O(s²·d + s·d²)", "O(1)" for a constant, "–" for zero.
[[nodiscard]] std::string format(const Growth& growth);

/// `cost` for one sequence without a past: 8·s·d² + 4·s²·d. Exact, except that the pairs of a
/// window are those of sequences longer than the window.
[[nodiscard]] Expr of_one_sequence(const Expr& cost, const Graph& graph);

// Costs as functions of the sequence length alone, and the length at which one overtakes another,
// exactly over the integers.

/// A polynomial in the length with integer coefficients. Invariant: the last coefficient is
/// nonzero.
class LengthPolynomial {
 public:
  /// Zero.
  LengthPolynomial() = default;
  /// coefficients[i] belongs to the i-th power.
  explicit LengthPolynomial(std::vector<Integer> coefficients);

  [[nodiscard]] const std::vector<Integer>& coefficients() const noexcept { return coefficients_; }
  /// The highest power; 0 for the zero polynomial.
  [[nodiscard]] unsigned degree() const noexcept;
  /// The exact value. Throws Error{overflow}.
  [[nodiscard]] Integer at(Integer length) const;
  bool operator==(const LengthPolynomial&) const = default;

 private:
  std::vector<Integer> coefficients_;
};

[[nodiscard]] LengthPolynomial operator-(const LengthPolynomial& a, const LengthPolynomial& b);

/// A polynomial that holds from length `from` on. A window splits a cost into two pieces: before
/// and after it is full.
struct LengthPiece {
  Integer from = 1;
  LengthPolynomial polynomial;
};

/// A cost for every length ≥ 1. Invariant: pieces ascend and the first starts at 1.
struct LengthFunction {
  std::vector<LengthPiece> pieces;

  [[nodiscard]] Integer at(Integer length) const;
};

/// `cost`, for one sequence without a past, as a function of the length, with the model's sizes
/// substituted; the encoder reads as many tokens as the decoder. Throws Error{overflow}, and
/// Error{invalid_input} for chunked windows (WindowKind::chunked), whose cost is not a polynomial.
[[nodiscard]] LengthFunction in_length(const Expr& cost, const Graph& graph);

/// A range of lengths, up to the next regime, in which one cost is above another or is not.
struct Regime {
  Integer from = 1;
  bool above = false;
  bool operator==(const Regime&) const = default;
};

/// Regimes of a > b over all lengths ≥ 1. They alternate; the last has no end. Exact: a polynomial
/// is monotone where its differences keep their sign, and those are of one degree less. Throws
/// Error{overflow}.
[[nodiscard]] std::vector<Regime> regimes(const LengthFunction& a, const LengthFunction& b);

/// The length from which a > b always holds; empty if a is not above b for long sequences.
[[nodiscard]] std::optional<Integer> overtakes_at(const LengthFunction& a, const LengthFunction& b);

// Reach of an operator across positions, and the number of dependent steps it needs: the columns of
// "Attention Is All You Need", Table 1 (arXiv 1706.03762), derived from the operators of a graph.

/// How an operator mixes positions.
enum class MixingKind {
  none,           ///< position-wise
  auxiliary,      ///< part of the mixing without deciding its reach: softmax, context, φ
  all,            ///< every position reads all (causal: all earlier) positions in one step
  neighbourhood,  ///< every position reads some nearby positions
  state,          ///< every position reads a state that sums over all earlier positions
  recurrence,     ///< every position continues from the previous one
};

/// Mixing of one operator.
struct PositionMixing {
  MixingKind kind = MixingKind::none;
  std::int64_t reach = 0;       ///< neighbourhood: distance of the farthest position read
  std::int64_t neighbours = 0;  ///< neighbourhood: positions read, itself included
  std::int64_t dilation = 1;    ///< neighbourhood: distance between them
  Expr sequential{Integer{1}};  ///< dependent steps
};

[[nodiscard]] PositionMixing position_mixing(const Op& op, const Graph& graph);

/// Returns whether an operator's cost counts as position mixing, not as a projection.
[[nodiscard]] bool is_of_mixing(const PositionMixing& mixing) noexcept;

/// Growth of the longest path between two positions with the sequence length, counting one step per
/// operator on the path.
enum class PathGrowth {
  never,        ///< no path: position-wise
  constant,     ///< one step
  logarithmic,  ///< dilations grow geometrically from layer to layer
  by_reach,     ///< length divided by the reach of a layer
  linear,       ///< through every position in between
};

/// Longest path through a graph's layers.
struct PathLength {
  PathGrowth growth = PathGrowth::never;
  std::int64_t neighbours = 0;        ///< by_reach, logarithmic: κ or w of one layer
  std::int64_t dilation_factor = 0;   ///< logarithmic
  std::string order;                  ///< "O(1)", "O(s)", "O(s/κ)", "O(log_κ(s))", "–"
  std::vector<std::int64_t> reaches;  ///< of the given layers, in order
  /// Receptive field of the given layers, both ends included; empty: all positions.
  std::optional<std::int64_t> receptive_field;
};

/// Path length through the graph's layers, repeated as often as needed.
[[nodiscard]] PathLength path_length(const Graph& graph);

/// Steps between the first and the last of `length` positions: one for full mixing, layers for
/// neighbourhoods, positions for a recurrence. Empty without a path.
[[nodiscard]] std::optional<std::int64_t> steps_between_ends(const PathLength& path,
                                                             std::int64_t length);

/// Dependent steps of one pass over the layers.
[[nodiscard]] Expr sequential_operations(const Graph& graph);

// Measured exponent of growth: the slope of log time against log length, by least squares.

/// A cost or time at one length; both positive.
struct LengthValue {
  double length = 0;
  double value = 0;
};

/// A straight line fitted to logarithms.
struct ExponentFit {
  double exponent = 0;                  ///< the slope
  std::optional<double> half_width_95;  ///< of the 95 % confidence interval; empty for two points
  std::size_t points = 0;
};

/// Fits the exponent, with a confidence interval by Student's t with n − 2 degrees of freedom for n
/// points. Empty for fewer than two distinct lengths.
[[nodiscard]] std::optional<ExponentFit> fit_exponent(std::span<const LengthValue> values);

/// The 97.5 % quantile of Student's t. Source: Abramowitz & Stegun 1964, table 26.10, and beyond 10
/// degrees of freedom the expansion 26.7.5.
[[nodiscard]] double student_t_975(std::size_t degrees_of_freedom);

/// The last crossing of two curves, interpolated linearly between the logarithms of neighbouring
/// points. Empty without a crossing, or unless both curves have the same ascending lengths.
[[nodiscard]] std::optional<double> interpolated_crossing(std::span<const LengthValue> a,
                                                          std::span<const LengthValue> b);

/// A cost as a formula, an order of growth and a function of the length.
struct GrowingCost {
  Expr formula;  ///< for one sequence without a past
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
