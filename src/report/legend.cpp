#include "legend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace headroom::detail {
namespace {

/// Columns of an entry line, so that with its label it fits a terminal of 100.
constexpr std::size_t kLegendWidth = 80;

/// Lead bytes of the Greek letters in UTF-8, U+0380 to U+03FF.
bool leads_greek(char byte) { return byte == '\xCE' || byte == '\xCF'; }

bool is_alphanumeric(char byte) { return std::isalnum(static_cast<unsigned char>(byte)) != 0; }

/// Returns whether the text between two ends is a word of its own, or a subscript: κ of log_κ.
bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const bool after_word = begin > 0 && is_alphanumeric(text[begin - 1]);
  const bool after_greek = begin > 1 && leads_greek(text[begin - 2]);
  if (after_word || after_greek) return false;
  return end == text.size() ||
         !(is_alphanumeric(text[end]) || text[end] == '_' || leads_greek(text[end]));
}

bool occurs(std::string_view spelling, std::string_view text) {
  for (std::size_t at = text.find(spelling); at != std::string_view::npos;
       at = text.find(spelling, at + 1)) {
    if (stands_alone(text, at, at + spelling.size())) return true;
  }
  return false;
}

std::string entry_of(Symbol symbol) {
  const SymbolInfo& about = info(symbol);
  std::string text = about.unicode == about.key ? std::string(about.key)
                                                : fmt::format("{} {}", about.unicode, about.key);
  if (!about.definition.empty()) text += fmt::format(" = {}", about.definition);
  return text;
}

}  // namespace

std::vector<Symbol> symbols_in(std::string_view formula) {
  std::vector<Symbol> found;
  for (const SymbolInfo& symbol : symbols()) {
    if (occurs(symbol.unicode, formula)) found.push_back(symbol.symbol);
  }
  return found;
}

const std::string& Legend::note(const std::string& formula) {
  for (const Symbol symbol : symbols_in(formula)) {
    if (std::exchange(noted_[index(symbol)], true)) continue;
    note(std::string(info(symbol).definition));
  }
  return formula;
}

std::vector<Symbol> Legend::noted() const {
  std::vector<Symbol> result;
  for (const SymbolInfo& symbol : symbols()) {
    if (noted_[index(symbol.symbol)]) result.push_back(symbol.symbol);
  }
  return result;
}

std::vector<Line> Legend::lines() const { return legend_lines("where", noted()); }

std::vector<Line> packed_lines(std::string label, const std::vector<std::string>& entries) {
  constexpr std::string_view kBetween = " · ";
  std::vector<Line> lines;
  for (const std::string& entry : entries) {
    const bool fits = !lines.empty() && display_width(lines.back().text) + display_width(kBetween) +
                                                display_width(entry) <=
                                            kLegendWidth;
    if (fits) {
      lines.back().text += std::string(kBetween) + entry;
    } else {
      lines.push_back({std::exchange(label, ""), entry});
    }
  }
  return lines;
}

std::vector<Line> legend_lines(std::string label, const std::vector<Symbol>& listed) {
  std::vector<std::string> entries;
  std::ranges::transform(listed, std::back_inserter(entries), entry_of);
  return packed_lines(std::move(label), entries);
}

std::string symbol_with_value(Symbol symbol, const Bindings& values) {
  const SymbolInfo& about = info(symbol);
  std::string text =
      fmt::format("{} = {}", about.unicode, with_separators(values.get(symbol).value_or(0)));
  if (about.unicode != about.key) text += fmt::format(" {}", about.key);
  if (!about.definition.empty()) text += fmt::format(" ({})", about.definition);
  return text;
}

void add_lines(std::vector<Line> lines, Document& document) {
  for (Line& line : lines) document.blocks.emplace_back(std::move(line));
}

}  // namespace headroom::detail
