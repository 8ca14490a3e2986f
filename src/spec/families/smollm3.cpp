// SmolLM3: Llama in which every fourth layer has no positions (Hugging Face, SmolLM3).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_smollm3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 4;
  defaults.max_position_embeddings = 32768;
  defaults.rope.theta = 2e6;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  const std::vector<bool> turned = read_turned_layers(config, stack.num_layers);
  const bool windowed = config.flag_or({"use_sliding_window"}, false);
  const WindowSpec window = read_window(config, 0);
  const auto has_window = [&](std::int64_t layer) {
    return windowed && !turned[static_cast<std::size_t>(layer)];
  };
  const std::vector<bool> windows = read_windowed_layers(config, stack.num_layers, has_window);
  vary_layers(stack, turned, [](LayerVariant& variant) { variant.self_attention.rotary = false; });
  set_windows(stack, windows, windowed ? window : WindowSpec{});
  config.ignore({"max_window_layers"});
}

}  // namespace

std::vector<Family> smollm3_families() {
  return {{.model_types = {"smollm3"},
           .classes = decoder_classes("SmolLM3", {.tied = true, .float32_logits = true}),
           .reader = read_smollm3,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::interleaved_heads, {{.name = "smollm3",
                                                                 .common = gguf_rms_norm_keys(),
                                                                 .flags = gguf_llama_biases()}})}};
}

}  // namespace headroom::detail
