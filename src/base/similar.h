// Words that are almost what was typed: "did you mean …?", and another case.
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

/// Up to three of `known` that share a part between dashes with `word`, or the beginning of one:
/// "search-threads" for "threads", "seq" for "sequence".
[[nodiscard]] std::vector<std::string> related_words(std::string_view word,
                                                     std::span<const std::string> known);

/// "did you mean bert-base or bert-large?", or empty if nothing is close.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> known);
/// As did_you_mean(), of the related words if nothing is close.
[[nodiscard]] std::string did_you_mean_option(std::string_view word,
                                              std::span<const std::string> known);

/// ASCII letters in lower case.
[[nodiscard]] std::string lower_case(std::string_view text);

/// True if `text` contains `part`, in any case.
[[nodiscard]] bool contains_ignoring_case(std::string_view text, std::string_view part);

}  // namespace headroom::detail
