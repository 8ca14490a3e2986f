// Figures: the numbers of an analysis for one workload. An Evaluator substitutes the model's sizes
// once, so that a workload costs microseconds; a sweep evaluates millions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/analysis.h"

namespace headroom {

/// A Cost as numbers.
struct CostFigures {
  Integer matrix_flops = 0;
  Integer elementwise_flops = 0;
  Integer bytes_read = 0;
  Integer bytes_written = 0;
};

/// A ComponentAnalysis as numbers.
struct ComponentFigures {
  Integer parameters = 0;
  Integer weight_bytes = 0;
  CostFigures forward;
  CostFigures backward;
};

/// An Analysis as numbers, for one workload.
struct Figures {
  Integer parameters = 0;
  Integer active_parameters = 0;  ///< without the routed experts that one token does not use
  Integer weight_bytes = 0;
  CostFigures forward;
  CostFigures backward;   ///< zero unless training
  CostFigures recompute;  ///< zero unless training recomputes
  Integer peak_activation_bytes = 0;
  std::size_t peak_index = 0;  ///< into Analysis::live
  Integer saved_activation_bytes = 0;
  Integer kv_cache_bytes = 0;
  Integer kv_cache_bytes_per_token = 0;
  std::vector<ComponentFigures> components;  ///< in the order of Analysis::components
};

/// A polynomial in the workload's symbols, laid out for fast evaluation.
class CompiledExpr {
 public:
  using Values = std::array<Integer, kSymbolCount>;

  /// Compiles `expr` with the model's `sizes` substituted. Throws Error{overflow}.
  CompiledExpr(const Expr& expr, const Bindings& sizes);

  /// The exact value. Throws Error{overflow}.
  [[nodiscard]] Integer evaluate(const Values& values) const;

 private:
  struct CompiledTerm {
    Integer coefficient;
    std::uint32_t first_factor;
    std::uint32_t factor_count;
  };
  std::vector<CompiledTerm> terms_;
  std::vector<std::uint8_t> factors_;  ///< symbol indices, a power written out
};

/// The workload's values by symbol, for CompiledExpr.
[[nodiscard]] CompiledExpr::Values values_of(const Workload& workload, const LayerTraits& traits);

/// Evaluates an analysis for any workload of its phase and attention implementation.
class Evaluator {
 public:
  Evaluator(const Graph& graph, const Analysis& analysis, Recompute recompute);

  /// Throws Error{overflow}.
  [[nodiscard]] Figures evaluate(const Workload& workload) const;

 private:
  struct CompiledCost {
    CompiledExpr matrix_flops;
    CompiledExpr elementwise_flops;
    CompiledExpr bytes_read;
    CompiledExpr bytes_written;
  };
  struct CompiledComponent {
    CompiledExpr parameters;
    CompiledCost forward;
    CompiledCost backward;
  };
  struct CompiledPeak {
    CompiledExpr bytes;
    std::size_t index;
  };
  [[nodiscard]] static CompiledCost compile(const Cost& cost, const Bindings& sizes);
  [[nodiscard]] static CostFigures evaluate(const CompiledCost& cost,
                                            const CompiledExpr::Values& values);

  LayerTraits traits_;
  CompiledExpr parameters_;
  CompiledExpr active_parameters_;
  CompiledCost forward_;
  CompiledCost backward_;
  CompiledCost recompute_;
  CompiledExpr saved_;
  CompiledExpr kv_cache_;
  CompiledExpr kv_cache_per_token_;
  std::vector<CompiledPeak> peaks_;  ///< distinct live sets
  std::vector<CompiledComponent> components_;
};

}  // namespace headroom
