#include "sweep_axis.h"

#include <charconv>
#include <limits>

namespace headroom::cli {
namespace {

constexpr std::size_t kMostValues = 100'000'000;

[[noreturn]] void refuse(const std::string& option, const std::string& text) {
  throw CLI::ValidationError(
      option.substr(0, option.find(',')),
      "takes numbers and ranges such as 1,2,8 or 1..64:x2 or 8..64:+8, not \"" + text + "\"");
}

std::int64_t parse_number(const std::string& option, const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc{} || rest != end || value < 0) refuse(option, text);
  return value;
}

/// How a range goes on: by adding, or by multiplying.
struct Stride {
  std::int64_t add = 1;
  std::int64_t times = 1;

  [[nodiscard]] std::optional<std::int64_t> after(std::int64_t value) const {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (times > 1) return value > kMost / times ? std::nullopt : std::optional(value * times);
    return value > kMost - add ? std::nullopt : std::optional(value + add);
  }
};

Stride parse_stride(const std::string& option, const std::string& text) {
  if (text.size() < 2 || (text[0] != 'x' && text[0] != '+')) refuse(option, text);
  const std::int64_t number = parse_number(option, text.substr(1));
  const bool times = text[0] == 'x';
  if (number < (times ? 2 : 1)) refuse(option, text);
  return times ? Stride{0, number} : Stride{number, 1};
}

void add_range(const std::string& option, const std::string& text, std::size_t dots,
               std::vector<std::int64_t>& values) {
  const std::size_t colon = text.find(':');
  const Stride stride =
      colon == std::string::npos ? Stride{} : parse_stride(option, text.substr(colon + 1));
  const std::int64_t first = parse_number(option, text.substr(0, dots));
  const std::size_t length = colon == std::string::npos ? colon : colon - dots - 2;
  const std::int64_t last = parse_number(option, text.substr(dots + 2, length));
  if (last < first || (stride.times > 1 && first == 0)) refuse(option, text);
  for (std::optional<std::int64_t> value = first; value && *value <= last;
       value = stride.after(*value)) {
    if (values.size() >= kMostValues) refuse(option, text);
    values.push_back(*value);
  }
}

}  // namespace

std::vector<std::int64_t> parse_axis(const std::string& option, const std::string& text) {
  std::vector<std::int64_t> values;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, comma - start);
    const std::size_t dots = part.find("..");
    if (dots == std::string::npos) {
      values.push_back(parse_number(option, part));
    } else {
      add_range(option, part, dots, values);
    }
    start = comma + 1;
  }
  return values;
}

}  // namespace headroom::cli
