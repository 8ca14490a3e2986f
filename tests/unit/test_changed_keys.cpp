// Every key of every family's configs, changed on its own: the config is read, or refused at one of
// its places. Whether a change that is read has the class's outputs is for
// tests/reference/families/flip_keys.py to say.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "headroom/error.h"
#include "headroom/model_source.h"
#include "support/data.h"
#include "support/python_json.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;
using Pointer = json::json_pointer;

/// The config in `file`; null if there is none.
json read_stored_config(const std::filesystem::path& file) {
  const json document = read_with_infinity(file);
  if (!document.is_object()) return nullptr;
  const json config = document.contains("config") ? document.at("config") : document;
  return config.contains("model_type") ? config : json();
}

std::vector<std::pair<std::string, json>> stored_configs() {
  std::vector<std::pair<std::string, json>> configs;
  for (const char* const folder :
       {"families", "golden/models", "golden/tiny", "towers/tiny", "encoders/tiny", "drafts",
        "state_spaces/configs", "quantization"}) {
    for (const auto& entry : std::filesystem::directory_iterator(data_folder() / folder)) {
      const bool is_folder = entry.is_directory();
      const std::filesystem::path file = is_folder ? entry.path() / "config.json" : entry.path();
      if (file.extension() != ".json" || !std::filesystem::exists(file)) continue;
      constexpr std::uintmax_t kMostBytes = 16384;  // longer ones list thousands of modules
      if (std::filesystem::file_size(file) > kMostBytes) continue;
      json config = read_stored_config(file);
      if (config.is_object()) configs.emplace_back(file.string(), std::move(config));
    }
  }
  return configs;
}

/// Places of all values but those of the elements of lists.
void add_places(const json& object, const Pointer& place, std::vector<Pointer>& places) {
  for (const auto& [key, value] : object.items()) {
    const Pointer inner = place / key;
    places.push_back(inner);
    if (value.is_object()) add_places(value, inner, places);
  }
}

/// The words that any config has for a key, by its name.
using Words = std::map<std::string, std::set<std::string>>;

void add_words(const json& object, Words& words) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_string()) words[key].insert(value.get<std::string>());
    if (value.is_object()) add_words(value, words);
  }
}

/// Other values of the kind of `value`; of a word, those of `words`, and one that none has.
std::vector<json> other_values(const json& value, const std::set<std::string>& words) {
  if (value.is_boolean()) return {!value.get<bool>()};
  if (value.is_number_integer()) {
    constexpr std::int64_t kHuge = std::int64_t{1} << 40U;  // no list is as long
    return {0, 1, value.get<std::int64_t>() * 2, -1, kHuge};
  }
  if (value.is_number()) return {0.0, value.get<double>() * 1.5, -1.0};
  if (value.is_string()) {
    constexpr std::size_t kMost = 12;  // beyond, names, not choices
    std::vector<json> others{"unknown"};
    if (words.size() <= kMost) others.insert(others.end(), words.begin(), words.end());
    return others;
  }
  if (!value.is_array()) return {};
  json shorter = value;
  if (!shorter.empty()) shorter.erase(shorter.size() - 1);
  return {json::array(), shorter};
}

/// The type of the model and, where its config says, the method of its quantisation.
std::string type_of(const json& config) {
  const std::string type = config.at("model_type").dump();
  const auto method = config.find("quantization_config");
  if (method == config.end() || !method->is_object()) return type;
  return type + method->value("quant_method", json()).dump() +
         method->value("format", json()).dump();
}

/// Reads `config`; an error must say where. Returns whether it is read.
bool check_read_or_refused(const json& config) {
  try {
    (void)read_model_spec(config.dump(), "config.json", "test");
    return true;
  } catch (const Error& error) {
    const std::string text = error.what();
    CAPTURE(text);
    CHECK(error.code() != ErrorCode::internal);
    CHECK(text.starts_with("config.json"));
    CHECK_FALSE(error.hint().empty());
  } catch (const std::exception& error) {
    FAIL_CHECK(error.what());
  }
  return false;
}

}  // namespace

TEST_CASE("a config with any one key changed, removed or null is read, or refused at a place") {
  const std::vector<std::pair<std::string, json>> configs = stored_configs();
  Words words;
  for (const auto& named : configs) add_words(named.second, words);
  std::size_t read = 0;
  std::size_t refused = 0;
  std::set<std::pair<std::string, std::string>> tried;  // a key of a type that several configs have
  for (const auto& named : configs) {
    const std::string& file = named.first;
    const json& config = named.second;
    CAPTURE(file);
    std::vector<Pointer> places;
    const bool is_quantised = config.contains("quantization_config");
    const Pointer from = is_quantised ? Pointer("/quantization_config") : Pointer();
    add_places(config.at(from), from, places);
    for (const Pointer& place : places) {
      const std::string key = place.to_string();
      if (!tried.emplace(type_of(config), key).second) continue;
      CAPTURE(key);
      json changed = config;
      for (const json& other : other_values(config.at(place), words[place.back()])) {
        changed.at(place) = other;
        ++(check_read_or_refused(changed) ? read : refused);
      }
      changed.at(place) = nullptr;
      ++(check_read_or_refused(changed) ? read : refused);
      changed.at(place.parent_pointer()).erase(place.back());
      ++(check_read_or_refused(changed) ? read : refused);
    }
  }
  CHECK(read > 10'000);
  CHECK(refused > 5'000);
}
