// EXAONE 3: Llama with names and keys of its own (arXiv 2408.03541, 2412.04862). EXAONE 4: norms
// after each part, a norm on every query and key head; with windows, RoPE only in the windowed
// layers (arXiv 2507.11407).
#include "exaone.h"

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_exaone(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kWidening = 4;  // without intermediate_size, in ExaoneConfig
  DecoderDefaults defaults;
  DecoderDefaults::Sizes sizes;
  sizes.hidden_size = config.size({"hidden_size"});
  sizes.intermediate_size = config.size_or(
      {"intermediate_size"}, product(config, "hidden_size", sizes.hidden_size, kWidening));
  sizes.num_hidden_layers = config.layers({"num_layers", "num_hidden_layers"});
  sizes.num_attention_heads = config.size({"num_attention_heads"});
  sizes.vocab_size = config.size({"vocab_size"});
  defaults.sizes = sizes;
  defaults.norm_eps = config.number_or({"layer_norm_epsilon"}, 1e-5);
  defaults.activation = read_activation(config, {"activation_function"}, ActivationKind::silu);
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  spec.decoder->dropout.embedding = config.probability_or({"embed_dropout"}, 0);
}

/// By `layer_types`; else every `sliding_window_pattern`-th layer and the last have full attention.
std::vector<bool> read_layers_with_window(ConfigReader& config, std::int64_t num_layers) {
  if (!config.texts("layer_types").empty()) {
    config.ignore({"sliding_window_pattern"});  // a number, or "LLLG"
    return read_windowed_layers(config, num_layers, {});
  }
  const std::int64_t period = read_exaone_period(config);
  return read_windowed_layers(config, num_layers, [&](std::int64_t layer) {
    return (layer + 1) % period != 0 && layer < num_layers - 1;
  });
}

void read_exaone4(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm_eps = 1e-5;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  config.ignore({"reorder_qk_norm", "max_window_layers"});  // that no class reads
  StackSpec& stack = *spec.decoder;
  stack.norm_placement = NormPlacement::output;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  const WindowSpec window = read_window(config, 4096);
  if (window.kind == WindowKind::none) {
    config.ignore({"sliding_window_pattern", "layer_types"});
    return;
  }
  const std::vector<bool> windowed = read_layers_with_window(config, stack.num_layers);
  vary_layers(stack, windowed,
              [](LayerVariant& variant) { variant.self_attention.rotary = false; });
  set_windows(stack, windowed, window);
}

constexpr NameRule kExaone[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.attention.q_proj.%"},
    {"decoder.layers.attention.key.%", "h.{}.attn.attention.k_proj.%"},
    {"decoder.layers.attention.value.%", "h.{}.attn.attention.v_proj.%"},
    {"decoder.layers.attention.output.%", "h.{}.attn.attention.out_proj.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_2.%"},
    {"decoder.layers.mlp.gate.%", "h.{}.mlp.c_fc_0.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.c_fc_1.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.c_proj.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
};

constexpr GgufKey kExaoneKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
    {"rope.freq_base", "rope_theta"},
};

constexpr NameRule kExaone4[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_feedforward_layernorm.%"},
};

/// A file without a window is of a model without windows; the class's default has one.
void finish_exaone4(const GgufMetadataReader& metadata, ConfigDraft& config) {
  if (!config.has("sliding_window")) config.set_null("sliding_window");
  finish_windows(metadata, config);
}

}  // namespace

std::int64_t read_exaone_period(ConfigReader& config) {
  constexpr std::int64_t kPeriod = 4;
  if (!config.is_text("sliding_window_pattern")) {
    return config.size_or({"sliding_window_pattern"}, kPeriod);
  }
  const std::string pattern = config.text_or({"sliding_window_pattern"}, "");
  if (pattern.find_first_not_of('L') + 1 != pattern.size() || !pattern.ends_with('G')) {
    config.fail("sliding_window_pattern", "is not a number of L before one G",
                "list layer_types, or write a pattern such as LLLG");
  }
  return std::ssize(pattern);
}

std::vector<Family> exaone_families() {
  return {
      {.model_types = {"exaone"},
       .classes = decoder_classes("Exaone", {.tied = true, .float32_logits = true}),
       .reader = read_exaone,
       .names =
           NameTable{{kExaone}, {"transformer."}, {{"rotary.inv_freq", ExtraKind::rotary_buffer}}},
       .gguf = GgufForm(GgufConversion::none, {{.name = "exaone",
                                                .common = kExaoneKeys,
                                                .head_dim = GgufHeadDim::never,
                                                .finish = finish_rope_scaling}})},
      {.model_types = {"exaone4"},
       .classes = llama_classes("Exaone4"),
       .reader = read_exaone4,
       .names = llama_names({kExaone4, query_key_norm_rules()}),
       .gguf =
           GgufForm(GgufConversion::none, {{.name = "exaone4",
                                            .common = gguf_rms_norm_keys(),
                                            .own = {{"attention.sliding_window", "sliding_window"}},
                                            .head_dim = GgufHeadDim::always,
                                            .finish = finish_exaone4}})}};
}

}  // namespace headroom::detail
