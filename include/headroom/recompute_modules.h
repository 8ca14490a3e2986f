// Parts of a layer that selective recomputation can name, as Megatron-LM's --recompute-modules does
// (megatron/training/arguments.py, core r0.13).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/graph.h"

namespace headroom {

/// A part of a layer: which modules recompute its operators and drop what they save.
enum class LayerPart {
  other,
  attention_core,
  norm,
  latent_expansion,
  dense_ffn,
  experts,
  expert_activation,
  shared_expert
};
inline constexpr std::size_t kLayerParts = 8;

/// The part that `node` belongs to.
[[nodiscard]] LayerPart layer_part(const Node& node);

/// The part that drops a tensor which `saver` keeps for its backward pass: the one that can make it
/// again. `producer` is null for a tensor that is internal to `saver`. What enters a part from
/// outside stays saved.
[[nodiscard]] LayerPart recomputed_by(const Node& saver, const Node* producer);

enum class RecomputeModule {
  core_attn,       ///< scores, softmax, its dropout, and context (in_attention_core)
  layernorm,       ///< the norms before attention and feed-forward network
  mla_up_proj,     ///< queries, keys and values of heads from compressed queries and latents, RoPE
  mlp,             ///< the whole dense feed-forward network
  moe,             ///< router, experts and shared experts, with their exchanges
  moe_act,         ///< the activation function of the experts
  shared_experts,  ///< the shared experts, with their gate
};

/// A set of modules.
class RecomputeModules {
 public:
  constexpr RecomputeModules() = default;
  explicit constexpr RecomputeModules(RecomputeModule module) { add(module); }

  constexpr void add(RecomputeModule module) noexcept { bits_ |= bit_of(module); }
  [[nodiscard]] constexpr bool has(RecomputeModule module) const noexcept {
    return (bits_ & bit_of(module)) != 0;
  }
  /// True if a module of the set recomputes `part`.
  [[nodiscard]] bool recompute(LayerPart part) const noexcept;
  bool operator==(const RecomputeModules&) const = default;

 private:
  [[nodiscard]] static constexpr unsigned bit_of(RecomputeModule module) noexcept {
    return 1U << static_cast<unsigned>(module);
  }
  unsigned bits_ = 0;
};

/// Megatron-LM's names: "core_attn,layernorm".
[[nodiscard]] std::string name_of(const RecomputeModules& modules, char separator = ',');
/// Reads such names, with commas between them. Empty if one is unknown.
[[nodiscard]] std::optional<RecomputeModules> recompute_modules(std::string_view names) noexcept;

}  // namespace headroom
