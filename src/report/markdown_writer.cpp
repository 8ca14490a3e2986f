// Document -> GitHub-flavoured Markdown.
#include <fmt/format.h>

#include "document.h"
#include "visit.h"

namespace headroom::detail {
namespace {

std::string markdown_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '_' || c == '<') result += '\\';
    result += c;
  }
  return result;
}

std::string markdown_title(const Column& column) {
  const std::string& unit = column.format.unit_label;
  return unit.empty() ? column.title : column.title + " " + unit;
}

std::string markdown_table(const Table& table) {
  std::string header = "|";
  std::string rule = "|";
  for (const Column& column : table.columns) {
    header += " " + markdown_escaped(markdown_title(column)) + " |";
    rule += column.alignment == Alignment::left ? " :-- |" : " --: |";
  }
  std::string result = header + "\n" + rule + "\n";
  const std::size_t first_total = table.rows.size() - table.total_rows;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::string_view emphasis = row >= first_total ? "**" : "";
    result += "|";
    for (std::size_t column = 0; column < table.columns.size(); ++column) {
      const std::string text =
          markdown_escaped(cell_text(table.rows[row][column], table.columns[column].format));
      result += text.empty() ? "  |" : fmt::format(" {}{}{} |", emphasis, text, emphasis);
    }
    result += "\n";
  }
  return result;
}

std::string markdown_formula(const Formula& formula) {
  std::string result = fmt::format("{}\n\n```\n", markdown_escaped(formula.name));
  for (const std::string& step : formula.steps) result += "= " + step + "\n";
  return result + "```\n";
}

}  // namespace

std::string to_markdown(const Document& document) {
  std::string result;
  std::size_t previous_kind = std::variant_npos;
  for (const Block& block : document.blocks) {
    const bool continues_list =
        std::holds_alternative<Line>(block) && previous_kind == block.index();
    if (!result.empty() && !continues_list) result += "\n";
    result += std::visit(
        Overloaded{
            [](const Heading& heading) { return "## " + markdown_escaped(heading.text) + "\n"; },
            [](const Line& line) {
              return line.label.empty() ? fmt::format("  - {}\n", markdown_escaped(line.text))
                                        : fmt::format("- **{}** {}\n", markdown_escaped(line.label),
                                                      markdown_escaped(line.text));
            },
            [](const Table& table) { return markdown_table(table); },
            [](const Formula& formula) { return markdown_formula(formula); }},
        block);
    previous_kind = block.index();
  }
  return result;
}

}  // namespace headroom::detail
