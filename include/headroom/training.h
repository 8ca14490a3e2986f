// Training state besides activations: weights, gradients, master weights and optimizer states, by
// recipe, optimizer, ZeRO stage and adapter.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "headroom/graph.h"

namespace headroom {

enum class Optimizer {
  sgd,        ///< no state
  momentum,   ///< one state per parameter
  adam,       ///< two states per parameter; AdamW has the same
  adam_8bit,  ///< two states of one byte, with a float32 scale per block (arXiv 2110.02861)
  adafactor,  ///< a row and a column per matrix (arXiv 1804.04235); vectors in full
  muon,       ///< one state for the layers' matrices, Adam's two for all else
};

struct OptimizerInfo {
  Optimizer optimizer;
  std::string_view name;
  std::string_view source;
};
[[nodiscard]] const std::array<OptimizerInfo, 6>& optimizers() noexcept;

/// Number formats of a parameter's states.
enum class Recipe {
  float32,   ///< all in float32
  bfloat16,  ///< all in 16 bit, optimizer states too
  mixed,     ///< 16-bit weights and gradients; float32 master weights and states
  megatron,  ///< 16-bit weights; float32 gradients, master weights and states
};

/// A recipe's bytes per element.
struct RecipeInfo {
  Recipe recipe;
  std::string_view name;
  Integer weight_bytes;
  Integer gradient_bytes;
  Integer master_bytes;
  Integer state_bytes;
  std::string_view source;
};
[[nodiscard]] const std::array<RecipeInfo, 4>& recipes() noexcept;

[[nodiscard]] const OptimizerInfo& info(Optimizer optimizer) noexcept;
[[nodiscard]] const RecipeInfo& info(Recipe recipe) noexcept;

/// States that ZeRO shards over the ranks with the same weights (arXiv 1910.02054).
enum class Zero {
  none,
  optimizer,  ///< stage 1: master weights and optimizer states; Megatron's distributed optimizer
  gradients,  ///< stage 2: gradients as well
  weights,    ///< stage 3: weights as well; FSDP
};

/// Parameter-efficient fine-tuning method.
enum class AdapterKind {
  none,
  lora,   ///< two low-rank matrices per target layer, all else frozen (arXiv 2106.09685)
  qlora,  ///< LoRA on layers whose frozen matrices are stored in 4 bit (arXiv 2305.14314)
};
enum class AdapterTargets {
  attention,  ///< query, key, value and output projections
  all,        ///< the feed-forward network's projections as well
};
struct Adapter {
  AdapterKind kind = AdapterKind::none;
  std::int64_t rank = 16;
  AdapterTargets targets = AdapterTargets::all;
  bool operator==(const Adapter&) const = default;
};

/// graph -> graph: adds two low-rank matrices to every target layer and freezes all else. Unchanged
/// without an adapter.
[[nodiscard]] Graph with_adapter(const Graph& graph, const Adapter& adapter);

/// True for matrices of the layers, which Muon updates and quantised formats store in few bits.
[[nodiscard]] bool is_layer_matrix(const Weight& weight) noexcept;

struct StatePolicy {
  Recipe recipe = Recipe::megatron;
  Optimizer optimizer = Optimizer::adam;
  AdapterKind adapter = AdapterKind::none;
};

/// Bytes of weights and their training states.
struct StateBytes {
  Integer weights = 0;
  Integer gradients = 0;
  Integer optimizer = 0;  ///< master weights included

  StateBytes& operator+=(const StateBytes& other);
  [[nodiscard]] Integer total() const { return weights + gradients + optimizer; }
};

/// States of all layers' copies of `weight` at these sizes, before ZeRO.
[[nodiscard]] StateBytes state_bytes(const Weight& weight, const StatePolicy& policy,
                                     const Bindings& sizes);

/// The bytes that one of `replicas` ranks stores under ZeRO.
[[nodiscard]] StateBytes zero_sharded(const StateBytes& states, Zero zero, std::int64_t replicas);

}  // namespace headroom
