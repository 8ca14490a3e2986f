// Document: a report as headings, lines, tables and formulas, before it is written in a format.
// Values are in base units; each column states how they are shown. Internal to src/report.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headroom/expr.h"
#include "headroom/report.h"
#include "units.h"

namespace headroom::detail {

/// Of a verdict, for its colour: does the model fit, is the target met?
enum class Outcome { none, good, bad };

[[nodiscard]] constexpr Outcome outcome_of(bool good) noexcept {
  return good ? Outcome::good : Outcome::bad;
}

/// A row's verdict in a word or two: "PASS", "no".
struct Verdict {
  std::string text;
  Outcome outcome = Outcome::none;
};

/// A value in its base unit; std::monostate means not applicable or unknown, never zero.
using Cell = std::variant<std::monostate, std::string, Verdict, Integer, double>;

[[nodiscard]] inline Verdict yes_or_no(bool good) {
  return {good ? "yes" : "no", outcome_of(good)};
}

/// Of a measurement that a signal ended.
inline constexpr const char* kInterruptedText = "by a signal: these are the runs before";

enum class Alignment { left, right };

template <class Value>
[[nodiscard]] Cell cell_or_none(const std::optional<Value>& value) {
  return value ? Cell{*value} : Cell{};
}

/// Optional columns are dropped on a narrow terminal.
enum class Importance { essential, optional };

/// How a table on a terminal shows a number: a share in percent has a small bar beside it, where
/// there is room.
enum class CellStyle { figure, figure_and_bar };

/// Shows a number as value · multiplier / divisor, with the unit under the column title.
struct NumberFormat {
  std::string unit_label;  ///< empty for none
  int decimals = 0;        ///< ignored for an unscaled Integer
  Integer divisor = 1;
  Integer multiplier = 1;
};

struct Column {
  std::string key;    ///< in CSV, with the base unit: "weight_bytes"
  std::string title;  ///< on screen
  Alignment alignment = Alignment::right;
  NumberFormat format;
  Importance importance = Importance::essential;
  CellStyle style = CellStyle::figure;
};

/// In `unit`, with `decimals` unless it is the base unit.
[[nodiscard]] NumberFormat in_unit(const Unit& unit, int decimals);

[[nodiscard]] Column words_column(std::string key, std::string title,
                                  Importance importance = Importance::essential);
[[nodiscard]] Column number_column(std::string key, std::string title, NumberFormat format = {},
                                   Importance importance = Importance::essential);
/// Percent of a whole, with a bar where there is room.
[[nodiscard]] Column share_column(std::string key, std::string title, NumberFormat format,
                                  Importance importance = Importance::essential);
/// Seconds, shown as milliseconds.
[[nodiscard]] Column milliseconds_column(std::string key, std::string title,
                                         Importance importance = Importance::essential);

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::size_t total_rows = 0;  ///< last rows, below a rule
};

/// The subject names what a report is on, and is the title of its page; the verdict answers its
/// question, and comes first.
enum class LineRole { detail, subject, verdict };

/// "label   text"; labels of consecutive lines are aligned.
struct Line {
  std::string label;
  std::string text;
  LineRole role = LineRole::detail;
  Outcome outcome = Outcome::none;
};

/// A heading of the blocks that follow.
struct Heading {
  std::string text;
};

/// One figure: its formula, the formula with numbers, the result; aligned on "=".
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
  void add_subject(std::string label, std::string text) {
    blocks.emplace_back(Line{std::move(label), std::move(text), LineRole::subject});
  }
  void add_verdict(std::string label, std::string text, Outcome outcome = Outcome::none) {
    blocks.emplace_back(Line{std::move(label), std::move(text), LineRole::verdict, outcome});
  }
};

/// The document with all text `printable`: names in files may hold control characters.
[[nodiscard]] Document printable(Document document);

/// The cell on screen: "–" for no value, "<0.01" for one that would round to zero.
[[nodiscard]] std::string cell_text(const Cell& cell, const NumberFormat& format);

/// Columns that a UTF-8 text uses on screen. headroom prints no wide or combining characters.
[[nodiscard]] std::size_t display_width(std::string_view utf8);

/// Width of the screen, 0 for unlimited, and its colours.
struct TextLayout {
  std::size_t width = 0;
  Colour colour = Colour::off;
};

[[nodiscard]] std::string to_text(const Document& document, const TextLayout& layout = {});
[[nodiscard]] std::string to_markdown(const Document& document);
/// The first table of the document in base units (RFC 4180).
[[nodiscard]] std::string to_csv(const Document& document);

}  // namespace headroom::detail
