// Document -> aligned text.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ansi.h"
#include "document.h"
#include "text_table.h"
#include "wrap.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kLabelGap = "  ";

/// Text is wrapped no narrower than this.
constexpr std::size_t kLeastWidth = 24;

/// The widest label of all formulas, which share one "=" column.
std::size_t formula_label_width(const Document& document) {
  std::size_t width = 0;
  for (const Block& block : document.blocks) {
    if (const auto* formula = std::get_if<Formula>(&block)) {
      width = std::max(width, display_width(formula->name));
    }
  }
  return width;
}

/// The widest label of the consecutive lines from `first`.
std::size_t line_label_width(const std::vector<Block>& blocks, std::size_t first) {
  std::size_t width = 0;
  for (std::size_t i = first; i < blocks.size(); ++i) {
    const auto* line = std::get_if<Line>(&blocks[i]);
    if (line == nullptr) break;
    width = std::max(width, display_width(line->label));
  }
  return width;
}

/// Room for text after `indent` columns; 0 if it is unlimited.
std::size_t room_after(std::size_t indent, std::size_t width) {
  return width == 0 ? 0 : std::max(width - std::min(width, indent), kLeastWidth);
}

/// `name = step`, further lines of a step after the "=". A name of more than half of the screen has
/// a line of its own.
std::string formula_text(const Formula& formula, std::size_t label, std::size_t width) {
  constexpr std::string_view kEquals = " = ";
  std::string result;
  std::string name = formula.name;
  if (width > 0 && label > width / 2) {
    result = std::exchange(name, std::string()) + "\n";
    label = 1;
  }
  const std::string indent(label + kEquals.size(), ' ');
  for (const std::string& step : formula.steps) {
    std::string start = padded_to(std::exchange(name, std::string()), label, Alignment::left) +
                        std::string(kEquals);
    for (const std::string& line : wrapped_formula(step, room_after(indent.size(), width))) {
      result += std::exchange(start, indent) + line + "\n";
    }
  }
  return result;
}

/// Writes the blocks, with an empty line between blocks of different kinds.
class TextWriter {
 public:
  TextWriter(const Document& document, const TextLayout& layout)
      : document_(document), layout_(layout), formula_label_(formula_label_width(document)) {}

  std::string write() && {
    for (; at_ < document_.blocks.size(); ++at_) {
      if (starts_section()) result_ += "\n";
      std::visit(*this, document_.blocks[at_]);
    }
    return std::move(result_);
  }

  void operator()(const Heading& heading) {
    result_ += painted(heading.text, layout_.colour == Colour::on ? kBold : nullptr) + "\n";
  }
  void operator()(const Line& line) {
    if (!follows_same_kind()) line_label_ = line_label_width(document_.blocks, at_);
    const std::string indent(line_label_ + kLabelGap.size(), ' ');
    std::string start =
        padded_to(line.label, line_label_, Alignment::left) + std::string(kLabelGap);
    Outcome outcome = line.outcome;
    for (const std::string& part :
         wrapped_text(line.text, room_after(indent.size(), layout_.width))) {
      result_ += std::exchange(start, indent);
      result_ += with_colour(part, std::exchange(outcome, Outcome::none)) + "\n";
    }
  }
  void operator()(const Table& table) { result_ += table_text(table, layout_); }
  void operator()(const Formula& formula) {
    result_ += formula_text(formula, formula_label_, layout_.width);
  }

 private:
  /// The answer in its colour: the text before a dash or a gap.
  [[nodiscard]] std::string with_colour(const std::string& text, Outcome outcome) const {
    if (layout_.colour == Colour::off) return text;
    const std::size_t end = std::min({text.find(" — "), text.find("  "), text.size()});
    return painted(text.substr(0, end), terminal_colour(outcome)) + text.substr(end);
  }

  [[nodiscard]] bool follows_same_kind() const {
    return at_ > 0 && document_.blocks[at_ - 1].index() == document_.blocks[at_].index();
  }

  [[nodiscard]] bool starts_section() const {
    if (at_ == 0 || std::holds_alternative<Heading>(document_.blocks[at_ - 1])) return false;
    return !follows_same_kind() || std::holds_alternative<Formula>(document_.blocks[at_]);
  }

  const Document& document_;
  const TextLayout& layout_;
  std::size_t formula_label_;
  std::size_t line_label_ = 0;
  std::size_t at_ = 0;
  std::string result_;
};

}  // namespace

std::string to_text(const Document& document, const TextLayout& layout) {
  return TextWriter(document, layout).write();
}

}  // namespace headroom::detail
