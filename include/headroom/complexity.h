// Complexity: cost of layers as the sequence grows, derived from their graphs. An extended Table 1
// of "Attention Is All You Need" (arXiv 1706.03762) with crossovers and measurements, and three
// more studies: the order of attention's two GEMMs, the effect of a KV-cache, and the breakdown of
// a model's cost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// "O(s²·d + s·d²)", "O(1)" for a constant, "–" for zero.
[[nodiscard]] std::string format(const Growth& growth);

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
/// substituted; the encoder reads as many tokens as the decoder, in whole blocks. Throws
/// Error{overflow}, and Error{invalid_input} where the cost is not a polynomial: chunked windows
/// (WindowKind::chunked), compressed keys, and windows and global tokens of an encoder.
[[nodiscard]] LengthFunction in_length(const Expr& cost, const Graph& graph);

/// The length from which a > b always holds; empty if a is not above b for long sequences.
[[nodiscard]] std::optional<Integer> overtakes_at(const LengthFunction& a, const LengthFunction& b);

// Path between positions and dependent steps: columns of "Attention Is All You Need", Table 1
// (arXiv 1706.03762), derived from the operators of a graph.

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

/// Steps between the first and the last of `length` positions: one for full mixing, layers for
/// neighbourhoods, positions for a recurrence. Empty without a path.
[[nodiscard]] std::optional<std::int64_t> steps_between_ends(const PathLength& path,
                                                             std::int64_t length);

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
  /// Decode state in float32 that a token adds once all windows are full; in an encoder-decoder, a
  /// token of either sequence. Empty if the layer is not causal.
  std::optional<Integer> state_bytes_per_token;
  /// Part of state_bytes_per_token that the encoder's token adds; empty without an encoder.
  std::optional<Integer> state_bytes_per_encoder_token;
  /// Constant part of the decode state, with all windows full; empty if the layer is not causal.
  std::optional<Integer> state_bytes;
  std::vector<std::string> core_paths;  ///< position-mixing operators, as named in measurements
};

/// Default attention implementation of the study: eager, which shows the N² pairs that are
/// computed; fused for sliding windows, since eager computes all pairs and masks most.
[[nodiscard]] AttentionImplementation default_attention(const ModelSpec& spec) noexcept;

/// Derives a layer's costs from its graph. Throws Error{invalid_input}, Error{overflow}.
[[nodiscard]] LayerComplexity layer_complexity(Model model, AttentionImplementation attention);

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

// Studies in addition to the table of layers.

/// (Q·Kᵀ)·V against Q·(Kᵀ·V): one layer with softmax attention and with linear attention (arXiv
/// 2006.16236), which has no softmax between the GEMMs and can therefore reorder them.
struct AssociativityReport {
  ComplexityReport layers;  ///< the softmax layer, then the linear one
};

/// Compares `model` with its linear variant, φ(x) = elu(x) + 1 in place of the softmax. Throws
/// Error{invalid_input} unless its attention is a plain softmax over all positions.
[[nodiscard]] AssociativityReport make_associativity_report(const Model& model,
                                                            AttentionImplementation attention,
                                                            std::vector<std::int64_t> lengths);

/// A polynomial divided by an integer: sums over lengths have fractions such as G³/3.
struct DividedExpr {
  Expr numerator;
  Integer divisor = 1;

  /// The value. Throws Error{overflow}, and Error{internal} unless it is an integer.
  [[nodiscard]] Integer evaluate(const Bindings& bindings) const;
};

/// Σ cost(i) for i = first, …, first + G − 1: i is the symbol s of `cost`, G the number of new
/// tokens. Throws Error{overflow}.
[[nodiscard]] DividedExpr sum_over_lengths(const Expr& cost, std::int64_t first);

/// Cost of one way to generate G tokens.
struct GenerationCost {
  DividedExpr flops;      ///< matrix FLOPs, in G and the model's sizes
  DividedExpr attention;  ///< of scores and contexts alone; zero without attention
  Growth growth;
  Growth attention_growth;
};

/// Generation of `new_tokens` with and without a KV-cache.
struct GenerationRow {
  std::int64_t new_tokens = 0;
  Integer flops_without = 0;
  Integer flops_with = 0;
  Integer attention_without = 0;
  Integer attention_with = 0;
  Integer kv_cache_bytes = 0;  ///< at the end, in float32
  std::optional<double> predicted_without_s;
  std::optional<double> predicted_with_s;
  std::optional<double> time_without_s;
  std::optional<double> time_with_s;
};

/// Generations to compare.
struct GenerationRequest {
  std::int64_t prompt = 1;  ///< tokens before the new ones; of an encoder-decoder's decoder
  std::vector<std::int64_t> new_tokens{};     ///< ascending
  std::optional<std::int64_t> enc_seq_len{};  ///< of an encoder-decoder; default: the model's
};

