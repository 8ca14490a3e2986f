#include "document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "headroom/op.h"

namespace headroom::detail {
namespace {

std::string rounded(double value, int decimals) {
  const double smallest = std::pow(10.0, -decimals);
  // What is not zero is never shown as zero.
  if (value != 0 && std::abs(value) < smallest / 2) {
    return fmt::format("{}{:.{}f}", value < 0 ? ">−" : "<", smallest, decimals);
  }
  return fmt::format("{}{:.{}f}", value < 0 ? "−" : "", std::abs(value), decimals);
}

}  // namespace

Shown in_unit(const Unit& unit, int decimals) {
  return {fmt::format("[{}]", unit.name), unit.size == 1 ? 0 : decimals, unit.size, 1};
}

Column words_column(std::string key, std::string title, Importance importance) {
  return {std::move(key), std::move(title), Alignment::left, {}, importance};
}

Column number_column(std::string key, std::string title, Shown shown, Importance importance) {
  return {std::move(key), std::move(title), Alignment::right, std::move(shown), importance};
}

Column milliseconds_column(std::string key, std::string title, Importance importance) {
  return number_column(std::move(key), std::move(title), {"[ms]", 3, 1, 1000}, importance);
}

std::string shown_text(const Cell& cell, const Shown& shown) {
  const auto scaled = [&](auto value) {
    return rounded(static_cast<double>(value) * static_cast<double>(shown.multiplier) /
                       static_cast<double>(shown.divisor),
                   shown.decimals);
  };
  const bool as_it_is = shown.decimals == 0 && shown.divisor == 1 && shown.multiplier == 1;
  return std::visit(
      Overloaded{[](std::monostate) { return std::string("–"); },
                 [](const std::string& text) { return text; },
                 [&](Integer value) { return as_it_is ? with_separators(value) : scaled(value); },
                 [&](double value) { return scaled(value); }},
      cell);
}

std::size_t display_width(std::string_view utf8) {
  // Every byte but the continuation bytes 10xxxxxx begins a character.
  return static_cast<std::size_t>(std::ranges::count_if(
      utf8, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

std::string to_format(const Document& document, const RenderOptions& options) {
  switch (options.format) {
    case Format::csv:
      return to_csv(document);
    case Format::markdown:
      return to_markdown(document);
    case Format::table:
    case Format::json:
      break;
  }
  return to_text(document, {options.width, options.colour});
}

}  // namespace headroom::detail
