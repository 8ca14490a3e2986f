// EXAONE 4: norms after each part, a norm on every query and key head; with windows, RoPE only in
// the windowed layers (arXiv 2507.11407).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// By `layer_types`; else every `sliding_window_pattern`-th layer and the last have full attention.
std::vector<bool> read_layers_with_window(ConfigReader& config, std::int64_t num_layers) {
  if (config.has("layer_types")) {
    config.ignore({"sliding_window_pattern"});  // a number, or "LLLG"
    return read_windowed_layers(config, num_layers, {});
  }
  const std::int64_t period = config.size_or({"sliding_window_pattern"}, 4);
  return read_windowed_layers(config, num_layers, [&](std::int64_t layer) {
    return (layer + 1) % period != 0 && layer < num_layers - 1;
  });
}

void read_exaone4(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm_eps = 1e-5;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
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

std::vector<Family> exaone_families() {
  return {{.model_types = {"exaone4"},
           .classes = llama_classes("Exaone4"),
           .reader = read_exaone4,
           .names = llama_names({kExaone4, query_key_norm_rules()}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "exaone4",
                              .common = gguf_rms_norm_keys(),
                              .own = {{"attention.sliding_window", "sliding_window"}},
                              .head_dim = GgufHeadDim::always,
                              .finish = finish_exaone4}})}};
}

}  // namespace headroom::detail
