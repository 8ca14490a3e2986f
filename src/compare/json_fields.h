// Reading of numbers and names out of JSON from outside. Internal to src/compare.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "headroom/error.h"
#include "headroom/integer.h"

namespace headroom::detail {

/// The members of one JSON object; errors name the file and the member.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& json, std::string where)
      : json_(&json), where_(std::move(where)) {
    if (!json.is_object()) fail("is not an object");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::invalid_input, what, where_,
                "take files that `headroom analyze`, `headroom measure` or a benchmark wrote");
  }

  [[nodiscard]] bool has(const char* key) const {
    const auto found = json_->find(key);
    return found != json_->end() && !found->is_null();
  }

  [[nodiscard]] const nlohmann::json& at(const char* key) const {
    if (!has(key)) fail(std::string("\"") + key + "\" is missing");
    return *json_->find(key);
  }

  [[nodiscard]] JsonFields object(const char* key) const { return {at(key), where_ + "/" + key}; }

  [[nodiscard]] std::string text(const char* key) const {
    if (!at(key).is_string()) fail(std::string("\"") + key + "\" is not a text");
    return at(key).get<std::string>();
  }

  /// Finite and above zero.
  [[nodiscard]] double positive(const char* key) const {
    const nlohmann::json& value = at(key);
    if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0) {
      fail(std::string("\"") + key + "\" is not a number above zero");
    }
    return value.get<double>();
  }

  [[nodiscard]] Integer count(const char* key) const {
    const nlohmann::json& value = at(key);
    // What the parser read without a sign.
    if (!value.is_number_unsigned()) {
      fail(std::string("\"") + key + "\" is not a count");
    }
    return value.get<std::uint64_t>();
  }

  /// A count of tokens, sequences or threads: small enough to add up and multiply.
  [[nodiscard]] std::int64_t length(const char* key) const {
    const Integer value = count(key);
    if (value > kLongest) fail(std::string("\"") + key + "\" is longer than any run");
    return static_cast<std::int64_t>(value);
  }

  [[nodiscard]] std::optional<double> positive_if(const char* key) const {
    return has(key) ? std::optional(positive(key)) : std::nullopt;
  }
  [[nodiscard]] std::optional<Integer> count_if(const char* key) const {
    return has(key) ? std::optional(count(key)) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::int64_t> length_if(const char* key) const {
    return has(key) ? std::optional(length(key)) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> text_if(const char* key) const {
    return has(key) ? std::optional(text(key)) : std::nullopt;
  }

  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  static constexpr Integer kLongest = Integer{1} << 40;

  const nlohmann::json* json_;
  std::string where_;
};

}  // namespace headroom::detail
