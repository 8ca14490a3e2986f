// Models whose pixels and samples of sound are projected into the text model, without an encoder.
#pragma once

#include "../common_keys.h"

namespace headroom::detail {

/// Gemma 4 12B: merged patches with norms, a table of positions and a projection; samples of sound
/// with a projection (transformers, models/gemma4_unified). They are counted, not run.
void count_gemma4_unified_towers(ConfigReader& config, ModelSpec& spec);

}  // namespace headroom::detail
