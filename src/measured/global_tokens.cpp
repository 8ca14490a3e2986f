// Tokens with global attention in a pass's inputs.
#include <algorithm>

#include "inputs.h"

namespace headroom::measured {
namespace {

/// Tokens [begin, end) of a sequence.
struct TokenRange {
  std::ptrdiff_t begin = 0;
  std::ptrdiff_t end = 0;
};

/// The tokens that a class chooses (transformers, modeling_longformer.py,
/// _compute_global_attention_mask): those before the first separator, or those behind it and the
/// next one. A text without a separator is all question, and has no choice.
TokenRange chosen_tokens(const GlobalAttentionSpec& global, std::span<const std::int64_t> ids) {
  const std::ptrdiff_t separator = std::ranges::find(ids, global.separator) - ids.begin();
  switch (global.by_default) {
    case DefaultGlobalTokens::none:
      break;
    case DefaultGlobalTokens::first_token:
      return {0, 1};
    case DefaultGlobalTokens::before_separator:
      return {0, separator};
    case DefaultGlobalTokens::behind_separators:
      return {std::min(separator + 2, std::ssize(ids)), std::ssize(ids)};
  }
  return {};
}

}  // namespace

std::int64_t most_global_tokens(const TokenInputs& tokens) {
  std::int64_t most = 0;
  const auto length = static_cast<std::size_t>(tokens.seq_len);
  for (std::size_t first = 0; first < tokens.global_mask.size(); first += length) {
    std::int64_t count = 0;
    for (std::size_t i = first; i < first + length; ++i) {
      const bool read = tokens.key_mask.empty() || tokens.key_mask[i] != 0;
      count += read && tokens.global_mask[i] != 0 ? 1 : 0;
    }
    most = std::max(most, count);
  }
  return most;
}

void add_default_global_mask(const GlobalAttentionSpec& global, TokenInputs& tokens) {
  tokens.global_mask.assign(tokens.ids.size(), 0);
  const auto length = static_cast<std::size_t>(tokens.seq_len);
  for (std::size_t first = 0; first < tokens.ids.size(); first += length) {
    const auto chosen = chosen_tokens(global, std::span(tokens.ids).subspan(first, length));
    const auto row = tokens.global_mask.begin() + static_cast<std::ptrdiff_t>(first);
    std::fill(row + chosen.begin, row + chosen.end, std::uint8_t{1});
  }
}

}  // namespace headroom::measured