/// Generation with and without a KV-cache. An encoder runs once in either case.
struct GenerationReport {
  Model model;
  std::int64_t prompt = 1;
  std::optional<std::int64_t> enc_seq_len;  ///< of an encoder-decoder
  GenerationCost without;                   ///< a prefill of all earlier tokens per new token
  GenerationCost with;                      ///< one prefill, then one decode step per token
  std::vector<GenerationRow> rows;
  /// Lengths whose prefill was run; other times are interpolated linearly.
  std::vector<std::int64_t> lengths_run;
  std::string machine;  ///< of the predicted times; empty: none
  std::optional<MachineContext> context;
  std::vector<std::string> notes;
};

/// Throws Error{invalid_input} if the model cannot generate, or has windows.
[[nodiscard]] GenerationReport make_generation_report(Model model,
                                                      const GenerationRequest& request);

/// The prefill of `length` tokens that a generation without a KV-cache runs for one token.
[[nodiscard]] Workload prefill_of(const GenerationReport& report, std::int64_t length);

/// Operators that run once per generation.
[[nodiscard]] std::vector<std::string> encoder_paths(const ModelSpec& spec);

/// Time of a prefill.
struct PrefillTime {
  std::int64_t length = 0;
  double total_s = 0;
  double encoder_s = 0;  ///< part of `total_s`
};

/// Time to generate without a KV-cache: the encoder once, and the rest of one prefill per token,
/// interpolated linearly between those of `run`, which is not empty.
[[nodiscard]] double time_without_cache(const std::vector<PrefillTime>& run, std::int64_t prompt,
                                        std::int64_t new_tokens);

/// Adds times predicted from a machine's profile: prefills of some lengths, interpolated linearly,
/// and each generation. Throws Error{invalid_input}.
void add_prediction(GenerationReport& report, const MachineProfile& machine,
                    const TimeRequest& request);

/// Total time of one prefill per length from `first` to `last`, interpolated linearly between the
/// lengths of `run`.
[[nodiscard]] double integrated_time(const std::vector<LengthValue>& run, std::int64_t first,
                                     std::int64_t last);

/// Lengths to run: all from `first` to `last` if there are at most `most`, else evenly spread ones
/// with both ends.
[[nodiscard]] std::vector<std::int64_t> spread_lengths(std::int64_t first, std::int64_t last,
                                                       std::size_t most);

/// Groups of a transformer's operators with different growth.
enum class Share { projections, attention, ffn, head, other };
inline constexpr std::size_t kShareCount = 5;

[[nodiscard]] std::string_view name_of(Share share) noexcept;
[[nodiscard]] Share share_of(Part part) noexcept;

/// FLOPs or seconds by share, in the order of the enumeration.
template <class Value>
struct Shares {
  std::array<Value, kShareCount> values{};

  [[nodiscard]] Value& operator[](Share share) { return values[static_cast<std::size_t>(share)]; }
  [[nodiscard]] const Value& operator[](Share share) const {
    return values[static_cast<std::size_t>(share)];
  }
};

/// Costs at one length, by share.
struct ShareRow {
  std::int64_t seq_len = 0;
  Shares<Integer> flops;  ///< matrix FLOPs
  std::optional<Shares<double>> predicted_s;
  std::optional<Shares<double>> measured_s;
};

/// Breakdown of a model's cost as sequences grow.
struct SharesReport {
  LayerComplexity model;
  Shares<Expr> formulas;  ///< for one sequence without a past
  std::vector<ShareRow> rows;
  /// Length from which attention always costs more FLOPs than the feed-forward network; empty if
  /// never. The inequality in symbols follows: "4·s·d > 16·d²".
  std::optional<Integer> attention_passes_ffn;
  std::optional<Expr> attention_side;  ///< of the inequality, without common factors
  std::optional<Expr> ffn_side;
  std::string machine;  ///< of the predicted times; empty: none
  std::optional<MachineContext> context;
  std::vector<SkippedRun> skipped;
  std::vector<std::string> notes;
};

[[nodiscard]] SharesReport make_shares_report(Model model, AttentionImplementation attention,
                                              const std::vector<std::int64_t>& lengths);

/// Sums operator times, named by path, into shares.
[[nodiscard]] Shares<double> shares_of_times(
    const LayerComplexity& model, const std::vector<std::pair<std::string, double>>& times);

/// Adds times predicted from a machine's profile. Throws Error{invalid_input}.
void add_prediction(SharesReport& report, const MachineProfile& machine,
                    const TimeRequest& request);

}  // namespace headroom
