// Document -> CSV of its first table (RFC 4180): base units, empty fields for no value.
#include <fmt/format.h>

#include <string_view>

#include "document.h"
#include "visit.h"

namespace headroom::detail {
namespace {

/// Spreadsheets run a cell that begins so as a formula. Source: OWASP, "CSV Injection".
constexpr std::string_view kFormulaStarts = "=+-@\t\r";

/// Text from files, kept from being a formula by an apostrophe.
std::string guarded(const std::string& text) {
  const bool is_formula =
      !text.empty() && kFormulaStarts.find(text.front()) != std::string_view::npos;
  return is_formula ? "'" + text : text;
}

std::string csv_quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + "\"";
}

std::string csv_field(const Cell& cell) {
  return std::visit(Overloaded{[](std::monostate) { return std::string(); },
                               [](const std::string& text) { return csv_quoted(guarded(text)); },
                               [](const Verdict& verdict) { return csv_quoted(verdict.text); },
                               [](Integer value) { return to_string(value); },
                               [](double value) { return fmt::format("{}", value); }},
                    cell);
}

std::string csv_table(const Table& table) {
  std::string result;
  for (const Column& column : table.columns) {
    result += (result.empty() ? "" : ",") + csv_quoted(column.key);
  }
  result += "\n";
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      line += (column == 0 ? "" : ",") + csv_field(row[column]);
    }
    result += line + "\n";
  }
  return result;
}

}  // namespace

std::string to_csv(const Document& document) {
  for (const Block& block : document.blocks) {
    if (const auto* table = std::get_if<Table>(&block)) return csv_table(*table);
  }
  return {};
}

}  // namespace headroom::detail
