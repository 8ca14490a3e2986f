#include "config_draft.h"

#include <nlohmann/json.hpp>

#include "gguf_metadata_reader.h"

namespace headroom::detail {

nlohmann::json& ConfigDraft::at(std::string_view key) { return (*object_)[std::string(key)]; }

bool ConfigDraft::has(std::string_view key) const { return object_->contains(key); }

bool ConfigDraft::is_true(std::string_view key) const {
  return object_->at(std::string(key)) == true;
}

void ConfigDraft::set_null(std::string_view key) { at(key) = nullptr; }

void ConfigDraft::set_flag(std::string_view key, bool value) { at(key) = value; }

void ConfigDraft::set_count(std::string_view key, std::int64_t value) { at(key) = value; }

void ConfigDraft::set_number(std::string_view key, double value) { at(key) = value; }

void ConfigDraft::set_text(std::string_view key, std::string_view value) { at(key) = value; }

void ConfigDraft::set_texts(std::string_view key, const std::vector<std::string>& values) {
  at(key) = values;
}

void ConfigDraft::set_counts(std::string_view key, const std::vector<std::int64_t>& values) {
  at(key) = values;
}

void ConfigDraft::set_numbers(std::string_view key, const std::vector<double>& values) {
  at(key) = values;
}

void ConfigDraft::set_json(std::string_view key, std::string_view text) {
  at(key) = nlohmann::json::parse(text);
}

void ConfigDraft::copy(const GgufMetadataReader& metadata, std::string_view from,
                       std::string_view to) {
  if (const auto value = metadata.value(from)) at(to) = *value;
}

ConfigDraft ConfigDraft::add_object(std::string_view key) {
  at(key) = nlohmann::json::object();
  return ConfigDraft(at(key));
}

}  // namespace headroom::detail
