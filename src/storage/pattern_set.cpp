#include "pattern_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

constexpr std::array<std::string_view, 7> kPrefixes{"model.",    "language_model.", "transformer.",
                                                    "backbone.", "base_model.",     "text_model.",
                                                    "thinker."};
// Whole prefixes, for regular expressions that name one.
constexpr std::array<std::string_view, 5> kWholePrefixes{
    "", "model.", "model.language_model.", "language_model.model.", "language_model."};

bool has_digit(std::string_view text) {
  return std::ranges::any_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Returns true if an expert's number follows "experts".
bool numbers_an_expert(std::string_view text) {
  constexpr std::string_view kExperts = "experts";
  for (auto at = text.find(kExperts); at != std::string_view::npos;
       at = text.find(kExperts, at + 1)) {
    const std::string_view rest = text.substr(at + kExperts.size());
    const auto digit = rest.find_first_not_of("\\.[(");
    if (digit == std::string_view::npos || digit == 0) continue;
    if (std::isdigit(static_cast<unsigned char>(rest[digit])) != 0) return true;
  }
  return false;
}

/// fnmatch: * is any text, ? any character.
bool glob_matches(std::string_view glob, std::string_view text) {
  std::size_t g = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      resume = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', g) == std::string_view::npos;
}

/// Calls `visit` with the modules around `name`, the outermost first, and with `name` itself, until
/// it returns true.
template <class Visit>
bool any_module(std::string_view name, Visit visit) {
  for (auto dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    if (visit(name.substr(0, dot))) return true;
  }
  return visit(name);
}

}  // namespace

std::string_view without_prefix(std::string_view name) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view prefix : kPrefixes) {
      if (name.size() <= prefix.size() || !name.starts_with(prefix)) continue;
      name.remove_prefix(prefix.size());
      found = true;
    }
  }
  return name;
}

PatternSet::PatternSet(std::span<const ModulePattern> patterns) {
  for (const ModulePattern& pattern : patterns) {
    const std::string_view text = without_prefix(pattern.text);
    names_layers_ = names_layers_ || has_digit(text);
    names_experts_ = names_experts_ || numbers_an_expert(text);
    switch (pattern.syntax) {
      case PatternSyntax::words:
        words_.emplace(text);
        first_words_.emplace(text.substr(0, text.find('.')));
        break;
      case PatternSyntax::glob: {
        const std::string_view literal = text.substr(0, text.find_first_of("*?"));
        const auto dot = literal.rfind('.');
        const std::string_view head = dot == std::string_view::npos ? "" : literal.substr(0, dot);
        globs_[std::string(head)].emplace_back(text);
        break;
      }
      case PatternSyntax::regex:
        add_regex(pattern.text);
        break;
      case PatternSyntax::part:
        parts_.emplace_back(text);
        break;
    }
  }
}

void PatternSet::add_regex(const std::string& text) {
  // The standard library's matcher recurses along the expression; no published one is as long.
  constexpr std::size_t kLongest = 1000;
  // \d stands for any number: layers need not be told apart for it.
  try {
    if (text.size() > kLongest) throw std::regex_error(std::regex_constants::error_complexity);
    regexes_.push_back(
        {std::regex(text, std::regex::ECMAScript | std::regex::optimize), text.starts_with(".*")});
  } catch (const std::regex_error&) {
    throw Error(ErrorCode::invalid_input, "cannot be read as a regular expression of module names",
                fmt::format("quantization_config: re:{}", text),
                "write an expression without look-behind and inline flags");
  }
}

bool PatternSet::matches(std::string_view name) const {
  return words_match(name) || globs_match(name) || regexes_match(name) || parts_match(name);
}

bool PatternSet::words_match(std::string_view name) const {
  if (words_.empty()) return false;
  for (std::size_t begin = 0; begin != std::string_view::npos && begin < name.size();) {
    const std::string_view rest = name.substr(begin);
    const bool known = first_words_.contains(rest.substr(0, rest.find('.')));
    if (known && any_module(rest, [&](std::string_view part) { return words_.contains(part); })) {
      return true;
    }
    const auto dot = name.find('.', begin);
    begin = dot == std::string_view::npos ? dot : dot + 1;
  }
  return false;
}

bool PatternSet::globs_match(std::string_view name) const {
  if (globs_.empty()) return false;
  const std::string weight = std::string(name) + ".weight";
  const auto in_bucket = [&](std::string_view head) {
    const auto bucket = globs_.find(head);
    if (bucket == globs_.end()) return false;
    return std::ranges::any_of(bucket->second, [&](const std::string& glob) {
      return any_module(weight, [&](std::string_view part) { return glob_matches(glob, part); });
    });
  };
  return in_bucket("") || any_module(name, in_bucket);
}

bool PatternSet::parts_match(std::string_view name) const {
  return std::ranges::any_of(
      parts_, [&](const std::string& part) { return name.find(part) != std::string_view::npos; });
}

bool PatternSet::regexes_match(std::string_view name) const {
  for (const Regex& one : regexes_) {
    for (const std::string_view prefix : kWholePrefixes) {
      const std::string whole = std::string(prefix) + std::string(name);
      if (std::regex_search(whole, one.regex, std::regex_constants::match_continuous)) return true;
      if (one.open_start) break;
    }
  }
  return false;
}

}  // namespace headroom::detail
