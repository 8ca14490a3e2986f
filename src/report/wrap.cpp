#include "wrap.h"

#include <algorithm>
#include <utility>

#include "document.h"

namespace headroom::detail {
namespace {

/// Separates parts on a line; at a break, its end stays with the line.
struct Joint {
  std::string_view between;
  std::string_view at_end;
};

constexpr Joint kItems{" · ", " ·"};
constexpr Joint kWords{" ", ""};

std::vector<std::string> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t at = text.find(separator); at != std::string_view::npos;
       at = text.find(separator)) {
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at + separator.size());
  }
  parts.emplace_back(text);
  return parts;
}

/// Words; an operator belongs to the word after it.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool after_operator = false;
  for (std::string& word : parts_of(text, " ")) {
    const bool is_operator = word == "+" || word == "−" || word == "=";
    if (after_operator) {
      words.back() += " " + word;
    } else {
      words.push_back(std::move(word));
    }
    after_operator = is_operator;
  }
  return words;
}

/// Terms with their signs.
std::vector<std::string> terms_of(std::string_view formula) {
  std::vector<std::string> terms;
  for (std::string& word : words_of(formula)) {
    const bool begins = terms.empty() || word.starts_with("+ ") || word.starts_with("− ");
    if (begins) {
      terms.push_back(std::move(word));
    } else {
      terms.back() += " " + word;
    }
  }
  return terms;
}

std::vector<std::string> packed(const std::vector<std::string>& parts, const Joint& joint,
                                std::size_t width) {
  const std::size_t reserved = display_width(joint.at_end);
  std::vector<std::string> lines{parts.front()};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    std::string& line = lines.back();
    const std::size_t end = i + 1 == parts.size() ? 0 : reserved;
    const std::size_t joined =
        display_width(line) + display_width(joint.between) + display_width(parts[i]) + end;
    if (joined <= width) {
      line += std::string(joint.between) + parts[i];
      continue;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    line += joint.at_end;
    lines.push_back(parts[i]);
  }
  return lines;
}

}  // namespace

std::vector<std::string> wrapped_text(std::string_view text, std::size_t width) {
  if (width == 0 || display_width(text) <= width) return {std::string(text)};
  const std::vector<std::string> items = parts_of(text, kItems.between);
  const std::size_t most = width - std::min(width, display_width(kItems.at_end));
  const auto fits = [&](const std::string& item) { return display_width(item) <= most; };
  if (items.size() > 1 && std::ranges::all_of(items, fits)) return packed(items, kItems, width);
  return packed(words_of(text), kWords, width);
}

std::vector<std::string> wrapped_formula(std::string_view formula, std::size_t width) {
  if (width == 0 || display_width(formula) <= width) return {std::string(formula)};
  return packed(terms_of(formula), kWords, width);
}

std::size_t widest_part(std::string_view text) {
  std::size_t widest = 0;
  for (const std::string& word : words_of(text)) widest = std::max(widest, display_width(word));
  return widest;
}

}  // namespace headroom::detail
