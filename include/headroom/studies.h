// Three studies beside the table of layers: what the order of two products changes, what a KV-cache
// changes, and where a model's time goes as its sequences grow.
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

/// (Q·Kᵀ)·V against Q·(Kᵀ·V): the same layer with softmax attention and with linear attention
/// (arXiv 2006.16236), which has no softmax between the products and so may take them in the other
/// order.
struct AssociativityReport {
  ComplexityReport layers;  ///< the softmax layer, then the linear one
};

/// `model`, and the same with φ(x) = elu(x) + 1 in the place of the softmax. Throws
/// Error{invalid_input} where its attention is no plain softmax over all positions.
[[nodiscard]] AssociativityReport make_associativity_report(const Model& model,
                                                            AttentionImplementation attention,
                                                            std::vector<std::int64_t> lengths);

/// A polynomial over an integer: sums over lengths have fractions such as n³/3.
struct DividedExpr {
  Expr numerator;
  Integer divisor = 1;

  /// The value, which must be whole. Throws Error{overflow}, Error{internal}.
  [[nodiscard]] Integer evaluate(const Bindings& bindings) const;
};

/// Σ cost(i) for i from `first` to `first` + n − 1, where the symbol s of `cost` is i and that of
/// the result is n. Throws Error{overflow}.
[[nodiscard]] DividedExpr sum_over_lengths(const Expr& cost, std::int64_t first);

/// One way to generate n tokens.
struct GenerationCost {
  DividedExpr flops;      ///< matrix FLOPs in all, in n and the model's sizes
  DividedExpr attention;  ///< those of scores and contexts alone
  Growth growth;
  Growth attention_growth;
};

/// Generating so many tokens both ways.
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

struct GenerationReport {
  Model model;
  std::int64_t prompt = 1;
  GenerationCost without;  ///< every token is a prefill of all before it
  GenerationCost with;     ///< one prefill, then a decode step a token
  std::vector<GenerationRow> rows;
  /// Lengths whose prefill was run; times between them follow straight lines.
  std::vector<std::int64_t> lengths_run;
  std::string machine;  ///< that times are predicted for; empty: none
  std::optional<MachineContext> context;
  std::vector<std::string> notes;
};

/// Throws Error{invalid_input} where the model cannot generate.
[[nodiscard]] GenerationReport make_generation_report(Model model, std::int64_t prompt,
                                                      const std::vector<std::int64_t>& new_tokens);

/// Adds the times that a machine's profile predicts: of prefills of some lengths, with straight
/// lines between them, and of each generation. Throws Error{invalid_input}.
void add_prediction(GenerationReport& report, const MachineProfile& machine,
                    const TimeRequest& request);

/// The time of one prefill for every length from `first` to `last`, by straight lines between
/// those that were run.
[[nodiscard]] double integrated_time(const std::vector<LengthValue>& run, std::int64_t first,
                                     std::int64_t last);

/// Lengths from `first` to `last` to run: all where they are at most `most`, else evenly spread
/// ones, both ends among them.
[[nodiscard]] std::vector<std::int64_t> spread_lengths(std::int64_t first, std::int64_t last,
                                                       std::size_t most);

/// What a transformer's operators are for, as far as their growth differs.
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

struct ShareRow {
  std::int64_t seq_len = 0;
  Shares<Integer> flops;  ///< of matrix products
  std::optional<Shares<double>> predicted_s;
  std::optional<Shares<double>> measured_s;
};

struct SharesReport {
  LayerComplexity model;
  Shares<Expr> formulas;  ///< in the letters of growth.h
  std::vector<ShareRow> rows;
  /// The first length at which attention costs more FLOPs than the feed-forward network for good,
  /// and the same in symbols ("4·n·d > 16·d²" gives 4·d); empty where it never does.
  std::optional<Integer> attention_passes_ffn;
  std::optional<Expr> attention_side;  ///< of the inequality, common factors taken out
  std::optional<Expr> ffn_side;
  std::string machine;  ///< that times are predicted for; empty: none
  std::optional<MachineContext> context;
  std::vector<SkippedRun> skipped;
  std::vector<std::string> notes;
};

[[nodiscard]] SharesReport make_shares_report(Model model, AttentionImplementation attention,
                                              const std::vector<std::int64_t>& lengths);

/// Sums times of operators, named by path, to shares.
[[nodiscard]] Shares<double> shares_of_times(
    const LayerComplexity& model, const std::vector<std::pair<std::string, double>>& times);

/// Adds the times that a machine's profile predicts. Throws Error{invalid_input}.
void add_prediction(SharesReport& report, const MachineProfile& machine,
                    const TimeRequest& request);

}  // namespace headroom
