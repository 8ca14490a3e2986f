#include "standard_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "common_keys.h"
#include "family.h"
#include "gguf/gguf_config.h"
#include "gguf_split.h"
#include "json_text.h"

namespace headroom::detail {
namespace {

using nlohmann::json;

// No layer count, head count or head size is larger; products of a few of them fit 128 bits.
constexpr std::int64_t kLargestSize = std::int64_t{1} << 31U;

/// A size by name; empty if it is absent or no size.
using SizeLookup = std::function<std::optional<std::int64_t>(const char* name)>;

/// Names of the sizes in one format.
struct SizeNames {
  const char* layers;
  const char* width;
  const char* heads;
  const char* key_value_heads;
  const char* head_dim;
};
constexpr SizeNames kConfigNames{"num_hidden_layers", "hidden_size", "num_attention_heads",
                                 "num_key_value_heads", "head_dim"};
constexpr SizeNames kGgufNames{"block_count", "embedding_length", "attention.head_count",
                               "attention.head_count_kv", "attention.key_length"};

/// The defaults are those of nearly all classes: every head has its keys, and heads share the
/// width.
void read_sizes(const SizeNames& names, const SizeLookup& size, StatedModel& stated) {
  const auto layers = size(names.layers);
  const auto heads = size(names.heads);
  auto key_value_heads = size(names.key_value_heads);
  if (!key_value_heads) key_value_heads = heads;
  auto head_dim = size(names.head_dim);
  const auto width = size(names.width);
  if (!head_dim && width && heads && *width % *heads == 0) head_dim = *width / *heads;
  stated.missing = !layers            ? names.layers
                   : !key_value_heads ? names.key_value_heads
                   : !head_dim        ? names.head_dim
                                      : "";
  if (stated.missing.empty()) stated.sizes = {*layers, *key_value_heads, *head_dim};
}

std::optional<std::int64_t> checked_size(std::int64_t value) {
  if (value < 1 || value > kLargestSize) return std::nullopt;
  return value;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string first_class(const json& config) {
  const auto found = config.find("architectures");
  const bool named =
      found != config.end() && found->is_array() && !found->empty() && found->front().is_string();
  // diffusers writes one class as a word.
  return named ? found->front().get<std::string>() : text_of(config, "_class_name");
}

/// A class that the family counts, or none: the family has a class of its own then.
bool knows_class(const Family& family, const std::string& name) {
  const std::vector<ModelClass>& list = family.classes.list;
  return name.empty() || std::ranges::find(list, name, &ModelClass::name) != list.end();
}

/// The text model's config inside a multimodal one, else the config itself.
const json& text_config(const json& config) {
  const auto found = config.find("text_config");
  return found != config.end() && found->is_object() ? *found : config;
}

}  // namespace

StatedModel read_stated_config(const std::filesystem::path& config) {
  const json document = parse_json(read_text_file(config.string()), config.string());
  // Throws unless the document is an object.
  const ConfigReader reader(document, config.string());
  const json& text = text_config(document);
  StatedModel stated;
  stated.model_type = text_of(document, "model_type");
  stated.architecture = first_class(document);
  const bool of_diffusers = find_family(stated.architecture) != nullptr;
  if (stated.model_type.empty() && of_diffusers) stated.model_type = stated.architecture;
  const std::string text_type = text_of(text, "model_type");
  // A family reads its own text model: clip that of type clip_text_model.
  const bool knows_text = text_type.empty() || text_type == stated.model_type + "_text_model" ||
                          find_family(text_type) != nullptr;
  const Family* const family = find_family(stated.model_type);
  stated.has_known_type = family != nullptr && knows_text;
  stated.is_known =
      stated.has_known_type && (of_diffusers || knows_class(*family, stated.architecture));
  for (const char* const key : {"dtype", "torch_dtype"}) {
    for (const json* const object : {&document, &text}) {
      if (stated.torch_dtype.empty()) stated.torch_dtype = without_torch(text_of(*object, key));
    }
  }
  const auto size = [&](const char* name) -> std::optional<std::int64_t> {
    const json& holder = document.contains(name) ? document : text;
    const auto found = holder.find(name);
    if (found == holder.end() || !found->is_number_integer()) return std::nullopt;
    return checked_size(found->get<std::int64_t>());
  };
  read_sizes(kConfigNames, size, stated);
  return stated;
}

StatedModel read_stated_gguf(const std::filesystem::path& file) {
  const std::vector<checkpoint::GgufFile> parts = checkpoint::open_gguf_parts(file);
  const checkpoint::GgufFile& opened = parts.front();
  StatedModel stated;
  stated.is_known = is_known_architecture(opened.content(), opened.path());
  if (const auto* const name = opened.find("general.architecture")) {
    const auto* const text = std::get_if<std::string_view>(name);
    if (text != nullptr) stated.model_type = *text;
  }
  const auto size = [&](const char* name) -> std::optional<std::int64_t> {
    const auto* const value = opened.find(fmt::format("{}.{}", stated.model_type, name));
    const auto* const count = value == nullptr ? nullptr : std::get_if<std::uint64_t>(value);
    const auto most = static_cast<std::uint64_t>(kLargestSize);
    if (count == nullptr || *count > most) return std::nullopt;
    return checked_size(static_cast<std::int64_t>(*count));
  };
  read_sizes(kGgufNames, size, stated);
  return stated;
}

}  // namespace headroom::detail
