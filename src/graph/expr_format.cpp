// The canonical printed form of an Expr, in UTF-8, ASCII and LaTeX.
#include <fmt/format.h>

#include <array>
#include <string>

#include "headroom/expr.h"

namespace headroom {
namespace {

std::string_view multiplication_sign(Notation notation) {
  switch (notation) {
    case Notation::unicode:
      return "·";
    case Notation::ascii:
      return "*";
    case Notation::latex:
      break;
  }
  return "\\,";
}

std::string superscript(unsigned exponent) {
  constexpr std::array<std::string_view, 10> kDigits{"⁰", "¹", "²", "³", "⁴",
                                                     "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string result;
  for (const char digit : fmt::format("{}", exponent)) {
    result += kDigits.at(static_cast<std::size_t>(digit - '0'));
  }
  return result;
}

std::string exponent_suffix(unsigned exponent, Notation notation) {
  if (exponent == 1) return {};
  switch (notation) {
    case Notation::unicode:
      return superscript(exponent);
    case Notation::ascii:
      return fmt::format("^{}", exponent);
    case Notation::latex:
      break;
  }
  return fmt::format("^{{{}}}", exponent);
}

std::string factor(Symbol symbol, const Bindings& bindings, Notation notation) {
  if (const auto value = bindings.get(symbol)) return to_string(*value);
  return std::string(notation == Notation::latex ? info(symbol).latex : info(symbol).unicode);
}

std::string format_magnitude(const Term& term, const Bindings& bindings, Notation notation) {
  std::string result;
  const auto append = [&](const std::string& text) {
    if (!result.empty()) result += multiplication_sign(notation);
    result += text;
  };
  const Integer magnitude = term.coefficient < 0 ? -term.coefficient : term.coefficient;
  if (magnitude != 1 || term.powers == Monomial{}) append(to_string(magnitude));
  for (const SymbolInfo& symbol : symbols()) {
    const unsigned exponent = term.powers[index(symbol.symbol)];
    if (exponent == 0) continue;
    append(factor(symbol.symbol, bindings, notation) + exponent_suffix(exponent, notation));
  }
  return result;
}

}  // namespace

std::string format(const Expr& expr, Notation notation) {
  return format_with_values(expr, {}, notation);
}

std::string format_with_values(const Expr& expr, const Bindings& bindings, Notation notation) {
  if (expr.is_zero()) return "0";
  const std::string_view minus = notation == Notation::unicode ? "−" : "-";
  std::string result;
  for (const Term& term : expr.terms()) {
    const bool negative = term.coefficient < 0;
    if (!result.empty()) {
      result += negative ? fmt::format(" {} ", minus) : " + ";
    } else if (negative) {
      result += minus;
    }
    result += format_magnitude(term, bindings, notation);
  }
  return result;
}

}  // namespace headroom
