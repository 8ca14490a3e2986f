// Words for the length at which attention overtakes the feed-forward network. Internal to
// src/report.
#pragma once

#include <string>

#include "headroom/report.h"

namespace headroom::detail {

/// Names the length where attention overtakes the FFN, with an inequality that holds: "overtakes
/// the FFN at s = 3,073: 4·s·d > 16·d²", "stays below the FFN at every length: 4·d·k + 2·d ≤
/// 16·d²".
[[nodiscard]] std::string describe(const FfnCrossover& crossover);

}  // namespace headroom::detail
