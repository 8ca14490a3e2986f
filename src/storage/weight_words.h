// Words for the forms that weights are converted to, on every command line.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "headroom/workload.h"

namespace headroom::detail {

struct WeightWord {
  std::string_view word;
  WeightType type;
};

/// Words of all types in the order of WeightType. The first of a type is its name, others are short
/// forms of it.
[[nodiscard]] std::span<const WeightWord> weight_words() noexcept;

/// The form that `word` names, in any case: one of those words, or a form of groups with scales
/// ("fp8-128x128-s32"). Empty if it names none.
[[nodiscard]] std::optional<WeightForm> weight_form_named(std::string_view word);

}  // namespace headroom::detail
