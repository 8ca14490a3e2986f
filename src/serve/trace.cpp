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
    R"(each line is like {"arrival_s": 0.25, "input_tokens": 2000, "output_tokens": 300} or )"
    R"({"timestamp": 250, "input_length": 2000, "output_length": 300})";

/// Keys of a line. `prefix` names the blocks of a prompt that others share, and may be missing.
struct LineKeys {
  const char* arrival;
  double arrivals_per_s;  ///< unit of an arrival
  const char* input;
  const char* output;
  const char* prefix;

  [[nodiscard]] bool have(std::string_view key) const {
    return key == arrival || key == input || key == output || (prefix != nullptr && key == prefix);
  }
};
constexpr LineKeys kOwnKeys{"arrival_s", 1, "input_tokens", "output_tokens", nullptr};
/// Mooncake's traces, in milliseconds (github.com/kvcache-ai/Mooncake, FAST25-release).
constexpr LineKeys kMooncakeKeys{"timestamp", 1e3, "input_length", "output_length", "hash_ids"};

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

double arrival_of(const nlohmann::json& line, const LineKeys& keys, const std::string& where) {
  const auto found = line.find(keys.arrival);
  if (found == line.end()) fail(fmt::format("\"{}\" is missing", keys.arrival), where);
  const bool good = found->is_number() && std::isfinite(found->get<double>()) && *found >= 0;
  if (!good) fail(fmt::format("\"{}\" is not a number of at least 0", keys.arrival), where);
  return found->get<double>() / keys.arrivals_per_s;
}

void add_line(std::string_view text, const std::string& where, TraceArrivals& trace) {
  const nlohmann::json line = detail::parse_json(text, where);
  if (!line.is_object()) fail("the line is not an object", where);
  const LineKeys& keys = line.contains(kMooncakeKeys.arrival) ? kMooncakeKeys : kOwnKeys;
  for (const auto& [key, value] : line.items()) {
    if (!keys.have(key)) fail(fmt::format("unknown key \"{}\"", key), where);
  }
  trace.requests.push_back({arrival_of(line, keys, where), tokens_of(line, keys.input, where),
                            tokens_of(line, keys.output, where)});
  trace.names_prefixes |= keys.prefix != nullptr && line.contains(keys.prefix);
}

}  // namespace

TraceArrivals parse_trace(const std::string& text, const std::string& name) {
  TraceArrivals trace;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    add_line(line, fmt::format("{}:{}", name, number), trace);
  }
  if (trace.requests.empty()) fail("the trace has no request", name);
  std::ranges::stable_sort(trace.requests, {}, &ServeRequest::arrival_s);
  return trace;
}

}  // namespace headroom
