// Derivations: how a figure of a model comes about, as one writes it on paper: operands -> product
// -> count -> subtotal -> total. Every step is read from an operator, a weight, a saved tensor or a
// cache of the graph, with its own arithmetic from the shapes; the totals are compared with the
// report's.
//
//   query    X[b,s,d] × W[d,h·k] → [b,s,h·k]         2·b·s·d²        150,994,944
//   scores   Q[b,h,s,k] × Kᵀ[b,h,k,s] → [b,h,s,s]    2·b·s²·d         25,165,824
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "headroom/measurement.h"
#include "headroom/report.h"

namespace headroom {

/// One product: a GEMM, a weight, a saved tensor, or the keys or values of a cache.
struct DerivationStep {
  std::string name;      ///< "query"
  std::string path;      ///< of the operator or weight
  std::string operands;  ///< "X[b,s,d] × W[d,h·k] → [b,s,h·k]"
  Expr product;          ///< from the shapes, of one layer: 2·b·s·d·h·k
  Expr formula;          ///< with the relations between sizes put in: 2·b·s·d²
  Integer value = 0;     ///< of one layer
};

/// Steps of one sublayer, and their sum.
struct DerivationGroup {
  std::string name;  ///< "attention"
  std::vector<DerivationStep> steps;
  ExplainedFigure subtotal;
};

/// Groups that occur `times` times: the layers of one kind, or a part beside the layers.
struct DerivationBlock {
  std::string path;       ///< "encoder.layers"
  ExplainedFigure times;  ///< number of layers
  std::vector<DerivationGroup> groups;
  ExplainedFigure one;  ///< sum of the groups
  ExplainedFigure all;  ///< `one` · `times`
};

/// Count of a run beside the sum of the steps that it covers.
struct MeasuredStep {
  std::string path;  ///< of the operator; empty for the total
  Integer derived = 0;
  Integer counted = 0;
};

/// `headroom explain --steps`.
struct Derivation {
  Model model;
  Workload workload;
  Subject subject = Subject::flops;
  std::string unit;
  std::vector<Relation> relations;
  Bindings values;
  std::vector<DerivationBlock> blocks;
  ExplainedFigure total;  ///< sum of the blocks
  Integer reported = 0;   ///< the figure of `analyze`, counted without the steps
  std::vector<MeasuredStep> measured;
  std::vector<std::string> reasons;  ///< why the model differs from the textbook's formula
  std::vector<std::string> notes;
};

/// Derives the figure of `subject`. Throws Error{invalid_input} if the model has no such figure, or
/// one that is no sum of steps: the peak of live activations, and a cache of less than a byte per
/// element.
[[nodiscard]] Derivation make_derivation(Model model, const WorkloadRequest& request,
                                         Subject subject, const KvCacheRequest& kv_cache = {});

/// Lays the counts of `measurement`, a run of the same workload, beside the steps. Activations that
/// training saves are not measured.
void add_measurement(Derivation& derivation, const Measurement& measurement);

[[nodiscard]] std::string render(const Derivation& derivation, const RenderOptions& options);

}  // namespace headroom
