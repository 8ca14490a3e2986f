// Llama 4's text: experts that weigh their input, chunked attention with positions and full
// attention without (Meta, Llama 4 model card).
#include <algorithm>

#include "../decoder.h"
#include "../vision.h"

namespace headroom::detail {
namespace {

std::vector<bool> read_routed_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::int64_t step = config.count_or({"interleave_moe_layer_step"}, 1);
  const std::vector<std::int64_t> named = config.counts("moe_layers");
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const bool by_step = step > 0 && (layer + 1) % step == 0;
    const bool by_name = std::ranges::find(named, layer) != named.end();
    routed.push_back(named.empty() ? by_step : by_name);
  }
  return routed;
}

std::optional<TemperatureTuning> read_temperature(ConfigReader& config) {
  const bool tuned = config.truth_or({"attn_temperature_tuning"}, true);
  TemperatureTuning tuning;
  tuning.floor_scale = config.number_or({"floor_scale"}, tuning.floor_scale);
  tuning.scale = config.number_or({"attn_scale"}, tuning.scale);
  return tuned ? std::optional(tuning) : std::nullopt;
}

}  // namespace

void read_llama4_text(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Llama4";
  family.num_key_value_heads = 8;
  family.head_dim = 128;
  family.max_position_embeddings = 131072;
  family.norm_eps = 1e-5;
  family.rope.theta = 500000;
  family.rope.layout = RopeLayout::interleaved;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  ExpertsSpec experts = read_experts(config, {{"num_local_experts"}, 16, 1});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.shared_intermediate_size = stack.ffn.intermediate_size;
  experts.scoring = RouterScoring::sigmoid;
  experts.weighting = ExpertWeighting::input;
  stack.ffn.intermediate_size = config.size_or({"intermediate_size_mlp"}, 16384);
  set_experts(stack, read_routed_layers(config, stack.num_layers), experts);

  const std::vector<bool> turned = read_turned_layers(config, stack.num_layers);
  const std::vector<bool> chunked = read_windowed_layers(
      config, stack.num_layers,
      [&](std::int64_t layer) { return turned[static_cast<std::size_t>(layer)]; });
  if (chunked != turned) {
    config.fail("layer_types", "has chunks in other layers than those with positions",
                "leave it out, or name chunked_attention where no_rope_layers is 1");
  }
  const std::int64_t chunk = config.size_or({"attention_chunk_size"}, 8192);
  if (config.flag_or({"use_qk_norm"}, true)) {
    const NormSpec norm{NormKind::rms_norm, false, stack.norm.eps, NormWeight::none};
    const QueryKeyNormSpec both{norm, QueryKeyNormScope::each_head,
                                QueryKeyNormPlace::after_rotary};
    stack.self_attention.query_key_norm = both;
    for (LayerVariant& variant : stack.variants) variant.self_attention.query_key_norm = both;
  }
  stack.self_attention.window = {WindowKind::chunked, chunk};
  for (LayerVariant& variant : stack.variants) {
    variant.self_attention.window = stack.self_attention.window;
  }
  const std::optional<TemperatureTuning> temperature = read_temperature(config);
  vary_layers(stack, turned, [&](LayerVariant& variant) {
    variant.self_attention.rotary = false;
    variant.self_attention.query_key_norm.reset();
    variant.self_attention.window = {};
    variant.self_attention.temperature = temperature;
  });
  config.ignore({"for_llm_compression", "router_z_loss_coef"});
}

void read_llama4(ConfigReader& config, ModelSpec& spec) {
  auto text = read_text_config(config, spec, "Llama4ForConditionalGeneration");
  text.ignore({"model_type", "architectures"});
  read_llama4_text(text, spec);
  read_common_keys(text, spec);
  text.finish();
  spec.architecture = "Llama4ForConditionalGeneration";
  count_llama4_tower(config, spec);
  config.ignore({"boi_token_index", "eoi_token_index", "image_token_index", "tie_word_embeddings"});
}

}  // namespace headroom::detail
