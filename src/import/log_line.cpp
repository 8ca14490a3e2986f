#include "log_line.h"

#include <cmath>
#include <string>

#include "number_text.h"

namespace headroom::detail {

bool LogLine::has(std::string_view words) const noexcept {
  return text_.find(words) != std::string_view::npos;
}

LogLine LogLine::from(std::string_view words) const noexcept {
  const auto found = text_.find(words);
  return LogLine(found == std::string_view::npos ? std::string_view() : text_.substr(found));
}

std::string_view LogLine::rest_after(std::string_view words) const noexcept {
  const auto found = text_.find(words);
  if (found == std::string_view::npos) return {};
  const std::string_view rest = text_.substr(found + words.size());
  const auto value = rest.find_first_not_of(" \t=");
  return value == std::string_view::npos ? std::string_view() : rest.substr(value);
}

namespace {

/// 2^32: more GiB than any engine holds; their bytes have less than 64 bits.
constexpr double kMostNumber = 4294967296;

}  // namespace

std::optional<double> LogLine::value_after(std::string_view words) const {
  const std::string_view rest = rest_after(words);
  std::string digits;
  for (const char c : rest.substr(0, rest.find_first_not_of("0123456789.,"))) {
    if (c != ',') digits += c;
  }
  std::string_view number = digits;
  return detail::take_decimal(number);
}

std::optional<double> LogLine::number_after(std::string_view words) const {
  const std::optional<double> value = value_after(words);
  return value < kMostNumber ? value : std::nullopt;
}

std::optional<std::int64_t> LogLine::size_after(std::string_view words) const {
  const std::optional<std::int64_t> count = count_after(words);
  return count > 0 ? count : std::nullopt;
}

std::optional<std::int64_t> LogLine::count_after(std::string_view words) const {
  constexpr double kMost = 9007199254740992;  // 2^53: a double holds every integer below
  const std::optional<double> value = value_after(words);
  if (!value || *value >= kMost || *value != std::floor(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::string_view LogLine::word_after(std::string_view words) const noexcept {
  const std::string_view rest = rest_after(words);
  return rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz"
                                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._^"));
}

}  // namespace headroom::detail
