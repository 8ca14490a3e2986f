// ConfigDraft: a config.json being built from GGUF metadata.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::detail {

class GgufMetadataReader;

class ConfigDraft {
 public:
  /// Writes to `object`, which must outlive this.
  explicit ConfigDraft(nlohmann::json& object) : object_(&object) {}

  [[nodiscard]] bool has(std::string_view key) const;
  /// The value of a flag that was set.
  [[nodiscard]] bool is_true(std::string_view key) const;

  void set_null(std::string_view key);
  void set_flag(std::string_view key, bool value);
  void set_count(std::string_view key, std::int64_t value);
  void set_number(std::string_view key, double value);
  void set_text(std::string_view key, std::string_view value);
  void set_texts(std::string_view key, const std::vector<std::string>& values);
  void set_counts(std::string_view key, const std::vector<std::int64_t>& values);
  void set_numbers(std::string_view key, const std::vector<double>& values);
  /// Sets a value from JSON text.
  void set_json(std::string_view key, std::string_view text);
  /// Copies a metadata value if it exists.
  void copy(const GgufMetadataReader& metadata, std::string_view from, std::string_view to);
  /// Creates an empty object at `key`.
  [[nodiscard]] ConfigDraft add_object(std::string_view key);

 private:
  [[nodiscard]] nlohmann::json& at(std::string_view key);

  nlohmann::json* object_;
};

}  // namespace headroom::detail
