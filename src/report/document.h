// Document: a report as headings, lines, tables and formulas, before any format is chosen. Values
// keep their base units; a column says how they are shown. Internal to src/report and src/cli.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/integer.h"
#include "headroom/report.h"
#include "units.h"

namespace headroom::detail {

/// A value in its base unit; std::monostate is "not applicable" or "unknown", never zero.
using Cell = std::variant<std::monostate, std::string, Integer, double>;

enum class Alignment { left, right };

/// How much a column matters when a terminal is too narrow for all.
enum class Importance { essential, optional };

struct Column {
  std::string key;         ///< in CSV, with the base unit in it: "weight_bytes"
  std::string title;       ///< on screen
  std::string unit_label;  ///< under the title; empty for none
  Alignment alignment = Alignment::right;
  Integer divisor = 1;  ///< an Integer is shown divided by this
  int decimals = 0;     ///< of a double, or of an Integer with a divisor
  Importance importance = Importance::essential;
};

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::size_t total_rows = 0;  ///< the last rows, set apart by a rule
};

/// "label   text", labels aligned with those of neighbouring lines.
struct Line {
  std::string label;
  std::string text;
};

/// A heading over what follows.
struct Heading {
  std::string text;
};

/// One figure: its formula, the same with numbers, the result; aligned on "=".
struct Formula {
  std::string name;
  std::vector<std::string> steps;
};

using Block = std::variant<Heading, Line, Table, Formula>;

struct Document {
  std::vector<Block> blocks;
};

/// What a cell shows in its column: "–" for nothing, "<0.01" for what would round to zero.
[[nodiscard]] std::string shown(const Cell& cell, const Column& column);

/// Characters on screen of a UTF-8 text: headroom prints no wide and no combining ones.
[[nodiscard]] std::size_t display_width(std::string_view utf8);

/// How text is laid out. `width` 0 is unlimited.
struct TextLayout {
  std::size_t width = 0;
  Colour colour = Colour::off;
};

[[nodiscard]] std::string to_text(const Document& document, const TextLayout& layout = {});
[[nodiscard]] std::string to_markdown(const Document& document);
/// The first table of the document, values in base units (RFC 4180).
[[nodiscard]] std::string to_csv(const Document& document);

}  // namespace headroom::detail
