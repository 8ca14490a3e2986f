// Typed reads from one JSON object of a file from outside. Internal to src/import.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/expr.h"

namespace headroom::detail {

/// The members of one JSON object, which must outlive it. Every read throws Error{invalid_input}
/// naming the file and the member; a member whose value is null counts as missing.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& json, std::string where);

  [[noreturn]] void fail(const std::string& what) const;

  [[nodiscard]] bool has(const char* key) const;
  [[nodiscard]] const nlohmann::json& at(const char* key) const;
  [[nodiscard]] JsonFields object(const char* key) const;
  [[nodiscard]] std::string text(const char* key) const;
  /// Above zero, from 1e-18 to 1e18.
  [[nodiscard]] double positive(const char* key) const;
  /// An unsigned integer.
  [[nodiscard]] Integer count(const char* key) const;
  /// A count of tokens, sequences or threads: small enough that sums and products do not overflow.
  [[nodiscard]] std::int64_t length(const char* key) const;

  /// From 0 to 1e18.
  [[nodiscard]] std::optional<double> amount_if(const char* key) const;
  [[nodiscard]] std::optional<double> positive_if(const char* key) const;
  [[nodiscard]] std::optional<Integer> count_if(const char* key) const;
  [[nodiscard]] std::optional<std::int64_t> length_if(const char* key) const;
  [[nodiscard]] std::optional<std::string> text_if(const char* key) const;

  /// Throws if there is any other member.
  void require_only(std::initializer_list<std::string_view> keys) const;

  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  const nlohmann::json* json_;
  std::string where_;
};

}  // namespace headroom::detail
