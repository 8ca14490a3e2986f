#include "document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "utf8.h"
#include "visit.h"

namespace headroom::detail {
namespace {

std::string rounded(double value, int decimals) {
  const double smallest = std::pow(10.0, -decimals);
  // Only zero is shown as zero.
  if (value != 0 && std::abs(value) < smallest / 2) {
    return fmt::format("{}{:.{}f}", value < 0 ? ">−" : "<", smallest, decimals);
  }
  return (value < 0 ? "−" : "") + grouped(std::abs(value), decimals);
}

}  // namespace

NumberFormat in_unit(const Unit& unit, int decimals) {
  return {fmt::format("[{}]", unit.name), unit.size == 1 ? 0 : decimals, unit.size, 1};
}

Column words_column(std::string key, std::string title, Importance importance) {
  return {std::move(key), std::move(title), Alignment::left, {}, importance, CellStyle::figure};
}

Column number_column(std::string key, std::string title, NumberFormat format,
                     Importance importance) {
  return {std::move(key),    std::move(title), Alignment::right,
          std::move(format), importance,       CellStyle::figure};
}

Column share_column(std::string key, std::string title, NumberFormat format,
                    Importance importance) {
  Column column = number_column(std::move(key), std::move(title), std::move(format), importance);
  column.style = CellStyle::figure_and_bar;
  return column;
}

Column milliseconds_column(std::string key, std::string title, Importance importance) {
  return number_column(std::move(key), std::move(title), {"[ms]", 3, 1, 1000}, importance);
}

namespace {

/// With the minus sign of formulas.
std::string counted(Integer value) {
  return value < 0 ? "−" + with_separators(-value) : with_separators(value);
}

}  // namespace

std::string cell_text(const Cell& cell, const NumberFormat& format) {
  const auto scaled = [&](auto value) {
    return rounded(static_cast<double>(value) * static_cast<double>(format.multiplier) /
                       static_cast<double>(format.divisor),
                   format.decimals);
  };
  const bool unscaled = format.decimals == 0 && format.divisor == 1 && format.multiplier == 1;
  return std::visit(
      Overloaded{[](std::monostate) { return std::string("–"); },
                 [](const std::string& text) { return text; },
                 [](const Verdict& verdict) { return verdict.text; },
                 [&](Integer value) { return unscaled ? counted(value) : scaled(value); },
                 [&](double value) { return scaled(value); }},
      cell);
}

std::size_t display_width(std::string_view utf8) {
  // Every byte except a continuation byte 10xxxxxx begins a character.
  return static_cast<std::size_t>(std::ranges::count_if(
      utf8, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

Document printable(Document document) {
  const auto show = [](std::string& text) { text = printable(std::string_view(text)); };
  for (Block& block : document.blocks) {
    std::visit(Overloaded{[&](Heading& heading) { show(heading.text); },
                          [&](Line& line) {
                            show(line.label);
                            show(line.text);
                          },
                          [&](Table& table) {
                            for (auto& row : table.rows) {
                              for (Cell& cell : row) {
                                if (auto* const text = std::get_if<std::string>(&cell)) show(*text);
                                if (auto* const verdict = std::get_if<Verdict>(&cell)) {
                                  show(verdict->text);
                                }
                              }
                            }
                          },
                          [&](Formula& formula) {
                            show(formula.name);
                            for (std::string& step : formula.steps) show(step);
                          }},
               block);
  }
  return document;
}

}  // namespace headroom::detail
