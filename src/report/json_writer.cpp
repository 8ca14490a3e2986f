#include "json_writer.h"

#include <limits>
#include <regex>

namespace headroom::detail {
namespace {

// A control character never stands in headroom's own texts, and nlohmann writes it as .
constexpr char kMark = '\x01';

}  // namespace

Json json_integer(Integer value) {
  const bool fits = value >= std::numeric_limits<std::int64_t>::min() &&
                    value <= std::numeric_limits<std::int64_t>::max();
  if (fits) return static_cast<std::int64_t>(value);
  return kMark + to_string(value);
}

std::string to_json_text(const Json& document) {
  const std::string text = document.dump(2) + "\n";
  if (text.find("\\u0001") == std::string::npos) return text;
  static const std::regex kMarked("\"\\\\u0001(-?[0-9]+)\"");
  return std::regex_replace(text, kMarked, "$1");
}

}  // namespace headroom::detail
