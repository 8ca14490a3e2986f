// Presets that a typed name could mean.
#pragma once

#include <string_view>
#include <vector>

#include "headroom/model_source.h"

namespace headroom::detail {

/// The presets whose repository is `typed`, or that a guess at it finds; see `match_preset`.
[[nodiscard]] std::vector<Preset> presets_like(std::string_view typed);

}  // namespace headroom::detail
