#include "similar.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace headroom::detail {
namespace {

constexpr std::size_t kMostSuggestions = 3;

/// Least number of insertions, deletions, substitutions and swaps of neighbours from `a` to `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  std::iota(cost[0].begin(), cost[0].end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

/// True if the words differ in dashes and underscores alone: "q4km" and "q4_k_m".
bool differ_in_separators(std::string_view a, std::string_view b) {
  const auto joined = [](std::string_view word) {
    std::string text(word);
    std::erase_if(text, [](char c) { return c == '-' || c == '_'; });
    return text;
  };
  return joined(a) == joined(b);
}

/// Parts of `word` between dashes that are long enough to name a thing.
std::vector<std::string_view> parts_of(std::string_view word) {
  constexpr std::size_t kShortestPart = 3;
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= word.size();) {
    const std::size_t dash = std::min(word.find('-', start), word.size());
    if (dash - start >= kShortestPart) parts.push_back(word.substr(start, dash - start));
    start = dash + 1;
  }
  return parts;
}

/// True if a part of one begins with a part of the other: "threads" and "search-threads",
/// "sequence" and "seq".
bool share_part(std::string_view one, std::string_view other) {
  const auto begins = [](std::string_view a, std::string_view b) {
    return a.starts_with(b) || b.starts_with(a);
  };
  const std::vector<std::string_view> parts = parts_of(other);
  return std::ranges::any_of(parts_of(one), [&](std::string_view a) {
    return std::ranges::any_of(parts, [&](std::string_view b) { return begins(a, b); });
  });
}

std::string question_of(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  return fmt::format("did you mean {}?", fmt::join(words, " or "));
}

}  // namespace

std::vector<std::string> similar_words(std::string_view word, std::span<const std::string> known) {
  constexpr std::size_t kLongestWord = 64;  // longer input is not a typo
  if (word.empty() || word.size() > kLongestWord) return {};
  std::vector<std::pair<std::size_t, std::string>> close;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(word, candidate);
    const bool begins = word.size() >= 3 && candidate.starts_with(word);
    const bool is_close = distance <= std::max<std::size_t>(1, word.size() / 3);
    if (is_close || begins || differ_in_separators(word, candidate)) {
      close.emplace_back(distance, candidate);
    }
  }
  std::ranges::sort(close);
  std::vector<std::string> result;
  for (const auto& [distance, candidate] : close) {
    if (result.size() < kMostSuggestions) result.push_back(candidate);
  }
  return result;
}

std::vector<std::string> related_words(std::string_view word, std::span<const std::string> known) {
  std::vector<std::string> result;
  for (const std::string& candidate : known) {
    if (result.size() < kMostSuggestions && share_part(word, candidate)) {
      result.push_back(candidate);
    }
  }
  return result;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
  return question_of(similar_words(word, known));
}

std::string did_you_mean_option(std::string_view word, std::span<const std::string> known) {
  const std::string close = did_you_mean(word, known);
  return close.empty() ? question_of(related_words(word, known)) : close;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  return lower_case(text).find(lower_case(part)) != std::string::npos;
}

}  // namespace headroom::detail
