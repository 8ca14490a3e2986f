// Conventions of counting floating-point operations. Tools disagree, so every report names its
// convention, and other tools' conventions are available by name.
#pragma once

#include <array>
#include <string_view>

namespace headroom {

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

}  // namespace headroom
