// Three studies in addition to the table of layers: the order of attention's two GEMMs, the effect
// of a KV-cache, and the breakdown of a model's cost as sequences grow.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headroom/complexity.h"

namespace headroom {

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
  DividedExpr attention;  ///< of scores and contexts alone
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

/// Generation with and without a KV-cache.
struct GenerationReport {
  Model model;
  std::int64_t prompt = 1;
  GenerationCost without;  ///< a prefill of all earlier tokens per new token
  GenerationCost with;     ///< one prefill, then one decode step per token
  std::vector<GenerationRow> rows;
  /// Lengths whose prefill was run; other times are interpolated linearly.
  std::vector<std::int64_t> lengths_run;
  std::string machine;  ///< of the predicted times; empty: none
  std::optional<MachineContext> context;
  std::vector<std::string> notes;
};

/// Throws Error{invalid_input} if the model cannot generate.
[[nodiscard]] GenerationReport make_generation_report(Model model, std::int64_t prompt,
                                                      const std::vector<std::int64_t>& new_tokens);

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
