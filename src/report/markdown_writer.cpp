// Document -> GitHub-flavoured Markdown.
#include <fmt/format.h>

#include "document.h"
#include "headroom/op.h"

namespace headroom::detail {
namespace {

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '<') result += '\\';
    result += c;
  }
  return result;
}

std::string title_of(const Column& column) {
  const std::string& unit = column.shown.unit_label;
  return unit.empty() ? column.title : column.title + " " + unit;
}

std::string markdown_table(const Table& table) {
  std::string header = "|";
  std::string rule = "|";
  for (const Column& column : table.columns) {
    header += " " + escaped(title_of(column)) + " |";
    rule += column.alignment == Alignment::left ? " :-- |" : " --: |";
  }
  std::string result = header + "\n" + rule + "\n";
  const std::size_t first_total = table.rows.size() - table.total_rows;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string_view emphasis = row >= first_total ? "**" : "";
    result += "|";
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const std::string text =
          escaped(shown_text(table.rows[row][column], table.columns[column].shown));
      result += text.empty() ? "  |" : fmt::format(" {}{}{} |", emphasis, text, emphasis);
    }
    result += "\n";
  }
  return result;
}

std::string formula_text(const Formula& formula) {
  std::string result = fmt::format("{}\n\n```\n", escaped(formula.name));
  for (const std::string& step : formula.steps) result += "= " + step + "\n";
  return result + "```\n";
}

}  // namespace

std::string to_markdown(const Document& document) {
  std::string result;
  std::size_t previous_kind = std::variant_npos;
  for (const Block& block : document.blocks) {
    const bool list_goes_on = std::holds_alternative<Line>(block) && previous_kind == block.index();
    if (!result.empty() && !list_goes_on) result += "\n";
    result += std::visit(
        Overloaded{[](const Heading& heading) { return "## " + escaped(heading.text) + "\n"; },
                   [](const Line& line) {
                     return line.label.empty() ? fmt::format("  - {}\n", escaped(line.text))
                                               : fmt::format("- **{}** {}\n", escaped(line.label),
                                                             escaped(line.text));
                   },
                   [](const Table& table) { return markdown_table(table); },
                   [](const Formula& formula) { return formula_text(formula); }},
        block);
    previous_kind = block.index();
  }
  return result;
}

}  // namespace headroom::detail
