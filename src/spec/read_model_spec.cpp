// From a config.json to a ModelSpec, for all families.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "agreeing_flags.h"
#include "common_keys.h"
#include "consistent_layers.h"
#include "families/drafts.h"
#include "family.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "json_text.h"
#include "unknown_type.h"

namespace headroom {
namespace detail {
namespace {

/// The type of a config: a draft's is its class's.
std::string type_of(ConfigReader& config) {
  std::string stated = config.text_or({"model_type"}, "");
  // diffusers' configs name their class instead.
  if (stated.empty()) stated = config.text_or({"_class_name"}, "");
  const std::vector<std::string> classes = config.texts("architectures");
  const Family* const draft = classes.empty() ? nullptr : find_draft(config, classes.front());
  return draft == nullptr ? stated : std::string(draft->model_types.names.front());
}

const Family& family_of(const ConfigReader& config, const std::string& model_type) {
  if (model_type.empty() && config.has("produced_by")) {
    config.fail("produced_by", "is a key of headroom's reports, not of a model's config",
                "give the model; compare takes two reports: predicted.json measured.json");
  }
  if (model_type.empty()) {
    config.fail("model_type", "is missing", list_of_types_hint(model_type));
  }
  if (const Family* const family = find_family(model_type)) return *family;
  config.fail(config.has("model_type") ? "model_type" : "_class_name",
              fmt::format("the model type \"{}\" is unknown", model_type),
              list_of_types_hint(model_type));
}

}  // namespace
}  // namespace detail

ModelSpec read_model_spec(std::string_view json, const std::string& file, std::string name) {
  const nlohmann::json document = detail::parse_json(json, file);
  detail::ConfigReader config(document, file);
  ModelSpec spec;
  spec.name = std::move(name);
  spec.model_type = detail::type_of(config);
  const detail::Family& family = detail::family_of(config, spec.model_type);
  config.use_class_sizes(spec.model_type);
  detail::read_class(config, spec, family.classes);
  family.reader.read(config, spec);
  detail::require_consistent_layers(spec, file);
  detail::read_num_labels(config, spec);
  detail::read_common_keys(config, spec);
  config.finish();
  if (!spec.torch_dtype.empty()) spec.storage.plain_type = spec.torch_dtype;
  detail::UnreadKeys unread = config.unread();
  detail::drop_agreeing_flags(unread, spec);
  detail::require_no_structural(unread, file);
  for (const detail::UnreadKey& key : unread.unlikely) {
    spec.unread_keys.push_back(key.pointer.substr(1));
  }
  if (const std::vector<std::string>& filled = unread.filled; !filled.empty()) {
    spec.assumptions.push_back(fmt::format("the config omits sizes, which are those of {}: {}",
                                           spec.architecture, fmt::join(filled, ", ")));
  }
  return spec;
}

}  // namespace headroom
