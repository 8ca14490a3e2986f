#include "number_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>
#include <system_error>
#include <version>

namespace headroom::detail {
namespace {

template <typename Number>
std::optional<Number> take(std::string_view& text) {
  Number value{};
  const auto [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return value;
}

#ifndef __cpp_lib_to_chars  // libc++ before version 20 has it for integers only
/// Length of the decimal digits at the start of `text`.
std::size_t digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

/// Length of the number at the start of `text`, as std::from_chars finds it; 0 if there is none.
std::size_t decimal_length(std::string_view text) {
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  const std::size_t whole = digits(text.substr(sign));
  std::size_t end = sign + whole;
  std::size_t fraction = 0;
  if (text.substr(end).starts_with('.')) {
    fraction = digits(text.substr(end + 1));
    if (whole + fraction > 0) end += 1 + fraction;
  }
  if (whole + fraction == 0) return 0;
  if (text.substr(end).starts_with('e') || text.substr(end).starts_with('E')) {
    std::size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '-' || text[exponent] == '+')) ++exponent;
    const std::size_t powers = digits(text.substr(exponent));
    if (powers > 0) end = exponent + powers;
  }
  return end;
}

template <>
std::optional<double> take(std::string_view& text) {
  const std::string number(text.substr(0, decimal_length(text)));
  if (number.empty()) return std::nullopt;
  const double value = std::strtod(number.c_str(), nullptr);
  if (value == 0 && number.find_first_of("123456789") < number.find_first_of("eE")) {
    return std::nullopt;  // too small for a double
  }
  text.remove_prefix(number.size());
  return value;
}
#endif

}  // namespace

std::optional<std::int64_t> take_integer(std::string_view& text) {
  return take<std::int64_t>(text);
}

std::optional<double> take_decimal(std::string_view& text) {
  std::string_view rest = text;
  const std::optional<double> value = take<double>(rest);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  text = rest;
  return value;
}

std::optional<std::int64_t> integer_of(std::string_view text) {
  const std::optional<std::int64_t> value = take_integer(text);
  return text.empty() ? value : std::nullopt;
}

std::optional<double> decimal_of(std::string_view text) {
  const std::optional<double> value = take_decimal(text);
  return text.empty() ? value : std::nullopt;
}

}  // namespace headroom::detail
