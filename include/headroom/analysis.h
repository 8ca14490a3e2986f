// The analytic module: counts a graph. Every figure is an Expr in the symbols of the workload and
// the model; Evaluator turns it into numbers.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/expr.h"
#include "headroom/graph.h"
#include "headroom/model_spec.h"
#include "headroom/recompute_modules.h"
#include "headroom/workload.h"

namespace headroom {

// Conventions of counting floating-point operations. Tools disagree, so every report names its
// convention, and other tools' conventions are available by name.

enum class Convention {
  headroom,  ///< 2 FLOP per multiply–add; the (query, key) pairs that attention computes
  torch,     ///< torch.utils.flop_counter: 2 FLOP, all pairs even under a causal mask
  fvcore,    ///< fvcore: multiply–adds, all pairs, no fused attention
  megatron,  ///< Megatron-LM: 2 FLOP, half of the pairs under a causal mask
  palm,      ///< PaLM appendix B (arXiv 2204.02311): 2 FLOP per parameter and token, all pairs
};

/// Name and unit of a convention.
struct ConventionInfo {
  Convention convention;
  std::string_view name;
  std::string_view unit;     ///< FLOP or MAC
  std::string_view summary;  ///< one line, for reports
};

/// All conventions, in order of the enumeration.
[[nodiscard]] const std::array<ConventionInfo, 5>& conventions() noexcept;

[[nodiscard]] const ConventionInfo& info(Convention convention) noexcept;

/// Cost of one pass.
struct Cost {
  Expr matrix_flops;       ///< of GEMMs, by the convention
  Expr elementwise_flops;  ///< of all other arithmetic, by the factors of op_cost.h
  Expr bytes_read;
  Expr bytes_written;

