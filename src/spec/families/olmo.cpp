// OLMo: norms without weights, clamped projections. OLMo 2: norms after each part, one norm over
// all queries and one over all keys. OLMo 3: windows. OLMoE and FlexOlmo: experts (arXiv
// 2402.00838, 2501.00656, 2512.13961, 2409.02060, 2507.07024).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_olmo(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm = {NormKind::layer_norm, false, 1e-5, NormWeight::none};
  defaults.norm_eps = 1e-5;
  read_decoder(config, spec, defaults);
  spec.decoder->self_attention.clip_qkv = config.number_or({"clip_qkv"}, 0);
}

void read_olmo2_with(ConfigReader& config, ModelSpec& spec, const RopeDefaults& rope) {
  DecoderDefaults defaults;
  defaults.norm_eps = 1e-5;
  defaults.rope = rope;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.norm_placement = NormPlacement::output;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm, QueryKeyNormScope::all_heads};
}

void read_olmo2(ConfigReader& config, ModelSpec& spec) { read_olmo2_with(config, spec, {}); }

/// OLMo 3: OLMo 2 with a window in all but every fourth layer. Published configs give one RoPE, and
/// only full attention scales it; transformers 5 writes one for each kind of layer.
void read_olmo3(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kFullEvery = 4;
  const bool by_layer_type = config.object_or_empty("rope_parameters").is_object("full_attention");
  read_olmo2_with(config, spec, {.by_layer_type = by_layer_type});
  StackSpec& stack = *spec.decoder;
  const WindowSpec window = read_window(config, 4096);
  const std::vector<bool> windowed = read_windowed_layers(
      config, stack.num_layers, [](std::int64_t layer) { return (layer + 1) % kFullEvery != 0; });
  set_windows(stack, windowed, window);
  RopeSpec& global = spec.position.rope;
  RopeSpec local;
  local.theta = global.theta;
  if (by_layer_type) {
    const std::int64_t head_dim = stack.self_attention.head_dim;
    local = read_rope_of(config, "sliding_attention", spec.position, head_dim, local);
    global = read_rope_of(config, "full_attention", spec.position, head_dim, global);
  }
  if (!by_layer_type && global.scaling == RopeScalingKind::none) return;
  std::vector<bool> full = windowed;
  full.flip();
  vary_layers(stack, full, [&](LayerVariant& variant) { variant.self_attention.rope = local; });
}

ExpertsSpec read_olmo_experts(ConfigReader& config, const StackSpec& stack,
                              const ExpertKeys& keys) {
  ExpertsSpec experts = read_experts(config, keys);
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.normalise = config.flag_or({"norm_topk_prob"}, false);
  return experts;
}

void read_olmoe(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 4096;
  defaults.norm_eps = 1e-5;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm, QueryKeyNormScope::all_heads};
  stack.self_attention.clip_qkv = config.number_or({"clip_qkv"}, 0);
  stack.ffn.experts =
      read_olmo_experts(config, stack, {{"num_experts", "num_local_experts"}, 64, 8});
}

void read_flex_olmo(ConfigReader& config, ModelSpec& spec) {
  read_olmo2(config, spec);
  StackSpec& stack = *spec.decoder;
  stack.ffn.experts =
      read_olmo_experts(config, stack, {{"num_experts", "num_local_experts"}, 7, 5});
}

constexpr NameRule kOlmo2[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_feedforward_layernorm.%"},
};

/// Files of OLMo 3 have the architecture of OLMo 2, and a window.
void finish_olmo3(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_rope_scaling(metadata, config);
  finish_windows(metadata, config);
}

}  // namespace

std::vector<Family> olmo_families() {
  return {
      {.model_types = {"olmo"},
       .classes = llama_classes("Olmo"),
       .reader = read_olmo,
       .names = llama_names(),
       .gguf = GgufForm(GgufConversion::interleaved_heads,
                        {{.name = "olmo",
                          .common = gguf_layer_norm_keys(),
                          .own = {{"attention.clamp_kqv", "clip_qkv"}},
                          .head_dim = GgufHeadDim::never}})},
      {.model_types = {"olmo2"},
       .classes = llama_classes("Olmo2"),
       .reader = read_olmo2,
       .names = llama_names({kOlmo2, query_key_norm_rules()}),
       .gguf = GgufForm(
           GgufConversion::none,
           {{.name = "olmo2", .common = gguf_rms_norm_keys(), .head_dim = GgufHeadDim::never}})},
      {.model_types = {"olmo3"},
       .classes = llama_classes("Olmo3"),
       .reader = read_olmo3,
       .names = llama_names({kOlmo2, query_key_norm_rules()}),
       .gguf =
           GgufForm(GgufConversion::none, {{.name = "olmo2",
                                            .needs = "attention.sliding_window",
                                            .common = gguf_rms_norm_keys(),
                                            .own = {{"attention.sliding_window", "sliding_window"}},
                                            .head_dim = GgufHeadDim::never,
                                            .finish = finish_olmo3}})},
      {.model_types = {"olmoe"},
       .classes = llama_classes("Olmoe"),
       .reader = read_olmoe,
       .names = llama_names({routed_expert_rules(), query_key_norm_rules()}),
       .gguf = GgufForm(
           GgufConversion::none,
           {{.name = "olmoe",
             .common = gguf_expert_keys(),
             .own = {{"feed_forward_length", "intermediate_size"}, {"expert_count", "num_experts"}},
             .head_dim = GgufHeadDim::never}})},
      {.model_types = {"flex_olmo"},
       .classes = llama_classes("FlexOlmo"),
       .reader = read_flex_olmo,
       .names = llama_names({kOlmo2, routed_expert_rules(), query_key_norm_rules()}),
       .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
