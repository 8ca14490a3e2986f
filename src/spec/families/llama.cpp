// Llama and the decoders stored like it: Mistral and SmolLM3.
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// Llama: pre-norm decoder with RMSNorm, RoPE, SwiGLU and grouped-query attention (arXiv
/// 2302.13971, 2307.09288, 2407.21783).
void read_llama(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  read_decoder(config, spec, defaults);
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
  config.ignore({"max_sequence_length", "rope_interleaved", "is_llama_config"});
}

/// Mistral: Llama without biases and with a window in every layer (arXiv 2310.06825).
void read_mistral(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kWindowWhenAbsent = 4096;
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  spec.decoder->self_attention.window = read_window(config, kWindowWhenAbsent);
  config.ignore({"attention_bias", "mlp_bias"});  // the class has no biases
}

/// SmolLM3: Llama without RoPE in every fourth layer (Hugging Face, SmolLM3).
void read_smollm3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 4;
  defaults.max_position_embeddings = 32768;
  defaults.rope.theta = 2e6;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  const std::vector<bool> rotary = read_rotary_layers(config, stack.num_layers);
  const bool windowed = config.flag_or({"use_sliding_window"}, false);
  const WindowSpec window = read_window(config, 0);
  const auto has_window = [&](std::int64_t layer) {
    return windowed && !rotary[static_cast<std::size_t>(layer)];
  };
  const std::vector<bool> windows = read_windowed_layers(config, stack.num_layers, has_window);
  vary_layers(stack, rotary, [](LayerVariant& variant) { variant.self_attention.rotary = false; });
  set_windows(stack, windows, windowed ? window : WindowSpec{});
  config.ignore({"max_window_layers"});
}

}  // namespace

std::vector<Family> llama_families() {
  return {
      {.model_types = {"llama"},
       .classes = llama_classes("Llama"),
       .reader = read_llama,
       .names = llama_names(),
       .gguf = GgufForm(GgufConversion::interleaved_heads, {{.name = "llama",
                                                             .common = gguf_rms_norm_keys(),
                                                             .flags = gguf_llama_biases(),
                                                             .finish = finish_rope_scaling}})},
      {.model_types = {"mistral"},
       .classes = llama_classes("Mistral"),
       .reader = read_mistral,
       .names = llama_names(),
       .gguf = GgufForm(GgufConversion::interleaved_heads, {})},
      {.model_types = {"smollm3"},
       .classes = decoder_classes("SmolLM3", {.tied = true, .float32_logits = true}),
       .reader = read_smollm3,
       .names = llama_names(),
       .gguf = GgufForm(
           GgufConversion::interleaved_heads,
           {{.name = "smollm3", .common = gguf_rms_norm_keys(), .flags = gguf_llama_biases()}})}};
}

}  // namespace headroom::detail
