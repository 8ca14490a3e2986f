// Reads the members of a machine's JSON objects, with the bounds of their figures. Internal to
// src/machine.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headroom/error.h"

namespace headroom::detail {

inline constexpr std::size_t kMostPoints = 100'000;

/// Inclusive bounds of a figure, so that no prediction becomes infinite or negative.
struct Bounds {
  double least = 0;
  double most = 0;
};
/// No call is faster than a clock cycle, and no calibration measures one for a week.
inline constexpr Bounds kSeconds{1e-12, 6e5};
/// Overheads are differences of times: an operator may have none.
inline constexpr Bounds kOverhead{0, 1};
inline constexpr Bounds kSpread{0, 1e6};
/// FLOP/s, B/s and W: 1e21 FLOP/s are a thousand of the fastest supercomputers.
inline constexpr Bounds kRate{1, 1e21};
inline constexpr Bounds kFraction{0.001, 1};

/// Reads the members of one JSON object; errors name their place.
class Reader {
 public:
  Reader(const nlohmann::json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) fail("is not an object");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorCode::invalid_input, what, where_,
                "run `headroom calibrate` again, or choose a machine of `headroom machines`");
  }

  [[nodiscard]] const nlohmann::json& member(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) fail(fmt::format("\"{}\" is missing", key));
    return *found;
  }

  /// Returns whether the member is present and not null.
  [[nodiscard]] bool has(const char* key) const {
    const auto found = json_.find(key);
    return found != json_.end() && !found->is_null();
  }

  [[nodiscard]] std::string text(const char* key) const {
    const nlohmann::json& value = member(key);
    if (!value.is_string()) fail(fmt::format("\"{}\" is not a string", key));
    return value.get<std::string>();
  }

  [[nodiscard]] std::string text_or_empty(const char* key) const {
    return has(key) ? text(key) : std::string();
  }

  [[nodiscard]] double number(const char* key) const { return number(member(key), key); }

  /// A number within `bounds`.
  [[nodiscard]] double within(const Bounds& bounds, const char* key) const {
    const double value = number(key);
    require_within(bounds, value, key);
    return value;
  }

  [[nodiscard]] double rate(const char* key) const { return within(kRate, key); }

  [[nodiscard]] std::optional<double> optional_within(const Bounds& bounds, const char* key) const {
    return has(key) ? std::optional(within(bounds, key)) : std::nullopt;
  }

  [[nodiscard]] std::optional<double> optional_rate(const char* key) const {
    return optional_within(kRate, key);
  }

  void require_within(const Bounds& bounds, double value, const char* key) const {
    if (value >= bounds.least && value <= bounds.most) return;
    fail(fmt::format("\"{}\" is {}, not from {} to {}", key, value, bounds.least, bounds.most));
  }

  [[nodiscard]] std::int64_t count(const char* key) const {
    const nlohmann::json& value = member(key);
    if (!value.is_number_integer() || value < 0 || value > std::int64_t{1} << 60) {
      fail(fmt::format("\"{}\" is not a count", key));
    }
    return value.get<std::int64_t>();
  }

  [[nodiscard]] bool truth(const char* key) const {
    const nlohmann::json& value = member(key);
    if (!value.is_boolean()) fail(fmt::format("\"{}\" is neither true nor false", key));
    return value.get<bool>();
  }

  /// A number of processors or threads.
  [[nodiscard]] int processors(const char* key) const {
    constexpr std::int64_t kMost = 1 << 20;
    const std::int64_t value = count(key);
    if (value > kMost) fail(fmt::format("\"{}\" is not a number of processors", key));
    return static_cast<int>(value);
  }

  [[nodiscard]] std::vector<Reader> objects(const char* key) const {
    const nlohmann::json& value = member(key);
    if (!value.is_array() || value.size() > kMostPoints)
      fail(fmt::format("\"{}\" is not a list", key));
    std::vector<Reader> readers;
    for (std::size_t i = 0; i < value.size(); ++i) {
      readers.emplace_back(value[i], fmt::format("{}/{}/{}", where_, key, i));
    }
    return readers;
  }

  [[nodiscard]] std::vector<double> numbers(const char* key) const {
    const nlohmann::json& value = member(key);
    if (!value.is_array() || value.size() > kMostPoints)
      fail(fmt::format("\"{}\" is not a list", key));
    std::vector<double> numbers;
    for (const nlohmann::json& one : value) numbers.push_back(number(one, key));
    return numbers;
  }

  [[nodiscard]] Reader object(const char* key) const {
    return {member(key), fmt::format("{}/{}", where_, key)};
  }

 private:
  double number(const nlohmann::json& value, const char* key) const {
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      fail(fmt::format("\"{}\" is not a number", key));
    }
    return value.get<double>();
  }

  const nlohmann::json& json_;
  std::string where_;
};

}  // namespace headroom::detail
