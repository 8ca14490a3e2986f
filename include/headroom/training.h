// What training holds beside activations: weights, gradients, master weights and optimizer states,
// by recipe, optimizer, ZeRO stage and adapter.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "headroom/graph.h"

namespace headroom {

enum class Optimizer {
  sgd,        ///< no state
  momentum,   ///< one state a parameter
  adam,       ///< two; AdamW holds the same
  adam_8bit,  ///< two of one byte, with a float32 scale a block (arXiv 2110.02861)
  adafactor,  ///< a row and a column of each matrix (arXiv 1804.04235); vectors in full
  muon,       ///< one for matrices of the layers, Adam's two for all else
};

struct OptimizerInfo {
  Optimizer optimizer;
  std::string_view name;
  std::string_view source;
};
[[nodiscard]] const std::array<OptimizerInfo, 6>& optimizers() noexcept;

/// Which numbers a parameter is held in.
enum class Recipe {
  float32,   ///< all in float32
  bfloat16,  ///< all in 16 bit, optimizer states too
  mixed,     ///< 16-bit weights and gradients; float32 master weights and states
  megatron,  ///< 16-bit weights; float32 gradients, master weights and states
};

/// Bytes of one element of each.
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

/// What the ranks that hold the same weights share out among them (arXiv 1910.02054).
enum class Zero {
  none,
  optimizer,  ///< stage 1: master weights and optimizer states; Megatron's distributed optimizer
  gradients,  ///< stage 2: gradients as well
  weights,    ///< stage 3: weights as well; FSDP
};

/// What of the layers is trained instead of all weights.
enum class AdapterKind {
  none,
  lora,   ///< two thin matrices beside each chosen layer, the rest frozen (arXiv 2106.09685)
  qlora,  ///< the same, the layers' frozen matrices in 4 bit (arXiv 2305.14314)
};
enum class AdapterTargets {
  attention,  ///< query, key, value and output projections
  all,        ///< those of the feed-forward network as well
};
struct Adapter {
  AdapterKind kind = AdapterKind::none;
  std::int64_t rank = 16;
  AdapterTargets targets = AdapterTargets::all;
  bool operator==(const Adapter&) const = default;
};

/// `graph` with two thin matrices beside every chosen linear layer, and all else frozen. graph ->
/// graph; unchanged without an adapter.
[[nodiscard]] Graph with_adapter(const Graph& graph, const Adapter& adapter);

/// Whether `weight` is a matrix of the layers: what Muon updates, and what is stored in few bits.
[[nodiscard]] bool is_layer_matrix(const Weight& weight) noexcept;

struct StatePolicy {
  Recipe recipe = Recipe::megatron;
  Optimizer optimizer = Optimizer::adam;
  AdapterKind adapter = AdapterKind::none;
};

/// Bytes of the states of some weights, before ZeRO shares them out.
struct StateBytes {
  Integer weights = 0;
  Integer gradients = 0;
  Integer optimizer = 0;  ///< master weights included

  StateBytes& operator+=(const StateBytes& other);
  [[nodiscard]] Integer total() const { return weights + gradients + optimizer; }
};

/// The states of all layers' copies of `weight`, at these sizes.
[[nodiscard]] StateBytes state_bytes(const Weight& weight, const StatePolicy& policy,
                                     const Bindings& sizes);

/// One rank's share among `replicas` ranks.
[[nodiscard]] StateBytes shared_out(const StateBytes& states, Zero zero, std::int64_t replicas);

}  // namespace headroom
