// The registry of families, and the one way from a config.json to a ModelSpec.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "family.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "json_text.h"
#include "similar.h"

namespace headroom {
namespace detail {
namespace {

struct Family {
  std::string_view model_type;
  FamilyReader read;
};

constexpr std::array kFamilies{
    Family{"attention", read_attention_layer},
    Family{"bert", read_bert},
    Family{"distilbert", read_distilbert},
    Family{"gpt2", read_gpt2},
    Family{"linear_transformer", read_linear_transformer},
    Family{"llama", read_llama},
    Family{"roberta", read_roberta},
    Family{"t5", read_t5},
    Family{"transformer", read_transformer},
    Family{"vit", read_vit},
    Family{"xlm-roberta", read_xlm_roberta},
};

std::string known_model_types() {
  std::string list;
  for (const Family& family : kFamilies) {
    list += (list.empty() ? "" : ", ") + std::string(family.model_type);
  }
  return list;
}

const Family& find_family(const ConfigReader& config, const std::string& model_type) {
  if (model_type.empty()) {
    config.fail("model_type", "is missing", "add one of: " + known_model_types());
  }
  const auto* const found = std::ranges::find(kFamilies, model_type, &Family::model_type);
  if (found != kFamilies.end()) return *found;
  config.fail("model_type", fmt::format("the model type \"{}\" is not understood", model_type),
              "understood are: " + known_model_types());
}

}  // namespace
}  // namespace detail

ModelSpec read_model_spec(std::string_view json, const std::string& file, std::string name) {
  const nlohmann::json document = detail::parse_json(json, file);
  detail::ConfigReader config(document, file);
  ModelSpec spec;
  spec.name = std::move(name);
  spec.model_type = config.text_or({"model_type"}, "");
  detail::find_family(config, spec.model_type).read(config, spec);
  detail::read_num_labels(config, spec);
  detail::read_common_keys(config, spec);
  config.finish();
  return spec;
}

}  // namespace headroom
