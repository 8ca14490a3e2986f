#include "sweep_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "options.h"

namespace headroom::cli {
namespace {

/// 8 MB of values. A grid of two such axes has 10^12 rows, more than a disk holds.
constexpr std::size_t kMostAxisValues = 1'000'000;

[[noreturn]] void refuse_axis(const std::string& names, const std::string& text) {
  refuse_value(names, "takes numbers and ranges such as 1,2,8 or 1..64:x2 or 8..64:+8, not \"" +
                          text + "\"");
}

std::int64_t parse_length(const std::string& names, const std::string& text) {
  const std::optional<std::int64_t> value = count_of(text);
  if (!value || *value < 0) refuse_axis(names, text);
  return *value;
}

/// The step of a range: a sum or a factor.
struct Stride {
  std::int64_t add = 1;
  std::int64_t times = 1;

  [[nodiscard]] std::optional<std::int64_t> after(std::int64_t value) const {
    constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (times > 1) return value > kMost / times ? std::nullopt : std::optional(value * times);
    return value > kMost - add ? std::nullopt : std::optional(value + add);
  }
};

Stride parse_stride(const std::string& names, const std::string& text) {
  if (text.size() < 2 || (text[0] != 'x' && text[0] != '+')) refuse_axis(names, text);
  const std::int64_t number = parse_length(names, text.substr(1));
  const bool times = text[0] == 'x';
  if (number < (times ? 2 : 1)) refuse_axis(names, text);
  return times ? Stride{0, number} : Stride{number, 1};
}

void add_range(const std::string& names, const std::string& text, std::size_t dots,
               std::vector<std::int64_t>& values) {
  const std::size_t colon = text.find(':');
  const Stride stride =
      colon == std::string::npos ? Stride{} : parse_stride(names, text.substr(colon + 1));
  const std::int64_t first = parse_length(names, text.substr(0, dots));
  const std::size_t length = colon == std::string::npos ? colon : colon - dots - 2;
  const std::int64_t last = parse_length(names, text.substr(dots + 2, length));
  if (last < first) {
    refuse_value(names, fmt::format("\"{}\" falls: write the smaller number first", text));
  }
  if (stride.times > 1 && first == 0) refuse_axis(names, text);
  for (std::optional<std::int64_t> value = first; value && *value <= last;
       value = stride.after(*value)) {
    if (values.size() >= kMostAxisValues) {
      refuse_value(names, fmt::format("\"{}\" has more than {} values: widen the step, such as :x2",
                                      text, kMostAxisValues));
    }
    values.push_back(*value);
  }
}

}  // namespace

std::vector<std::int64_t> parse_axis(const std::string& names, const std::string& text) {
  std::vector<std::int64_t> values;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, comma - start);
    const std::size_t dots = part.find("..");
    if (dots == std::string::npos) {
      values.push_back(parse_length(names, part));
    } else {
      add_range(names, part, dots, values);
    }
    start = comma + 1;
  }
  return values;
}

}  // namespace headroom::cli
