#include "json_writer.h"

#include <cmath>
#include <limits>
#include <string_view>

namespace headroom::detail {
namespace {

// No text of headroom has a control character; nlohmann writes it as an escape.
constexpr char kMark = '\x01';
constexpr std::string_view kWrittenMark = "\"\\u0001";

constexpr int kIndent = 2;
constexpr int kNoIndent = -1;  // nlohmann's word for one line

/// The document with marked integers as digits.
std::string exact_json(const Json& document, int indent) {
  // Paths need not be UTF-8: invalid bytes become U+FFFD.
  const std::string text = document.dump(indent, ' ', false, Json::error_handler_t::replace);
  std::string result;
  std::size_t done = 0;
  for (std::size_t mark = text.find(kWrittenMark); mark != std::string::npos;
       mark = text.find(kWrittenMark, done)) {
    const std::size_t digits = mark + kWrittenMark.size();
    const std::size_t end = text.find('"', digits);
    result += text.substr(done, mark - done) + text.substr(digits, end - digits);
    done = end + 1;
  }
  return result + text.substr(done);
}

}  // namespace

Json json_integer(Integer value) {
  const bool fits = value >= std::numeric_limits<std::int64_t>::min() &&
                    value <= std::numeric_limits<std::int64_t>::max();
  if (fits) return static_cast<std::int64_t>(value);
  return kMark + to_string(value);
}

Json json_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

std::string to_json_text(const Json& document) { return exact_json(document, kIndent) + "\n"; }

std::string to_compact_json_text(const Json& document) { return exact_json(document, kNoIndent); }

}  // namespace headroom::detail
