#include "json_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

/// No run has more tokens, sequences or threads.
constexpr Integer kLongestRun = Integer{1} << 40;

/// Times, rates and bytes in any unit: beyond these bounds nothing was measured.
constexpr double kLeastAmount = 1e-18;
constexpr double kMostAmount = 1e18;

std::string in_quotes(const char* key) { return std::string("\"") + key + "\""; }

}  // namespace

JsonFields::JsonFields(const nlohmann::json& json, std::string where)
    : json_(&json), where_(std::move(where)) {
  if (!json.is_object()) fail("is not an object");
}

void JsonFields::fail(const std::string& what) const {
  throw Error(ErrorCode::invalid_input, what, where_,
              "give a file that `headroom analyze`, `headroom measure` or a benchmark wrote");
}

bool JsonFields::has(const char* key) const {
  const auto found = json_->find(key);
  return found != json_->end() && !found->is_null();
}

const nlohmann::json& JsonFields::at(const char* key) const {
  if (!has(key)) fail(in_quotes(key) + " is missing");
  return *json_->find(key);
}

JsonFields JsonFields::object(const char* key) const { return {at(key), where_ + "/" + key}; }

std::string JsonFields::text(const char* key) const {
  if (!at(key).is_string()) fail(in_quotes(key) + " is not a string");
  return at(key).get<std::string>();
}

double JsonFields::positive(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_number() || !(value > 0)) fail(in_quotes(key) + " is not a number above zero");
  if (value < kLeastAmount || value > kMostAmount) {
    fail(fmt::format("\"{}\" is not from {} to {}", key, kLeastAmount, kMostAmount));
  }
  return value.get<double>();
}

Integer JsonFields::count(const char* key) const {
  const nlohmann::json& value = at(key);
  if (!value.is_number_unsigned()) fail(in_quotes(key) + " is not a count");
  return value.get<std::uint64_t>();
}

std::int64_t JsonFields::length(const char* key) const {
  const Integer value = count(key);
  if (value > kLongestRun) fail(in_quotes(key) + " is longer than any run");
  return static_cast<std::int64_t>(value);
}

void JsonFields::require_only(std::initializer_list<std::string_view> keys) const {
  for (const auto& [key, value] : json_->items()) {
    if (std::ranges::find(keys, key) == keys.end()) fail(fmt::format("unknown key \"{}\"", key));
  }
}

std::optional<double> JsonFields::amount_if(const char* key) const {
  if (!has(key)) return std::nullopt;
  const nlohmann::json& value = at(key);
  if (!value.is_number() || !(value >= 0)) {
    fail(fmt::format("\"{}\" is not a number of at least 0", key));
  }
  if (value > kMostAmount) fail(fmt::format("\"{}\" is above {}", key, kMostAmount));
  return value.get<double>();
}

std::optional<double> JsonFields::positive_if(const char* key) const {
  return has(key) ? std::optional(positive(key)) : std::nullopt;
}

std::optional<Integer> JsonFields::count_if(const char* key) const {
  return has(key) ? std::optional(count(key)) : std::nullopt;
}

std::optional<std::int64_t> JsonFields::length_if(const char* key) const {
  return has(key) ? std::optional(length(key)) : std::nullopt;
}

std::optional<std::string> JsonFields::text_if(const char* key) const {
  return has(key) ? std::optional(text(key)) : std::nullopt;
}

}  // namespace headroom::detail
