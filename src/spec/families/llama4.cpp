// Llama 4's text model: router weights scale the experts' input; chunked attention with RoPE and
// full attention without (Meta, Llama 4 model card).
#include <algorithm>

#include "../decoder.h"
#include "../family.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

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
  if (tuning.floor_scale <= 0) {
    config.fail("floor_scale", "is not above 0", "write a number of positions");
  }
  tuning.scale = config.number_or({"attn_scale"}, tuning.scale);
  return tuned ? std::optional(tuning) : std::nullopt;
}

void read_llama4_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 500000;
  defaults.rope.layout = RopeLayout::interleaved;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  ExpertsSpec experts = read_experts(config, {{"num_local_experts"}, 16, 1});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.shared_intermediate_size = stack.ffn.intermediate_size;
  experts.scoring = RouterScoring::sigmoid;
  experts.weighting = ExpertWeighting::input;
  stack.ffn.intermediate_size = config.size_or_of_class({"intermediate_size_mlp"}, 16384);
  set_experts(stack, read_routed_layers(config, stack.num_layers), experts);

  const std::vector<bool> rotary = read_rotary_layers(config, stack.num_layers);
  const std::vector<bool> chunked = read_windowed_layers(
      config, stack.num_layers,
      [&](std::int64_t layer) { return rotary[static_cast<std::size_t>(layer)]; });
  if (chunked != rotary) {
    config.fail("layer_types", "has chunks in layers other than those with RoPE",
                "remove it, or write chunked_attention where no_rope_layers is 1");
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
  vary_layers(stack, rotary, [&](LayerVariant& variant) {
    variant.self_attention.rotary = false;
    variant.self_attention.query_key_norm.reset();
    variant.self_attention.window = {};
    variant.self_attention.temperature = temperature;
  });
  // The class reads no_rope_layer_interval.
  config.ignore({"for_llm_compression", "router_z_loss_coef", "nope_layer_interval"});
}

void read_llama4(ConfigReader& config, ModelSpec& spec) {
  read_text_config(config, spec, llama_classes("Llama4"), read_llama4_text);
  note_absent_tower(config, AbsentTower::default_sizes, spec);
  read_llama4_tower(config, spec);
  read_tower_tokens(config, spec);
  config.ignore({"tie_word_embeddings"});
}

constexpr NameRule kLlama4[] = {
    {"decoder.layers.mlp.gate.%", "layers.{}.feed_forward.gate_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.feed_forward.up_proj.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.feed_forward.down_proj.%"},
    {"decoder.layers.mlp.router.%", "layers.{}.feed_forward.router.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.feed_forward.experts.gate_up_proj",
     stacked_experts(transposed(part(0)))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.feed_forward.experts.gate_up_proj",
     stacked_experts(transposed(part(1)))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.feed_forward.experts.down_proj",
     stacked_experts(transposed())},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.feed_forward.shared_expert.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.feed_forward.shared_expert.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.feed_forward.shared_expert.down_proj.%"},
};

// The vision tower and its projector to the text model.
constexpr NameRule kLlama4Vision[] = {
    {"vision_tower.embeddings.patch_embeddings.%", "vision_model.patch_embedding.linear.%"},
    {"vision_tower.embeddings.class_token", "vision_model.class_embedding"},
    {"vision_tower.embeddings.position_embeddings.weight", "vision_model.positional_embedding_vlm"},
    {"vision_tower.embeddings.norm.%", "vision_model.layernorm_pre.%"},
    {"vision_tower.encoder.layers.attention.query.%",
     "vision_model.model.layers.{}.self_attn.q_proj.%"},
    {"vision_tower.encoder.layers.attention.key.%",
     "vision_model.model.layers.{}.self_attn.k_proj.%"},
    {"vision_tower.encoder.layers.attention.value.%",
     "vision_model.model.layers.{}.self_attn.v_proj.%"},
    {"vision_tower.encoder.layers.attention.output.%",
     "vision_model.model.layers.{}.self_attn.o_proj.%"},
    {"vision_tower.encoder.layers.mlp.up.%", "vision_model.model.layers.{}.mlp.fc1.%"},
    {"vision_tower.encoder.layers.mlp.down.%", "vision_model.model.layers.{}.mlp.fc2.%"},
    {"vision_tower.encoder.layers.attention_norm.%",
     "vision_model.model.layers.{}.input_layernorm.%"},
    {"vision_tower.encoder.layers.mlp_norm.%",
     "vision_model.model.layers.{}.post_attention_layernorm.%"},
    {"vision_tower.encoder.final_norm.%", "vision_model.layernorm_post.%"},
    {"projector.adapter.up.weight", "vision_model.vision_adapter.mlp.fc1.weight"},
    {"projector.adapter.down.weight", "vision_model.vision_adapter.mlp.fc2.weight"},
    {"projector.linear.weight", "multi_modal_projector.linear_1.weight"},
};

NameTable llama4_names() {
  return {{kLlama4Vision, kLlama4, llama_rules()},
          {"model.", "language_model.model.", "language_model.", "model.language_model."},
          {{"lm_head.weight", ExtraKind::tied_copy}}};
}

/// llama.cpp tells Maverick, which has no norms of queries and keys, by its experts
/// (src/llama-model.cpp, LLM_ARCH_LLAMA4).
void finish_llama4(const GgufMetadataReader& metadata, ConfigDraft& config) {
  constexpr std::int64_t kMaverickExperts = 128;
  const auto experts = metadata.count("expert_count");
  config.set_flag("use_qk_norm", experts.value_or(0) != kMaverickExperts);
}

}  // namespace

std::vector<Family> llama4_families() {
  return {{.model_types = {"llama4_text"},
           .classes = either_of(llama_classes("Llama4"), one_class("Llama4TextModel")),
           .reader = read_llama4_text,
           .names = llama4_names(),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "llama4",
                              .common = gguf_expert_keys(),
                              .own = {{"feed_forward_length", "intermediate_size_mlp"},
                                      {"expert_feed_forward_length", "intermediate_size"},
                                      {"expert_count", "num_local_experts"},
                                      {"interleave_moe_layer_step", "interleave_moe_layer_step"}},
                              // Fixed in llama.cpp.
                              .constants = {{"attention_chunk_size", "8192"}},
                              .head_dim = GgufHeadDim::always,
                              .finish = finish_llama4}})},
          {.model_types = {"llama4"},
           .classes = one_class("Llama4ForConditionalGeneration"),
           .reader = read_llama4,
           .names = llama4_names(),
           .gguf = None("GGUF stores the vision tower in a separate file")}};
}

}  // namespace headroom::detail
