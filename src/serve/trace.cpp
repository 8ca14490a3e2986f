// Reads a trace of requests: one JSON object per line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "headroom/error.h"
#include "headroom/serve.h"
#include "json_text.h"

namespace headroom {
namespace {

constexpr std::int64_t kLongestRequest = std::int64_t{1} << 30U;
constexpr std::string_view kForm =
    R"(each line is like {"arrival_s": 0.25, "input_tokens": 2000, "output_tokens": 300})";

[[noreturn]] void fail(const std::string& message, const std::string& where) {
  throw Error(ErrorCode::invalid_input, message, where, std::string(kForm));
}

std::int64_t tokens_of(const nlohmann::json& line, const char* key, const std::string& where) {
  const auto found = line.find(key);
  if (found == line.end()) fail(fmt::format("\"{}\" is missing", key), where);
  const bool good = found->is_number_unsigned() && *found >= 1 && *found <= kLongestRequest;
  if (!good) fail(fmt::format("\"{}\" is not a count from 1 to 2^30", key), where);
  return found->get<std::int64_t>();
}

double arrival_of(const nlohmann::json& line, const std::string& where) {
  const auto found = line.find("arrival_s");
  if (found == line.end()) fail("\"arrival_s\" is missing", where);
  const bool good = found->is_number() && std::isfinite(found->get<double>()) && *found >= 0;
  if (!good) fail("\"arrival_s\" is not a number of at least 0", where);
  return found->get<double>();
}

ServeRequest parse_line(std::string_view text, const std::string& where) {
  const nlohmann::json line = detail::parse_json(text, where);
  if (!line.is_object()) fail("the line is not an object", where);
  for (const auto& [key, value] : line.items()) {
    const bool known = key == "arrival_s" || key == "input_tokens" || key == "output_tokens";
    if (!known) fail(fmt::format("unknown key \"{}\"", key), where);
  }
  return {arrival_of(line, where), tokens_of(line, "input_tokens", where),
          tokens_of(line, "output_tokens", where)};
}

}  // namespace

std::vector<ServeRequest> parse_trace(const std::string& text, const std::string& name) {
  std::vector<ServeRequest> requests;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    requests.push_back(parse_line(line, fmt::format("{}:{}", name, number)));
  }
  if (requests.empty()) fail("the trace has no request", name);
  std::ranges::stable_sort(requests, {}, &ServeRequest::arrival_s);
  return requests;
}

}  // namespace headroom
