// Document: a report as headings, lines, tables and formulas, before any format is chosen. Values
// keep their base units; a column says how they are shown. Internal to src/report and src/cli.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headroom/integer.h"
#include "headroom/report.h"
#include "units.h"

namespace headroom::detail {

/// A value in its base unit; std::monostate is "not applicable" or "unknown", never zero.
using Cell = std::variant<std::monostate, std::string, Integer, double>;

enum class Alignment { left, right };

template <class Value>
[[nodiscard]] Cell cell_or_none(const std::optional<Value>& value) {
  return value ? Cell{*value} : Cell{};
}

/// How much a column matters when a terminal is too narrow for all.
enum class Importance { essential, optional };

/// How the numbers of a column are shown: as value · multiplier / divisor, the unit under the
/// title.
struct Shown {
  std::string unit_label;  ///< empty for none
  int decimals = 0;        ///< an Integer that is shown as it is has none
  Integer divisor = 1;
  Integer multiplier = 1;
};

struct Column {
  std::string key;    ///< in CSV, with the base unit in it: "weight_bytes"
  std::string title;  ///< on screen
  Alignment alignment = Alignment::right;
  Shown shown;
  Importance importance = Importance::essential;
};

/// In `unit`, with `decimals` unless it is the base unit.
[[nodiscard]] Shown in_unit(const Unit& unit, int decimals);

[[nodiscard]] Column words_column(std::string key, std::string title,
                                  Importance importance = Importance::essential);
[[nodiscard]] Column number_column(std::string key, std::string title, Shown shown = {},
                                   Importance importance = Importance::essential);
/// Seconds, shown as milliseconds.
[[nodiscard]] Column milliseconds_column(std::string key, std::string title,
                                         Importance importance = Importance::essential);

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

  void add_line(std::string label, std::string text) {
    blocks.emplace_back(Line{std::move(label), std::move(text)});
  }
};

/// What a cell shows: "–" for nothing, "<0.01" for what would round to zero.
[[nodiscard]] std::string shown_text(const Cell& cell, const Shown& shown);

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
/// As text, Markdown or CSV, as `options` ask for. JSON is not made of documents.
[[nodiscard]] std::string to_format(const Document& document, const RenderOptions& options);

}  // namespace headroom::detail
