// Presets that a typed name could mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_source.h"

namespace headroom::detail {

/// The presets whose repository is `typed`, or that a guess at it finds; see `match_preset`.
[[nodiscard]] std::vector<Preset> presets_like(std::string_view typed);

/// For the name of a quantised copy ("ORG/Qwen3-8B-AWQ"), a question whether the preset of the
/// model itself is meant; empty if there is no such preset, or several.
[[nodiscard]] std::string hint_before_quantisation(std::string_view typed);

}  // namespace headroom::detail
