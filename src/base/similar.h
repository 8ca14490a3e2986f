// "Did you mean …?" for a mistyped word.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::detail {

/// Up to three of `known` that are close to `word`, closest first: within edits
/// (Damerau-Levenshtein) of a third of its length, or with `word` as their prefix.
[[nodiscard]] std::vector<std::string> similar_words(std::string_view word,
                                                     std::span<const std::string> known);

/// "did you mean bert-base or bert-large?", or empty if nothing is close.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace headroom::detail