  Cost& operator+=(const Cost& other);
};

/// Elements of a weight that an operator reads: all of them, or the rows and experts that it needs.
struct WeightRead {
  WeightId weight = 0;
  Expr elements;
};

/// Cost of a forward and a backward pass.
struct NodeCost {
  Cost forward;
  Cost backward;  ///< without bytes, which are not counted
};

/// One operator, with the cost of all layers of its block.
struct NodeAnalysis {
  std::string path;
  Component component;
  Expr parameters;
  Expr weight_bytes;  ///< of the weights that it is the first to use
  NodeCost cost;
  std::vector<WeightRead> weights_read;  ///< part of `cost.forward.bytes_read`
};

/// One component, with the cost of all its nodes.
struct ComponentAnalysis {
  Component component;
  Expr parameters;
  Expr weight_bytes;
  NodeCost cost;
};

/// Activation bytes live while one node runs.
struct LiveBytes {
  std::string path;
  Expr bytes;
};

/// Kind of a saved tensor.
enum class SavedKind { tensor, mask, statistic, input_data };

/// Strongest recomputation under which a tensor stays saved.
enum class KeptUnder {
  every_recompute,  ///< always saved: outside the layers, or read by all of them
  selective,        ///< dropped by full recompute only
  none,             ///< dropped by selective recompute: inside the attention core
};

/// Operators that need a saved tensor, by whether they are GEMMs of layers (`is_layer_gemm`), which
/// some training recipes multiply in float8.
enum class SavedReaders {
  others,          ///< no such GEMM
  layer_gemms,     ///< such GEMMs alone
  gemms_and_more,  ///< both
};

/// One tensor that the forward pass saves for the backward pass.
struct SavedTensor {
  std::string path;  ///< of the node that saves it
  std::string what;
  SavedKind kind = SavedKind::tensor;
  KeptUnder kept = KeptUnder::selective;
  Expr bytes;   ///< of one copy
  Expr repeat;  ///< number of copies, one per layer
  /// The part of a layer that can make it again.
  LayerPart part = LayerPart::other;
  SavedReaders readers = SavedReaders::others;
};

/// KV-cache of one kind of layer.
struct CacheEntry {
  std::string path;
  Expr bytes;  ///< of one layer
  Expr repeat;
};

/// Parameters by part of a multimodal or adapted model; they add up to the total.
struct PartCount {
  Expr text;
  Expr vision;
  Expr audio;
  Expr projector;
  Expr adapter;
};

/// Parameters by role. Tied weights count once.
struct ParameterCount {
  Expr total;
  Expr embedding;
  Expr relative_position_bias;
  Expr attention;
  Expr recurrent;
  Expr convolution;
  Expr mlp;
  Expr norm;
  Expr head;
  Expr projector;
  Expr routed_experts;  ///< the part of mlp in routed experts
  Expr active;          ///< total less the routed experts that one token does not use
  PartCount parts;
};

/// Every figure of a graph. All rows cover all layers of their block.
struct Analysis {
  Convention convention = Convention::headroom;
  ParameterCount parameters;
  Expr weight_bytes;  ///< of parameters and buffers
  std::vector<NodeAnalysis> nodes;
  std::vector<ComponentAnalysis> components;  ///< in order of first appearance
  NodeCost total;
  Cost recompute;                    ///< of the operators that run again in the backward pass
  std::vector<LiveBytes> live;       ///< by node, in execution order
  std::vector<SavedTensor> saved;    ///< without recomputation; empty unless training
  Expr layer_inputs;                 ///< bytes of all layer inputs, which full recompute saves
  std::vector<CacheEntry> kv_cache;  ///< empty without a cache
};

/// Choices of how a graph is counted.
struct AnalysisOptions {
  Convention convention = Convention::headroom;
  Recompute recompute = Recompute::none;
  Kernels kernels = Kernels::reference;
  bool operator==(const AnalysisOptions&) const = default;
};

/// Counts `graph`. Weights take their stored bytes, and an operator that reads some rows or experts
/// of a weight their share, rounded up; weights without stored bytes take Symbol::weight_bytes per
/// element. Throws Error{overflow}.
[[nodiscard]] Analysis analyze(const Graph& graph, const AnalysisOptions& options = {});

/// Counts the parameters of `graph` by role.
[[nodiscard]] ParameterCount count_parameters(const Graph& graph);

/// Bytes of all copies of `weight`; a buffer counts only if its stored bytes are known.
[[nodiscard]] Expr weight_bytes(const Weight& weight);

/// Returns whether `saved` stays in memory under `recompute`.
[[nodiscard]] bool stays_saved(const SavedTensor& saved, Recompute recompute) noexcept;

/// Bytes saved for the backward pass under `recompute`.
[[nodiscard]] Expr saved_bytes(const Analysis& analysis, Recompute recompute);

/// Bytes of the whole KV-cache.
[[nodiscard]] Expr kv_cache_bytes(const Analysis& analysis);
/// Bytes that one more token of one sequence adds to the KV-cache, but for compressed keys
/// (compressed_key_bytes): a layer with a full window adds none.
[[nodiscard]] Expr kv_cache_bytes_per_token(const Analysis& analysis, WindowFill fill);
/// Bytes of one key for several tokens in all layers whose number of keys is `keys`,
/// Symbol::compressed_keys or heavily_compressed_keys.
[[nodiscard]] Expr compressed_key_bytes(const Analysis& analysis, Symbol keys);

// Figures: the numbers of an analysis for one workload. An Evaluator substitutes the model's sizes
// once, so that a workload costs microseconds; a sweep evaluates millions.

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
  Integer kv_cache_bytes_per_token = 0;      ///< that the next token of one sequence adds
  std::vector<ComponentFigures> components;  ///< in the order of Analysis::components
};

enum class PassDirection { forward, backward };

/// Bytes of a training step while one operator runs.
struct TrainingMoment {
  std::string path;
  std::int64_t run = 0;  ///< of its block
  PassDirection direction = PassDirection::forward;
  Integer saved = 0;  ///< for the backward pass
  /// Tensors that the backward pass computes again: a layer's under full recomputation, its
  /// attention core's under selective.
  Integer recomputed = 0;
  /// Gradients of activations: each from its last reader until its producer has run backward.
  Integer gradients = 0;
  [[nodiscard]] Integer total() const;
};

/// All operators of a training step in order, every layer: forward, then backward. Excludes weights
/// and their gradients, and temporaries of operators. `saved` ends the forward pass at saved_bytes
/// under `workload.recompute`. Empty unless training. Throws Error{overflow}.
[[nodiscard]] std::vector<TrainingMoment> training_moments(const Graph& graph,
                                                           const Analysis& analysis,
                                                           const Workload& workload);

/// Values of symbols, laid out for CompiledExpr. Knows which symbols are bound.
class SymbolValues {
 public:
  /// A set of symbols, by `index(symbol)`.
  using Symbols = std::bitset<kSymbolCount>;

