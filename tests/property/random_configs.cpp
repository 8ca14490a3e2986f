#include "random_configs.h"

#include <algorithm>
#include <fstream>

namespace headroom::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// Larger values would make runs slow and find no more.
constexpr std::int64_t kLargestSize = 128;

constexpr const char* kWidths[] = {"hidden_size", "d_model", "n_embd", "embed_dim", "dim"};
constexpr const char* kHeads[] = {
    "num_attention_heads",    "n_head", "num_heads", "n_heads", "encoder_attention_heads",
    "decoder_attention_heads"};
constexpr const char* kLayers[] = {"num_hidden_layers", "n_layer",        "num_layers",
                                   "n_layers",          "encoder_layers", "decoder_layers"};

/// Objects of `config` with members, the config itself first.
std::vector<json*> objects_of(json& config) {
  std::vector<json*> objects{&config};
  for (std::size_t i = 0; i < objects.size(); ++i) {
    for (json& member : *objects[i]) {
      if (member.is_object() && !member.empty()) objects.push_back(&member);
    }
  }
  return objects;
}

std::string random_key(const json& object, Random& random) {
  return std::next(object.begin(), static_cast<std::ptrdiff_t>(random.below(object.size()))).key();
}

/// A width that is a multiple of the heads, and key-value heads that divide them.
void resize_heads(json& object, Random& random) {
  const std::int64_t heads = random.one_of(std::vector<std::int64_t>{1, 2, 3, 4, 6, 8});
  const std::int64_t head_dim = random.one_of(std::vector<std::int64_t>{2, 4, 8, 12, 16});
  for (const char* const key : kHeads) {
    if (object.contains(key)) object[key] = heads;
  }
  for (const char* const key : kWidths) {
    if (object.contains(key)) object[key] = heads * head_dim;
  }
  for (const char* const key : {"head_dim", "d_kv"}) {
    if (object.contains(key)) object[key] = head_dim;
  }
  std::vector<std::int64_t> divisors;
  for (std::int64_t n = 1; n <= heads; ++n) {
    if (heads % n == 0) divisors.push_back(n);
  }
  if (object.contains("num_key_value_heads")) {
    object["num_key_value_heads"] = random.one_of(divisors);
  }
}

/// Lists with one entry per layer follow the number of layers.
void resize_layers(json& object, Random& random) {
  for (const char* const key : kLayers) {
    if (!object.contains(key) || !object[key].is_number_integer()) continue;
    const auto before = object[key].get<std::size_t>();
    const auto after = static_cast<std::size_t>(random.between(1, 6));
    object[key] = after;
    for (json& member : object) {
      if (!member.is_array() || member.size() != before || before == 0) continue;
      json resized = json::array();
      for (std::size_t i = 0; i < after; ++i) resized.push_back(member[i % before]);
      member = std::move(resized);
    }
  }
}

std::int64_t near(std::int64_t value, Random& random) {
  switch (random.below(5)) {
    case 0:
      return value * 2;
    case 1:
      return value / 2;
    case 2:
      return value + 1;
    case 3:
      return value - 1;
    default:
      return random.one_of(
          std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64});
  }
}

}  // namespace

RandomConfigs::RandomConfigs(const fs::path& data) {
  std::vector<fs::path> files;
  for (const char* const folder :
       {"golden/tiny", "golden/models", "families", "state_spaces/configs",
        "state_spaces/unrecorded", "towers/tiny", "encoders/tiny", "layers"}) {
    if (!fs::is_directory(data / folder)) continue;
    for (const auto& entry : fs::directory_iterator(data / folder)) {
      files.push_back(entry.is_directory() ? entry.path() / "config.json" : entry.path());
    }
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    std::ifstream stream(file);
    const json content = json::parse(stream, nullptr, false);
    if (!content.is_object()) continue;
    if (content.contains("config_v5")) add_base(content["config_v5"]);
    add_base(content.contains("config") ? content["config"] : content);
  }
}

void RandomConfigs::add_base(const json& config) {
  if (!config.contains("model_type")) return;
  bases_.push_back(config);
  collect_values(config);
}

void RandomConfigs::collect_values(const json& object) {
  const auto type = object.value("model_type", std::string());
  for (const auto& [key, value] : object.items()) {
    auto& values = values_[key];
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
    if (!type.empty()) keys_[type].push_back(key);
    if (value.is_object()) collect_values(value);
  }
}

void RandomConfigs::add_key_of_kin(json& object, Random& random) const {
  const auto type = object.value("model_type", std::string());
  const auto& kin = keys_.contains(type) ? keys_.at(type) : random.one_of(keys_).second;
  const std::string& key = random.one_of(kin);
  if (key != "model_type") object[key] = random.one_of(values_.at(key));
}

void RandomConfigs::change(json& object, Random& random) const {
  const std::size_t kind = random.below(8);
  if (kind == 0) return resize_heads(object, random);
  if (kind == 1) return resize_layers(object, random);
  if (kind == 2) return add_key_of_kin(object, random);
  const std::string key = random_key(object, random);
  json& value = object[key];
  if (key == "model_type") return;
  if (value.is_boolean()) {
    value = !value.get<bool>();
  } else if (kind == 3) {
    object.erase(key);
  } else if (value.is_number_integer() && kind < 7) {
    value = std::min(near(value.get<std::int64_t>(), random), kLargestSize);
  } else if (values_.contains(key)) {
    value = random.one_of(values_.at(key));
  }
}

json RandomConfigs::config(std::uint64_t seed) const {
  Random random(seed);
  json config = random.one_of(bases_);
  for (std::int64_t changes = random.between(0, 5); changes > 0; --changes) {
    json* const object = random.one_of(objects_of(config));
    if (!object->empty()) change(*object, random);
  }
  return config;
}

}  // namespace headroom::test
