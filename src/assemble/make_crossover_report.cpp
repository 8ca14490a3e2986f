// Finds crossovers: solves inequalities of polynomials for a symbol, and searches the exact number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analyze_model.h"
#include "headroom/complexity.h"
#include "headroom/crossover.h"
#include "headroom/error.h"
#include "mixing_words.h"

namespace headroom {
namespace {

constexpr Integer kMostSearched = Integer{1} << 40;

/// The least value from 1 to kMostSearched for which `holds`, which stays true from there on.
std::optional<Integer> least(const std::function<bool(Integer)>& holds) {
  Integer high = 1;
  while (!holds(high)) {
    if (high >= kMostSearched) return std::nullopt;
    high *= 2;
  }
  Integer low = high / 2;  // does not hold, or is 0
  while (high - low > 1) {
    const Integer middle = low + (high - low) / 2;
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

/// Divides all terms of both sides by their common factors.
void remove_common_factors(Expr& left, Expr& right) {
  std::vector<Term> terms(left.terms().begin(), left.terms().end());
  terms.insert(terms.end(), right.terms().begin(), right.terms().end());
  if (terms.empty()) return;
  Term common = terms.front();
  for (const Term& term : terms) {
    common.coefficient = gcd(common.coefficient, term.coefficient);
    for (std::size_t i = 0; i < kSymbolCount; ++i) {
      common.powers[i] = std::min(common.powers[i], term.powers[i]);
    }
  }
  const auto divided = [&](const Expr& side) {
    std::vector<Term> result(side.terms().begin(), side.terms().end());
    for (Term& term : result) {
      term.coefficient /= common.coefficient;
      for (std::size_t i = 0; i < kSymbolCount; ++i) {
        term.powers[i] = static_cast<std::uint8_t>(term.powers[i] - common.powers[i]);
      }
    }
    return Expr::from_terms(std::move(result));
  };
  left = divided(left);
  right = divided(right);
}

/// Moves terms so that all with the highest power of the symbol are left and all others right.
/// Sides without the symbol stay as they are: the inequality holds for every value or for none.
void sort_sides(Crossover& crossover) {
  remove_common_factors(crossover.left, crossover.right);
  const Expr difference = crossover.left - crossover.right;
  const unsigned highest = difference.degree(crossover.symbol);
  if (highest == 0) return;
  std::vector<Term> left;
  std::vector<Term> right;
  for (Term term : difference.terms()) {
    if (term.powers[index(crossover.symbol)] == highest) {
      left.push_back(term);
      continue;
    }
    term.coefficient = -term.coefficient;
    right.push_back(term);
  }
  crossover.left = Expr::from_terms(std::move(left));
  crossover.right = Expr::from_terms(std::move(right));
  remove_common_factors(crossover.left, crossover.right);
}

/// Twice `side`, with the pairs of an empty cache written out: c = (s² + s)/2.
Expr twice_without_pairs(const Expr& side) {
  const Expr s = Symbol::seq_len;
  Expr sum;
  for (Term term : side.terms()) {
    const bool counts_pairs = term.powers[index(Symbol::visible_pairs)] == 1;
    if (counts_pairs) term.powers[index(Symbol::visible_pairs)] = 0;
    sum += Expr::from_terms({term}) * (counts_pairs ? s * s + s : Expr(Integer{2}));
  }
  return sum;
}

/// True for pairs that are no polynomial of the length.
bool counts_cut_pairs(const Expr& side) {
  constexpr Symbol kCut[] = {Symbol::windowed_pairs, Symbol::chosen_pairs,
                             Symbol::heavily_compressed_pairs};
  return std::ranges::any_of(kCut, [&](Symbol symbol) { return side.degree(symbol) > 0; });
}

/// left = n·symbol·…, right = m·…: symbol > right / (left / symbol), in lowest terms.
void solve(Crossover& crossover) {
  if (crossover.left.terms().size() != 1 || crossover.right.terms().size() != 1) return;
  Term denominator = crossover.left.terms().front();
  if (denominator.powers[index(crossover.symbol)] != 1) return;
  denominator.powers[index(crossover.symbol)] = 0;
  crossover.numerator = crossover.right.terms().front();
  crossover.denominator = denominator;
}

class CrossoverFinder {
 public:
  CrossoverFinder(const Model& model, const WorkloadRequest& request,
                  const KvCacheRequest& kv_cache)
      : model_(model), request_(request), kv_cache_(kv_cache) {}

  CrossoverReport run(const MachineProfile* machine) && {
    const AnalyzeReport base = analyzed(Phase::prefill);
    report_.model = base.model;
    report_.workload = base.workload;
    report_.values = bindings_of(base.workload, base.graph);
    report_.relations = relations_in(base);
    report_.kv_cache = base.kv_cache;
    add_ffn(base);
    add_saved_scores();
    add_cache();
    if (machine != nullptr) add_ridge(*machine);
    report_.notes = base.notes;
    return std::move(report_);
  }

 private:
  [[nodiscard]] AnalyzeReport analyzed(Phase phase) const {
    WorkloadRequest request = request_;
    request.phase = phase;
    if (phase == Phase::decode) request.seq_len.reset();
    if (phase != Phase::decode) request.past_len.reset();
    if (phase == Phase::train) request.logits.reset();  // of a prompt: training needs all
    if (phase != Phase::train) {
      request.kernels = WorkloadRequest{}.kernels;
      request.recompute = WorkloadRequest{}.recompute;
    }
    const bool caches = phase != Phase::train;
    return detail::analyze_model(model_, request, Convention::headroom,
                                 caches ? kv_cache_ : KvCacheRequest{});
  }

  static std::vector<Relation> relations_in(const AnalyzeReport& report) {
    std::vector<Relation> relations = relations_of(report.workload);
    relations.insert(relations.end(), report.graph.relations.begin(), report.graph.relations.end());
    return relations;
  }

  /// Adds `left` > `right`, and its number if both change with the symbol as polynomials.
  void add(Crossover crossover, const AnalyzeReport& report,
           const std::function<void(Workload&, Integer)>& set) {
    const Expr left = crossover.left;
    const Expr right = crossover.right;
    if (left.is_zero() || right.is_zero()) return;
    crossover.at = least([&](Integer value) {
      Workload workload = report.workload;
      set(workload, value);
      const Bindings values = bindings_of(workload, report.graph);
      return left.evaluate(values) > right.evaluate(values);
    });
    const std::vector<Relation> relations = relations_in(report);
    const bool has_polynomials = !counts_cut_pairs(left) && !counts_cut_pairs(right);
    crossover.left = has_polynomials ? collapse(twice_without_pairs(left), relations) : Expr();
    crossover.right = has_polynomials ? collapse(twice_without_pairs(right), relations) : Expr();
    sort_sides(crossover);
    solve(crossover);
    report_.crossovers.push_back(std::move(crossover));
  }

  /// The costs of `explain`: all operators between the projections, by name on the left.
  void add_ffn(const AnalyzeReport& report) {
    if (report.graph.traits.compresses_keys() || model_.spec.reads_two_sequences()) return;
    Shares<Expr> costs;
    for (const ComponentAnalysis& component : report.analysis.components) {
      costs[share_of(component.component.part)] += component.cost.forward.matrix_flops;
    }
    const auto lengthen = [](Workload& workload, Integer value) {
      workload.seq_len = static_cast<std::int64_t>(value);
    };
    const Expr& mixing = costs[Share::attention];
    const Expr& ffn = costs[Share::ffn];
    const detail::MixingWords words = detail::mixing_words(report);
    if (mixing.is_zero()) return;
    add({name_of_mixing(words), "FFN", "FLOP", Symbol::seq_len, mixing, ffn}, report, lengthen);
    add({name_with_projections(words), "FFN", "FLOP", Symbol::seq_len,
         mixing + costs[Share::projections], ffn},
        report, lengthen);
  }

  static std::string name_of_mixing(const detail::MixingWords& words) {
    if (!words.has_scores) return detail::listed(words.others);
    if (words.others.empty()) return "scores and context";
    return "scores and context, with " + detail::listed(words.others);
  }

  static std::string name_with_projections(const detail::MixingWords& words) {
    std::vector<std::string> all = words.others;
    if (words.has_scores) all.insert(all.begin(), "attention");
    const bool several = all.size() > 1;
    return detail::listed(all) + (several ? " with their projections" : " with its projections");
  }

  void add_saved_scores() {
    if (model_.spec.reads_two_sequences()) return;
    const AnalyzeReport report = analyzed(Phase::train);
    Expr quadratic;
    Expr others;
    for (const SavedTensor& saved : report.analysis.saved) {
      if (saved.kept == KeptUnder::every_recompute) continue;
      const Expr bytes = collapse(saved.repeat * saved.bytes, relations_in(report));
      (bytes.degree(Symbol::seq_len) > 1 ? quadratic : others) += bytes;
    }
    // Statistics of rows are no multiple of a width, and keep the inequality from being solved.
    add({"saved scores and probabilities", "other saved activations of the layers", "B",
         Symbol::seq_len, quadratic, others},
        report, [](Workload& workload, Integer value) {
          workload.seq_len = static_cast<std::int64_t>(value);
        });
  }

  void add_cache() {
    if (!model_.spec.main_stack().causal() || model_.spec.is_layer()) return;
    const AnalyzeReport report = analyzed(Phase::decode);
    if (report.analysis.kv_cache.empty()) return;
    Crossover crossover{"KV-cache", "weights", "B", Symbol::visible_keys, {}, {}};
    crossover.at = cache_passes_weights(report, kv_cache_);
    if (!report.kv_cache || has_plain_values(*report.kv_cache)) set_cache_sides(report, crossover);
    report_.crossovers.push_back(std::move(crossover));
  }

  /// Blocks and scales have no whole bytes per element, and so no polynomial.
  static void set_cache_sides(const AnalyzeReport& report, Crossover& crossover) {
    crossover.left = kv_cache_bytes(report.analysis);
    crossover.right = report.analysis.weight_bytes;
    if (crossover.right.evaluate(bindings_of(report.workload, report.graph)) !=
        report.figures.weight_bytes) {
      crossover.right = Expr(report.figures.weight_bytes);
    }
    const std::vector<Relation> relations = relations_in(report);
    crossover.left = collapse(crossover.left, relations);
    crossover.right = collapse(crossover.right, relations);
    sort_sides(crossover);
  }

  /// Matrix FLOPs of a pass by the type that computes them.
  struct TypedFlops {
    Expr layer_gemms;  ///< in the workload's arithmetic
    Expr others;       ///< in the type of the activations
  };

  static TypedFlops typed_flops(const AnalyzeReport& report) {
    TypedFlops flops;
    std::size_t next = 0;
    for (const Block& block : report.graph.blocks) {
      for (const Node& node : block.nodes) {
        const Expr& own = report.analysis.nodes.at(next++).cost.forward.matrix_flops;
        (is_layer_gemm(block, node) ? flops.layer_gemms : flops.others) += own;
      }
    }
    return flops;
  }

  /// FLOPs / peak > bytes / bandwidth, by the batch of a decode step.
  void add_ridge(const MachineProfile& machine) {
    const auto* rates = std::get_if<DatasheetRates>(&machine.rates);
    if (rates == nullptr) {
      throw_invalid_input("crossovers on a machine need its datasheet",
                          "name a machine of `headroom machines`");
    }
    if (!model_.spec.main_stack().causal() || model_.spec.is_layer()) return;
    const AnalyzeReport report = analyzed(Phase::decode);
    const DType arithmetic = report.workload.arithmetic_type();
    const auto peak = peak_flops_per_s(*rates, report.workload.dtype);
    const auto layer_peak = peak_flops_per_s(*rates, arithmetic);
    if (!peak || !layer_peak) return;
    const TypedFlops flops = typed_flops(report);
    const Cost& cost = report.analysis.total.forward;
    const Expr bytes = cost.bytes_read + cost.bytes_written;
    Crossover crossover{
        "time of the FLOPs", "time of the bytes", "decode step", Symbol::batch_size, {}, {}};
    crossover.at = least([&](Integer value) {
      Workload workload = report.workload;
      workload.batch_size = static_cast<std::int64_t>(value);
      const Bindings values = bindings_of(workload, report.graph);
      const auto evaluated = [&](const Expr& expr) {
        return static_cast<double>(expr.evaluate(values));
      };
      return evaluated(flops.layer_gemms) / *layer_peak + evaluated(flops.others) / *peak >
             evaluated(bytes) / rates->memory_bytes_per_s;
    });
    const auto per_byte = [&](double flops_per_s) {
      return fmt::format("{:.0f}", flops_per_s / rates->memory_bytes_per_s);
    };
    crossover.source =
        fmt::format("{} computes {} FLOP in the time of one byte", machine.name, per_byte(*peak));
    if (*layer_peak != *peak) {
      crossover.source +=
          fmt::format(", {} in the layers' GEMMs ({})", per_byte(*layer_peak), name_of(arithmetic));
    }
    if (has_tokens(report)) {
      crossover.source += fmt::format(", with a cache of {} tokens",
                                      with_separators(Integer{report.workload.past_len} + 1));
    }
    report_.crossovers.push_back(std::move(crossover));
  }

  /// False for a cache of constant states alone.
  static bool has_tokens(const AnalyzeReport& report) {
    return report.kv_cache && std::ranges::any_of(report.kv_cache->rows, [](const KvCacheRow& row) {
             return row.growth != KvGrowth::constant;
           });
  }

  const Model& model_;
  const WorkloadRequest& request_;
  const KvCacheRequest& kv_cache_;
  CrossoverReport report_;
};

}  // namespace

CrossoverReport make_crossover_report(const Model& model, const WorkloadRequest& request,
                                      const MachineProfile* machine,
                                      const KvCacheRequest& kv_cache) {
  return CrossoverFinder(model, request, kv_cache).run(machine);
}

std::optional<Integer> cache_passes_weights(const AnalyzeReport& report,
                                            const KvCacheRequest& request) {
  if (report.analysis.kv_cache.empty()) return std::nullopt;
  const bool plain = !report.kv_cache || has_plain_values(*report.kv_cache);
  const Expr cache = kv_cache_bytes(report.analysis);
  const auto bytes_of_cache = [&](const Workload& workload) {
    if (plain) return cache.evaluate(bindings_of(workload, report.graph));
    return Integer{kv_cache_use(report.model.spec, report.graph, workload, request)->used_bytes};
  };
  return least([&](Integer tokens) {
    Workload workload = report.workload;
    workload.past_len = static_cast<std::int64_t>(tokens) - workload.seq_len;
    if (workload.past_len < 0) return false;
    return bytes_of_cache(workload) > report.figures.weight_bytes;
  });
}

}  // namespace headroom
