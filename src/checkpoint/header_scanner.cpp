#include "header_scanner.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "header_entries.h"

namespace headroom::checkpoint {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns true if the character represents itself, whatever its neighbours.
bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; }

}  // namespace

void HeaderScanner::fail(const std::string& message) const {
  throw_damaged(file_, fmt::format("byte {} of its header: {}", at_, message));
}

char HeaderScanner::peek() {
  while (at_ < json_.size() && is_blank(json_[at_])) ++at_;
  return at_ < json_.size() ? json_[at_] : '\0';
}

bool HeaderScanner::accept(char wanted) {
  if (peek() != wanted) return false;
  ++at_;
  return true;
}

void HeaderScanner::expect(char wanted) {
  if (!accept(wanted)) fail(fmt::format("'{}' is missing", wanted));
}

void HeaderScanner::expect_end() {
  (void)peek();
  if (at_ != json_.size()) fail("unexpected text after the end");
}

std::string_view HeaderScanner::text() {
  if (peek() != '"') fail("a string is missing");
  const std::size_t begin = at_ + 1;
  std::size_t end = begin;
  while (end < json_.size() && is_plain(json_[end])) ++end;
  if (end < json_.size() && json_[end] == '"') {
    at_ = end + 1;
    return json_.substr(begin, end - begin);
  }
  while (end < json_.size() && json_[end] != '"') end += json_[end] == '\\' ? 2U : 1U;
  if (end >= json_.size()) fail("a string does not end");
  const std::string_view quoted = json_.substr(begin - 1, end - begin + 2);
  const std::string_view result = unescaped(quoted);
  at_ = end + 1;
  return result;
}

std::string_view HeaderScanner::unescaped(std::string_view quoted) {
  const auto value = nlohmann::json::parse(quoted, nullptr, false);
  if (!value.is_string()) fail("a string is not valid");
  return texts_.emplace_back(value.get<std::string>());
}

std::optional<std::int64_t> HeaderScanner::natural() {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  (void)peek();
  std::size_t end = at_;
  std::int64_t value = 0;
  for (; end < json_.size() && is_digit(json_[end]); ++end) {
    const std::int64_t digit = json_[end] - '0';
    if (value > (kMost - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  const std::size_t digits = end - at_;
  if (digits == 0 || (digits > 1 && json_[at_] == '0')) return std::nullopt;
  at_ = end;
  return value;
}

}  // namespace headroom::checkpoint
