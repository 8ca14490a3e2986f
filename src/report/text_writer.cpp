// Document -> aligned text.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "document.h"
#include "wrap.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kGap = "  ";

std::string padded_to(const std::string& text, std::size_t width, Alignment alignment) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return alignment == Alignment::left ? text + blanks : blanks + text;
}

/// Text is wrapped no narrower than this.
constexpr std::size_t kLeastWidth = 24;

/// A table laid out for a width: drops optional columns, from the right, until it fits; then wraps
/// the words of its widest column.
class TextTable {
 public:
  TextTable(const Table& table, std::size_t width) : table_(table) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      widths_.push_back(column_width(column));
      shown_.push_back(column);
    }
    while (width > 0 && total_width() > width && drop_one()) {
    }
    if (width > 0 && total_width() > width) narrow_words(total_width() - width);
  }

  [[nodiscard]] std::string render(Colour colour) const {
    std::string result = colour == Colour::on ? "\033[1m" : "";
    result += header([](const Column& c) { return c.title; });
    const auto unit_label = [](const Column& c) { return c.format.unit_label; };
    if (!std::ranges::all_of(table_.columns, &std::string::empty, unit_label)) {
      result += header(unit_label);
    }
    if (colour == Colour::on) result += "\033[0m";
    const std::string rule(total_width(), '-');
    result += rule + "\n";
    const std::size_t first_total = table_.rows.size() - table_.total_rows;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      if (table_.total_rows > 0 && row == first_total) result += rule + "\n";
      result += row_text(table_.rows[row]);
    }
    return result;
  }

 private:
  [[nodiscard]] std::size_t column_width(std::size_t column) const {
    const Column& head = table_.columns[column];
    std::size_t width = std::max(display_width(head.title), display_width(head.format.unit_label));
    for (const auto& row : table_.rows) {
      width = std::max(width, display_width(cell_text(row[column], head.format)));
    }
    return width;
  }

  /// Columns without which a word of the column would be cut.
  [[nodiscard]] std::size_t least_width(std::size_t column) const {
    const Column& head = table_.columns[column];
    std::size_t width = std::max(display_width(head.title), display_width(head.format.unit_label));
    for (const auto& row : table_.rows) {
      width = std::max(width, widest_part(cell_text(row[column], head.format)));
    }
    return width;
  }

  /// Makes the widest column of words narrower by `excess`, or by as much as its words allow.
  void narrow_words(std::size_t excess) {
    const auto is_narrower = [&](std::size_t a, std::size_t b) { return room(a) < room(b); };
    const auto widest = std::ranges::max_element(shown_, is_narrower);
    widths_[*widest] -= std::min(excess, room(*widest));
  }

  /// Columns by which wrapping can narrow a column.
  [[nodiscard]] std::size_t room(std::size_t column) const {
    if (table_.columns[column].alignment != Alignment::left) return 0;
    return widths_[column] - std::min(widths_[column], least_width(column));
  }

  /// A row, on several lines if words are wrapped.
  [[nodiscard]] std::string row_text(const std::vector<Cell>& row) const {
    std::vector<std::vector<std::string>> cells(row.size());
    std::size_t height = 1;
    for (const std::size_t column : shown_) {
      const std::string text = cell_text(row[column], table_.columns[column].format);
      cells[column] = wrapped_text(text, widths_[column]);
      height = std::max(height, cells[column].size());
    }
    std::string result;
    for (std::size_t at = 0; at < height; ++at) {
      result += line([&](std::size_t column) {
        return at < cells[column].size() ? cells[column][at] : std::string();
      });
    }
    return result;
  }

  [[nodiscard]] std::size_t total_width() const {
    std::size_t width = 0;
    for (const std::size_t column : shown_) width += widths_[column] + kGap.size();
    return width - kGap.size();
  }

  /// Drops the last optional column. Returns false if only essential ones are left.
  bool drop_one() {
    const auto optional = [&](std::size_t column) {
      return table_.columns[column].importance == Importance::optional;
    };
    const auto found = std::find_if(shown_.rbegin(), shown_.rend(), optional);
    if (found == shown_.rend()) return false;
    shown_.erase(std::next(found).base());
    return true;
  }

  template <class TextOf>
  [[nodiscard]] std::string header(TextOf text_of) const {
    return line([&](std::size_t column) { return text_of(table_.columns[column]); });
  }

  template <class TextOf>
  [[nodiscard]] std::string line(TextOf text_of) const {
    std::string result;
    for (const std::size_t column : shown_) {
      if (column != shown_.front()) result += kGap;
      result += padded_to(text_of(column), widths_[column], table_.columns[column].alignment);
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result + "\n";
  }

  const Table& table_;
  std::vector<std::size_t> widths_;
  std::vector<std::size_t> shown_;
};

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
    result_ += layout_.colour == Colour::on ? fmt::format("\033[1m{}\033[0m\n", heading.text)
                                            : heading.text + "\n";
  }
  void operator()(const Line& line) {
    if (!follows_same_kind()) line_label_ = line_label_width(document_.blocks, at_);
    const std::string indent(line_label_ + kGap.size(), ' ');
    std::string start = padded_to(line.label, line_label_, Alignment::left) + std::string(kGap);
    for (const std::string& part :
         wrapped_text(line.text, room_after(indent.size(), layout_.width))) {
      result_ += std::exchange(start, indent) + part + "\n";
    }
  }
  void operator()(const Table& table) {
    result_ += TextTable(table, layout_.width).render(layout_.colour);
  }
  void operator()(const Formula& formula) {
    result_ += formula_text(formula, formula_label_, layout_.width);
  }

 private:
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
