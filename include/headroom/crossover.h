// Crossovers: the length or batch from which one cost of a model exceeds another, by symbol and by
// number.
//
//   attention's scores and context exceed the FFN   s > 4·d     from s = 3,073
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/report.h"

namespace headroom {

/// One inequality: `left` > `right` from `at` on.
struct Crossover {
  std::string left_name;
  std::string right_name;
  std::string unit;  ///< of both sides
  Symbol symbol = Symbol::seq_len;
  Expr left;   ///< terms that grow faster in `symbol`, common factors removed
  Expr right;  ///< the others
  /// The inequality solved for the symbol, as a fraction of products; empty if a side is a sum.
  std::optional<Term> numerator{};
  std::optional<Term> denominator{};
  std::optional<Integer> at{};  ///< least value of the symbol; empty: never, up to 2^40
  std::string source{};         ///< of rates that the inequality depends on; may be empty
};

/// `headroom explain --crossovers`.
struct CrossoverReport {
  Model model;
  Workload workload;
  std::vector<Relation> relations;
  Bindings values;
  std::vector<Crossover> crossovers;
  std::optional<KvCacheUse> kv_cache;  ///< of the prefill; empty without a cache
  std::vector<std::string> notes;
};

/// The crossovers that the model has: all that attention computes between its projections
/// (Share::attention, named by its operators) against the FFN, with and without the projections;
/// saved scores against the rest of a training step's saved activations; KV-cache against weights;
/// and on a machine with a datasheet, FLOPs against bytes of a decode step, where the layers' GEMMs
/// have the peak of the workload's arithmetic. A type in `kv_cache` replaces the request's.
[[nodiscard]] CrossoverReport make_crossover_report(const Model& model,
                                                    const WorkloadRequest& request,
                                                    const MachineProfile* machine = nullptr,
                                                    const KvCacheRequest& kv_cache = {});

/// The number of tokens in the cache at which it exceeds the weights in bytes, stored as `request`
/// says; empty if it never does up to 2^40, or the model has no cache that grows.
[[nodiscard]] std::optional<Integer> cache_passes_weights(const AnalyzeReport& report,
                                                          const KvCacheRequest& request = {});

[[nodiscard]] std::string render(const CrossoverReport& report, const RenderOptions& options);

}  // namespace headroom
