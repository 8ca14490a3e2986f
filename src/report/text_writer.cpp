// Document -> aligned text for a terminal or a log.
#include <fmt/format.h>

#include <algorithm>

#include "document.h"
#include "headroom/op.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kGap = "  ";

std::string padded(const std::string& text, std::size_t width, Alignment alignment) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return alignment == Alignment::left ? text + blanks : blanks + text;
}

/// A table's texts, with the columns that fit and their widths.
class TextTable {
 public:
  TextTable(const Table& table, std::size_t width) : table_(table) {
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      widths_.push_back(column_width(column));
      kept_.push_back(column);
    }
    while (width > 0 && total_width() > width && drop_one()) {
    }
  }

  [[nodiscard]] std::string render(Colour colour) const {
    std::string result = colour == Colour::on ? "\033[1m" : "";
    result += header(&Column::title);
    if (std::ranges::any_of(table_.columns,
                            [](const Column& c) { return !c.unit_label.empty(); })) {
      result += header(&Column::unit_label);
    }
    if (colour == Colour::on) result += "\033[0m";
    const std::string rule(total_width(), '-');
    result += rule + "\n";
    const std::size_t first_total = table_.rows.size() - table_.total_rows;
    for (std::size_t row = 0; row < table_.rows.size(); ++row) {
      if (table_.total_rows > 0 && row == first_total) result += rule + "\n";
      result += line([&](std::size_t column) {
        return shown(table_.rows[row][column], table_.columns[column]);
      });
    }
    return result;
  }

 private:
  [[nodiscard]] std::size_t column_width(std::size_t column) const {
    const Column& head = table_.columns[column];
    std::size_t width = std::max(display_width(head.title), display_width(head.unit_label));
    for (const auto& row : table_.rows) {
      width = std::max(width, display_width(shown(row[column], head)));
    }
    return width;
  }

  [[nodiscard]] std::size_t total_width() const {
    std::size_t width = 0;
    for (const std::size_t column : kept_) width += widths_[column] + kGap.size();
    return width - kGap.size();
  }

  /// Drops the last optional column; false when only essential ones are left.
  bool drop_one() {
    const auto optional = [&](std::size_t column) {
      return table_.columns[column].importance == Importance::optional;
    };
    const auto found = std::find_if(kept_.rbegin(), kept_.rend(), optional);
    if (found == kept_.rend()) return false;
    kept_.erase(std::next(found).base());
    return true;
  }

  [[nodiscard]] std::string header(std::string Column::*text) const {
    return line([&](std::size_t column) { return table_.columns[column].*text; });
  }

  template <class TextOf>
  [[nodiscard]] std::string line(TextOf text_of) const {
    std::string result;
    for (const std::size_t column : kept_) {
      if (column != kept_.front()) result += kGap;
      result += padded(text_of(column), widths_[column], table_.columns[column].alignment);
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result + "\n";
  }

  const Table& table_;
  std::vector<std::size_t> widths_;
  std::vector<std::size_t> kept_;
};

/// Labels of neighbouring lines and formulas share one width.
std::size_t label_width(const Document& document) {
  std::size_t width = 0;
  for (const Block& block : document.blocks) {
    if (const auto* line = std::get_if<Line>(&block)) {
      width = std::max(width, display_width(line->label));
    }
    if (const auto* formula = std::get_if<Formula>(&block)) {
      width = std::max(width, display_width(formula->name));
    }
  }
  return width;
}

std::string formula_text(const Formula& formula, std::size_t label) {
  std::string result;
  std::string name = formula.name;
  for (const std::string& step : formula.steps) {
    result += fmt::format("{} = {}\n", padded(name, label, Alignment::left), step);
    name.clear();
  }
  return result;
}

}  // namespace

std::string to_text(const Document& document, const TextLayout& layout) {
  const std::size_t label = label_width(document);
  const auto heading_text = [&](const std::string& text) {
    return layout.colour == Colour::on ? fmt::format("\033[1m{}\033[0m\n", text) : text + "\n";
  };
  std::string result;
  std::size_t previous_kind = 0;
  for (const Block& block : document.blocks) {
    const bool follows_heading = previous_kind == Block(Heading{}).index() && !result.empty();
    const bool separate =
        !result.empty() && !follows_heading &&
        (block.index() != previous_kind || std::holds_alternative<Formula>(block));
    if (separate) result += "\n";
    result +=
        std::visit(Overloaded{[&](const Heading& heading) { return heading_text(heading.text); },
                              [&](const Line& line) {
                                return padded(line.label, label, Alignment::left) +
                                       std::string(kGap) + line.text + "\n";
                              },
                              [&](const Table& table) {
                                return TextTable(table, layout.width).render(layout.colour);
                              },
                              [&](const Formula& formula) { return formula_text(formula, label); }},
                   block);
    previous_kind = block.index();
  }
  return result;
}

}  // namespace headroom::detail
