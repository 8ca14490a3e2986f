// Asymptotic range of a layer: lengths at which the leading power makes up most of its cost.
// Internal to src/study.
#pragma once

#include "headroom/complexity.h"

namespace headroom {

/// Fraction of the cost in the leading power of the length, the smaller of those for FLOPs and
/// bytes moved. Near 1 the layer is in its asymptotic range.
[[nodiscard]] double leading_share(const LayerComplexity& layer, Integer length);
/// That fraction for position mixing.
[[nodiscard]] double leading_share_of_core(const LayerComplexity& layer, Integer length);

/// Bytes that the layer's operators move at one length, in float32.
[[nodiscard]] Integer moved_bytes(const LayerComplexity& layer, Integer length);
/// Bytes that position mixing moves.
[[nodiscard]] Integer moved_bytes_of_core(const LayerComplexity& layer, Integer length);

}  // namespace headroom
