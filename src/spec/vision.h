// Vision towers of multimodal models: their weights are counted, their operators are not in the
// graph.
#pragma once

#include "common_keys.h"

namespace headroom::detail {

/// Counts the weights of a SigLIP vision tower and of the projector to the text model (Gemma 3).
void count_siglip_tower(ConfigReader& config, ModelSpec& spec);

/// Counts the weights of Llama 4's vision tower and projector.
void count_llama4_tower(ConfigReader& config, ModelSpec& spec);

}  // namespace headroom::detail
