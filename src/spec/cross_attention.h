// Cross-attention of a decoder that runs without its encoder.
#pragma once

#include "headroom/model_spec.h"

namespace headroom::detail {

/// Counts the cross-attention that every layer of the main stack keeps, and that nothing calls
/// without an encoder: four projections with the biases of self-attention, and a LayerNorm.
void count_unused_cross_attention(ModelSpec& spec);

/// True if the model keeps such weights.
[[nodiscard]] bool keeps_cross_attention(const ModelSpec& spec);

}  // namespace headroom::detail
