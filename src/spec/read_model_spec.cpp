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
    Family{"albert", read_albert},
    Family{"attention", read_attention_layer},
    Family{"bart", read_bart},
    Family{"bert", read_bert},
    Family{"bloom", read_bloom},
    Family{"cohere", read_cohere},
    Family{"cohere2", read_cohere2},
    Family{"convolution", read_convolution_layer},
    Family{"cross_attention", read_cross_attention_layer},
    Family{"deepseek_v2", read_deepseek_v2},
    Family{"deepseek_v3", read_deepseek_v3},
    Family{"distilbert", read_distilbert},
    Family{"electra", read_electra},
    Family{"falcon", read_falcon},
    Family{"feed_forward", read_feed_forward_layer},
    Family{"gemma", read_gemma},
    Family{"gemma2", read_gemma2},
    Family{"gemma3", read_gemma3},
    Family{"gemma3_text", read_gemma3_text},
    Family{"glm", read_glm},
    Family{"glm4", read_glm4},
    Family{"glm4_moe", read_glm4_moe},
    Family{"glm_moe_dsa", read_glm_moe_dsa},
    Family{"gpt2", read_gpt2},
    Family{"gpt_bigcode", read_gpt_bigcode},
    Family{"gpt_neo", read_gpt_neo},
    Family{"gpt_neox", read_gpt_neox},
    Family{"gpt_oss", read_gpt_oss},
    Family{"gptj", read_gptj},
    Family{"granite", read_granite},
    Family{"granitemoe", read_granitemoe},
    Family{"gru", read_gru},
    Family{"kimi_k2", read_deepseek_v3},
    Family{"linear_transformer", read_linear_transformer},
    Family{"llama", read_llama},
    Family{"llama4", read_llama4},
    Family{"llama4_text", read_llama4_text},
    Family{"lstm", read_lstm},
    Family{"marian", read_marian},
    Family{"minimax_m2", read_minimax_m2},
    Family{"mistral", read_mistral},
    Family{"mixtral", read_mixtral},
    Family{"modernbert", read_modernbert},
    Family{"mpt", read_mpt},
    Family{"olmo", read_olmo},
    Family{"olmo2", read_olmo2},
    Family{"opt", read_opt},
    Family{"pegasus", read_pegasus},
    Family{"phi", read_phi},
    Family{"phi3", read_phi3},
    Family{"phimoe", read_phimoe},
    Family{"qwen2", read_qwen2},
    Family{"qwen2_moe", read_qwen2_moe},
    Family{"qwen3", read_qwen3},
    Family{"qwen3_moe", read_qwen3_moe},
    Family{"qwen3_next", read_qwen3_next},
    Family{"RefinedWeb", read_falcon},
    Family{"RefinedWebModel", read_falcon},
    Family{"rnn", read_rnn},
    Family{"roberta", read_roberta},
    Family{"smollm3", read_smollm3},
    Family{"stablelm", read_stablelm},
    Family{"starcoder2", read_starcoder2},
    Family{"t5", read_t5},
    Family{"transformer", read_transformer},
    Family{"vit", read_vit},
    Family{"whisper", read_whisper},
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