  SymbolValues() = default;
  explicit SymbolValues(const Bindings& bindings);

  /// Binds `symbol`, replacing any earlier value.
  void set(Symbol symbol, Integer value) {
    values_[index(symbol)] = value;
    bound_.set(index(symbol));
  }
  /// The value of the symbol with that index; 0 if unbound.
  [[nodiscard]] Integer operator[](std::size_t symbol) const { return values_[symbol]; }
  [[nodiscard]] const Symbols& bound() const noexcept { return bound_; }

 private:
  std::array<Integer, kSymbolCount> values_{};
  Symbols bound_;
};

/// A polynomial in the workload's symbols, laid out for fast evaluation.
class CompiledExpr {
 public:
  /// Compiles `expr` with the model's `sizes` substituted. Throws Error{overflow}.
  CompiledExpr(const Expr& expr, const Bindings& sizes);

  /// The exact value. Throws Error{overflow}, and Error{internal} for an unbound symbol.
  [[nodiscard]] Integer evaluate(const SymbolValues& values) const;

 private:
  struct CompiledTerm {
    Integer coefficient;
    std::uint32_t first_factor;
    std::uint32_t factor_count;
  };
  std::vector<CompiledTerm> terms_;
  std::vector<std::uint8_t> factors_;  ///< symbol indices, a power as repeated factors
  SymbolValues::Symbols needed_;       ///< symbols among the factors
};

/// The workload's values by symbol, for CompiledExpr.
[[nodiscard]] SymbolValues values_of(const Workload& workload, const LayerTraits& traits);

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
    CompiledExpr weight_bytes;
    CompiledCost forward;
    CompiledCost backward;
  };
  struct CompiledPeak {
    CompiledExpr bytes;
    std::size_t index;
  };
  [[nodiscard]] static CompiledCost compile(const Cost& cost, const Bindings& sizes);
  [[nodiscard]] static CostFigures evaluate(const CompiledCost& cost, const SymbolValues& values);
  /// Compressed keys count by their mean over the tokens of one.
  [[nodiscard]] Integer bytes_of_next_token(const Workload& workload,
                                            const SymbolValues& values) const;

  LayerTraits traits_;
  CompiledExpr parameters_;
  CompiledExpr active_parameters_;
  CompiledExpr weight_bytes_;
  CompiledCost forward_;
  CompiledCost backward_;
  CompiledCost recompute_;
  CompiledExpr saved_;
  CompiledExpr kv_cache_;
  CompiledExpr per_token_while_filling_;  ///< of the KV-cache, as both that follow
  CompiledExpr per_token_when_full_;
  CompiledExpr compressed_key_;
  CompiledExpr heavily_compressed_key_;
  std::vector<CompiledPeak> peaks_;  ///< distinct live sets
  std::vector<CompiledComponent> components_;
};

// Recurrent mixers have two algorithms in a prefill: the recurrence, position by position, and the
// chunked form, whose GEMMs within and between chunks fill a GPU.

/// Matrix FLOPs of the scans of all layers; projections and convolutions are not part of a scan.
struct ScanFlops {
  Integer recurrence = 0;
  /// By the reference code's algorithm, which pads the sequence to whole chunks.
  Integer chunked = 0;
  std::int64_t chunk_size = 0;
};

/// FLOPs of the state-space and gated delta layers of `spec` on a pass of `workload.seq_len` new
/// positions; empty if it has none that the reference code computes in chunks, and in decode, where
/// it runs the recurrence. Of one chunk of C
/// positions and one head:
///
/// - Mamba-2 (transformers, models/mamba2, torch_forward), state [p, n]: C·Bᵀ and its product with
///   x within the chunk, 2·C²·(n + p); the chunk's state and its product with C, 4·C·p·n; and once
///   per layer each of k + 1 states from the k + 1 before, 2·(k + 1)²·p·n for k chunks.
/// - Gated delta (models/qwen3_next, torch_chunk_gated_delta_rule), state [k, v], C = 64: K·Kᵀ,
///   Q·Kᵀ and the three products of C × C matrices with keys and values, C²·(6·k + 4·v); the
///   products with the state, 6·C·k·v. The triangular inverse is element-wise.
[[nodiscard]] std::optional<ScanFlops> scan_flops(const ModelSpec& spec, const Workload& workload);

}  // namespace headroom
