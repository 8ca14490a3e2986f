#include "text_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ansi.h"
#include "wrap.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kColumnGap = "  ";
constexpr std::string_view kBarGap = " ";

class TextTable {
 public:
  TextTable(const Table& table, const TextLayout& layout) : table_(table), layout_(layout) {
    const std::size_t width = layout.width;
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      widths_.push_back(column_width(column));
      shown_.push_back(column);
    }
    while (width > 0 && total_width() > width && drop_one()) {
    }
    if (width > 0 && total_width() > width) narrow_words(total_width() - width);
    add_bars();
  }

  /// Columns that are left, in their order.
  [[nodiscard]] const std::vector<std::size_t>& shown() const noexcept { return shown_; }

  [[nodiscard]] std::string render() const {
    std::string head = header([](const Column& c) { return c.title; });
    const auto unit_label = [](const Column& c) { return c.format.unit_label; };
    if (!std::ranges::all_of(table_.columns, &std::string::empty, unit_label)) {
      head += header(unit_label);
    }
    std::string result = painted(head, layout_.colour == Colour::on ? kBold : nullptr);
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
        const std::vector<std::string>& lines = cells[column];
        return ShownCell{at < lines.size() ? lines[at] : "", at == 0 ? bar_of(row[column]) : "",
                         colour_of(row[column])};
      });
    }
    return result;
  }

  /// A line of a cell, its bar, and its colour if it has one.
  struct ShownCell {
    std::string text;
    std::string bar{};
    const char* colour = nullptr;
  };

  [[nodiscard]] const char* colour_of(const Cell& cell) const {
    const auto* const verdict = std::get_if<Verdict>(&cell);
    if (verdict == nullptr || layout_.colour == Colour::off) return nullptr;
    return terminal_colour(verdict->outcome);
  }

  [[nodiscard]] static std::string bar_of(const Cell& cell) {
    const auto* const percent = std::get_if<double>(&cell);
    return percent == nullptr ? std::string() : share_bar(*percent);
  }

  [[nodiscard]] bool has_bar(std::size_t column) const {
    return std::ranges::find(barred_, column) != barred_.end();
  }

  /// Bars need a known width: a pipe has none.
  void add_bars() {
    for (const std::size_t column : shown_) {
      if (table_.columns[column].style != CellStyle::figure_and_bar) continue;
      if (total_width() + kBarGap.size() + kBarWidth <= layout_.width) barred_.push_back(column);
    }
  }

  [[nodiscard]] std::size_t total_width() const {
    std::size_t width = 0;
    for (const std::size_t column : shown_) width += widths_[column] + kColumnGap.size();
    return width - kColumnGap.size() + barred_.size() * (kBarGap.size() + kBarWidth);
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
    return line([&](std::size_t column) { return ShownCell{text_of(table_.columns[column])}; });
  }

  template <class CellOf>
  [[nodiscard]] std::string line(CellOf cell_of) const {
    std::string result;
    for (const std::size_t column : shown_) {
      if (column != shown_.front()) result += kColumnGap;
      const ShownCell cell = cell_of(column);
      result += aligned(cell, column);
      if (!has_bar(column)) continue;
      result += kBarGap;
      result += padded_to(cell.bar, kBarWidth, Alignment::left);
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result + "\n";
  }

  [[nodiscard]] std::string aligned(const ShownCell& cell, std::size_t column) const {
    const std::string text = painted(cell.text, cell.colour);
    const std::string blanks(widths_[column] - std::min(widths_[column], display_width(cell.text)),
                             ' ');
    return table_.columns[column].alignment == Alignment::left ? text + blanks : blanks + text;
  }

  const Table& table_;
  TextLayout layout_;
  std::vector<std::size_t> widths_;
  std::vector<std::size_t> shown_;
  std::vector<std::size_t> barred_;
};

}  // namespace

std::string padded_to(const std::string& text, std::size_t width, Alignment alignment) {
  const std::size_t used = display_width(text);
  const std::string blanks(width > used ? width - used : 0, ' ');
  return alignment == Alignment::left ? text + blanks : blanks + text;
}

std::string share_bar(double percent) {
  constexpr std::array<std::string_view, 8> kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  constexpr double kMost = 8.0 * kBarWidth;
  // A share that is not a number has no bar.
  const double length = percent > 0 ? std::min(percent / 100 * kMost, kMost) : 0.0;
  const auto eighths = static_cast<std::size_t>(std::lround(length));
  std::string result;
  for (std::size_t i = 0; i < eighths / 8; ++i) result += "█";
  return result.append(kEighths[eighths % 8]);
}

Table fitted_to(Table table, std::size_t width) {
  const std::vector<std::size_t> shown = TextTable(table, {width, Colour::off}).shown();
  const auto picked = [&shown](auto& all) {
    std::remove_reference_t<decltype(all)> kept;
    for (const std::size_t column : shown) kept.push_back(std::move(all[column]));
    all = std::move(kept);
  };
  for (std::vector<Cell>& row : table.rows) picked(row);
  picked(table.columns);
  return table;
}

std::string table_text(const Table& table, const TextLayout& layout) {
  return TextTable(table, layout).render();
}

}  // namespace headroom::detail
