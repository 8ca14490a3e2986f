#include "run_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "type_options.h"

namespace headroom::cli {
namespace {

/// The choices of WeightType that `use` has.
Choices<WeightType> choices_of(WeightUse use) {
  Choices<WeightType> choices = weight_type_choices();
  switch (use) {
    case WeightUse::counted:
      break;
    case WeightUse::run:
      std::erase_if(choices,
                    [](const auto& choice) { return choice.second == WeightType::float16; });
      break;
  }
  return choices;
}

}  // namespace

std::string weight_words(WeightUse use) {
  return fmt::format("{}|{}|FORMAT", listed(choices_of(use)),
                     fmt::join(detail::drawn_mixes(), "|"));
}

void set_weights(const std::string& word, WeightUse use, std::optional<WeightType>& weights,
                 std::optional<detail::DrawnType>& drawn) {
  weights.reset();
  drawn = detail::drawn_type_named(word);
  if (drawn) return;
  std::vector<std::string> known = detail::drawn_mixes();
  for (const auto& [text, type] : weight_type_choices()) {
    known.push_back(text);
    if (text == word) weights = type;
  }
  if (!weights) refuse_word("--weights", word, known, weight_words(use));
}

}  // namespace headroom::cli
