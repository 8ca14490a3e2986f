// From a config.json to a ModelSpec, for all families.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <set>

#include "common_keys.h"
#include "family.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "json_text.h"
#include "similar.h"

namespace headroom {
namespace detail {
namespace {

std::string known_model_types() {
  std::set<std::string_view> known;
  for (const Family& family : families()) {
    known.insert(family.model_types.names.begin(), family.model_types.names.end());
  }
  return fmt::format("{}", fmt::join(known, ", "));
}

const Family& family_of(const ConfigReader& config, const std::string& model_type) {
  if (model_type.empty()) {
    config.fail("model_type", "is missing", "add one of: " + known_model_types());
  }
  if (const Family* const family = find_family(model_type)) return *family;
  config.fail("model_type", fmt::format("the model type \"{}\" is not supported", model_type),
              "use one of: " + known_model_types());
}

}  // namespace
}  // namespace detail

ModelSpec read_model_spec(std::string_view json, const std::string& file, std::string name) {
  const nlohmann::json document = detail::parse_json(json, file);
  detail::ConfigReader config(document, file);
  ModelSpec spec;
  spec.name = std::move(name);
  spec.model_type = config.text_or({"model_type"}, "");
  const detail::Family& family = detail::family_of(config, spec.model_type);
  detail::read_class(config, spec, family.classes);
  family.reader.read(config, spec);
  detail::read_num_labels(config, spec);
  detail::read_common_keys(config, spec);
  config.finish();
  if (!spec.torch_dtype.empty()) spec.storage.plain_type = spec.torch_dtype;
  detail::require_no_structural(config.unread(), file);
  for (const detail::UnreadKey& key : config.unread().unlikely) {
    spec.unread_keys.push_back(key.pointer.substr(1));
  }
  return spec;
}

}  // namespace headroom
