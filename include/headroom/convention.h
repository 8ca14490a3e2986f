// How floating-point operations are counted. Tools disagree, so every report names its convention,
// and other tools' can be asked for by name.
#pragma once

#include <array>
#include <string_view>

namespace headroom {

enum class Convention {
  headroom,  ///< 2 FLOP a multiply-add; attention by the pairs that its implementation computes
  torch,     ///< torch.utils.flop_counter: 2 FLOP, all pairs even under a causal mask
  fvcore,    ///< fvcore: multiply-adds, all pairs, fused attention not counted at all
  megatron,  ///< Megatron-LM: 2 FLOP, half of the pairs under a causal mask
  palm,      ///< PaLM appendix B (arXiv 2204.02311): 2 FLOP a parameter and token, and all pairs
};

struct ConventionInfo {
  Convention convention;
  std::string_view name;
  std::string_view unit;     ///< what its figures are in
  std::string_view summary;  ///< one line, for reports
};

/// All conventions, in order of the enumeration.
[[nodiscard]] const std::array<ConventionInfo, 5>& conventions() noexcept;

[[nodiscard]] const ConventionInfo& info(Convention convention) noexcept;

}  // namespace headroom
