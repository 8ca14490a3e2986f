// Values of one axis of a sweep.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "options.h"

namespace headroom::cli {

/// "1,2,8", "1..8", "1..64:x2", "128..1024:+128", and lists of these. Throws CLI::ValidationError
/// for anything else and for more values than a sweep could ever need.
[[nodiscard]] std::vector<std::int64_t> parse_axis(const std::string& option,
                                                   const std::string& text);

/// The value of `word` among `choices`. Throws CLI::ValidationError.
template <class Value>
void add_known(const std::string& word, const std::string& option, const Choices<Value>& choices,
               std::optional<Value>& value) {
  std::vector<std::string> known;
  for (const auto& [text, choice] : choices) {
    known.push_back(text);
    if (text == word) value = choice;
  }
  if (!value) refuse_choice(option, word, known);
}

}  // namespace headroom::cli
