// Sizes of mixers that have no symbol, for the numbers in their formulas.
#pragma once

#include <string>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom::detail {

/// "gated delta: 16 key heads of 128, 32 = 2·η value heads of 128, kernel 4": one text per kind of
/// mixer in `spec` whose sizes are numbers in formulas.
[[nodiscard]] std::vector<std::string> mixer_sizes(const ModelSpec& spec);

}  // namespace headroom::detail
