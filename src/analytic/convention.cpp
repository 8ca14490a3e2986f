#include <cstddef>

#include "headroom/analysis.h"

namespace headroom {
namespace {

constexpr std::array<ConventionInfo, 5> kConventions{{
    {Convention::headroom, "headroom", "FLOP",
     "1 multiply–add = 2 FLOP; attention by the pairs that are computed"},
    {Convention::torch, "torch", "FLOP",
     "1 multiply–add = 2 FLOP; all pairs, causal or not (torch.utils.flop_counter)"},
    {Convention::fvcore, "fvcore", "MAC",
     "multiply–adds; all pairs; fused attention not counted (fvcore.nn.FlopCountAnalysis)"},
    {Convention::megatron, "megatron", "FLOP",
     "1 multiply–add = 2 FLOP; half of the pairs under a causal mask (Megatron-LM)"},
    {Convention::palm, "palm", "FLOP",
     "2 FLOP per parameter and token, all pairs (PaLM, arXiv 2204.02311, appendix B)"},
}};

}  // namespace

const std::array<ConventionInfo, 5>& conventions() noexcept { return kConventions; }

const ConventionInfo& info(Convention convention) noexcept {
  return kConventions[static_cast<std::size_t>(convention)];
}

}  // namespace headroom
