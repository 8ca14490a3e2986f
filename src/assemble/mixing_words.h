// Words for what mixes tokens between the projections of attention. Internal to src/assemble.
#pragma once

#include <string>
#include <vector>

#include "headroom/report.h"

namespace headroom::detail {

/// Operators with matrix FLOPs that Share::attention counts.
struct MixingWords {
  bool has_scores = false;          ///< scores and context of softmax attention
  std::vector<std::string> others;  ///< "recurrences", "convolutions", …
};

[[nodiscard]] MixingWords mixing_words(const AnalyzeReport& report);

/// "a", "a and b", "a, b and c".
[[nodiscard]] std::string listed(const std::vector<std::string>& words);

}  // namespace headroom::detail
