// --weights where random weights may have a type beside those of WeightType.
#pragma once

#include <optional>
#include <string>

#include "drawn_type.h"
#include "headroom/workload.h"

namespace headroom::cli {

/// Use of weights: `run` leaves out float16, which no kernel runs.
enum class WeightUse { counted, run };

/// Words of help: those of WeightType, the mixes and FORMAT.
[[nodiscard]] std::string weight_words(WeightUse use);

/// Sets the type that `word` names, one of WeightType in `weights`, any other in `drawn`, and
/// clears the other. Throws a usage error with the words of `use`.
void set_weights(const std::string& word, WeightUse use, std::optional<WeightType>& weights,
                 std::optional<detail::DrawnType>& drawn);

}  // namespace headroom::cli
