// Vision towers beside a text model: their weights are counted, their operators are not in the
// graph.
#pragma once

#include "common_keys.h"

namespace headroom::detail {

/// The weights of a SigLIP vision tower and of what leads from it to the text model (Gemma 3).
void count_siglip_tower(ConfigReader& config, ModelSpec& spec);

/// The same of Llama 4's.
void count_llama4_tower(ConfigReader& config, ModelSpec& spec);

}  // namespace headroom::detail
