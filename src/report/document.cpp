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

std::string shown(const Cell& cell, const Column& column) {
  return std::visit(
      Overloaded{[](std::monostate) { return std::string("–"); },
                 [](const std::string& text) { return text; },
                 [&](Integer value) {
                   if (column.decimals == 0 && column.divisor == 1) return with_separators(value);
                   return rounded(static_cast<double>(value) / static_cast<double>(column.divisor),
                                  column.decimals);
                 },
                 [&](double value) { return rounded(value, column.decimals); }},
      cell);
}

std::size_t display_width(std::string_view utf8) {
  // Every byte but the continuation bytes 10xxxxxx begins a character.
  return static_cast<std::size_t>(std::ranges::count_if(
      utf8, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }));
}

}  // namespace headroom::detail
