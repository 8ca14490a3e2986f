// Llama and the decoders stored like it: Mistral, SmolLM3, Ministral 3, Seed-OSS, Arcee and
// XVERSE.
#include "../decoder.h"
#include "../family.h"
#include "mistral3.h"

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

/// Ministral 3: Mistral whose queries grow with the logarithm of their position, in units of the
/// context before YaRN (Mistral, Ministral 3; positions count from 0).
void read_ministral3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 262144;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 1e6;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  spec.decoder->self_attention.window = read_window(config, 0);
  spec.decoder->self_attention.temperature = query_scaling(config, spec.position.rope);
}

/// Seed-OSS: Llama with biases on Q, K and V, and a key of its own for the output's
/// (ByteDance Seed, Seed-OSS-36B).
void read_seed_oss(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 524288;
  defaults.bias = BiasRule::key_for_query_key_value;
  defaults.bias_when_absent = true;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.output_bias = config.flag_or({"attention_out_bias"}, false);
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  stack.dropout.attention_output = config.probability_or({"residual_dropout"}, 0);
  stack.dropout.ffn_output = stack.dropout.attention_output;
}

/// AFM-4.5B: Llama with a plain FFN and a squared ReLU (Arcee).
void read_arcee(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 4096;
  defaults.norm_eps = 1e-5;
  defaults.ffn = FfnKind::plain;
  defaults.activation = ActivationKind::relu_squared;
  read_decoder(config, spec, defaults);
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
}

/// Orion-14B: Llama with LayerNorm (arXiv 2401.12246).
void read_orion(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm = {NormKind::layer_norm, true};
  defaults.norm_eps = 1e-5;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  config.expect_flag("attention_bias", false);
  config.ignore({"max_sequence_length"});
}

/// XVERSE: Llama without biases (XVERSE-7B, -13B and -65B; XverseConfig of the vendor).
void read_xverse(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 8192;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  config.expect_number("quantization_bit", 0);
  config.ignore({"initializer_weight", "max_tokenizer_truncation"});
}

void finish_ministral3(const GgufMetadataReader& metadata, ConfigDraft& config) {
  ConfigDraft rope = config.add_object("rope_parameters");
  rope.set_text("rope_type", "yarn");
  for (const GgufKey& key :
       {GgufKey{"rope.freq_base", "rope_theta"}, GgufKey{"rope.scaling.factor", "factor"},
        GgufKey{"rope.scaling.original_context_length", "original_max_position_embeddings"},
        GgufKey{"rope.scaling.yarn_beta_fast", "beta_fast"},
        GgufKey{"rope.scaling.yarn_beta_slow", "beta_slow"},
        GgufKey{"rope.scaling.yarn_log_multiplier", "mscale_all_dim"},
        GgufKey{"attention.temperature_scale", "llama_4_scaling_beta"}}) {
    rope.copy(metadata, key.metadata, key.config);
  }
  // Equal in all published models; llama.cpp keeps one.
  rope.copy(metadata, "rope.scaling.yarn_log_multiplier", "mscale");
}

/// Some files name the whole Mistral 3, with its tower, by its text model's type.
void read_ministral3_or_whole(ConfigReader& config, ModelSpec& spec) {
  if (!config.has("text_config")) return read_ministral3(config, spec);
  mistral3_family().reader.read(config, spec);
}

}  // namespace

std::vector<Family> llama_families() {
  return {
      {.model_types = {"llama", "Yi"},
       // LLaMA: before transformers 4.28.
       .classes = either_of(either_of(llama_classes("Llama"), llama_classes("Yi")),
                            llama_classes("LLaMA")),
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
           {{.name = "smollm3", .common = gguf_rms_norm_keys(), .flags = gguf_llama_biases()}})},
      {.model_types = {"ministral3"},
       .classes = either_of(llama_classes("Ministral3"), mistral3_family().classes),
       .reader = read_ministral3_or_whole,
       .names = llama_names(),
       .gguf = GgufForm(GgufConversion::interleaved_heads, {{.name = "mistral3",
                                                             .common = gguf_rms_norm_keys(),
                                                             .head_dim = GgufHeadDim::always,
                                                             .finish = finish_ministral3}})},
      {.model_types = {"orion"},
       .classes = llama_classes("Orion"),
       .reader = read_orion,
       .names = llama_names(),
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "orion",
                          .common = gguf_layer_norm_keys(),
                          .own = {{"attention.layer_norm_epsilon", "rms_norm_eps"}},
                          .head_dim = GgufHeadDim::never}})},
      {.model_types = {"seed_oss"},
       .classes = llama_classes("SeedOss"),
       .reader = read_seed_oss,
       .names = llama_names(),
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "seed_oss",
                          .common = gguf_rms_norm_keys(),
                          .flags = {{"blk.0.attn_q.bias", "attention_bias"},
                                    {"blk.0.attn_output.bias", "attention_out_bias"}},
                          .head_dim = GgufHeadDim::always}})},
      {.model_types = {"arcee"},
       .classes = llama_classes("Arcee"),
       .reader = read_arcee,
       .names = llama_names(),
       .gguf = GgufForm(GgufConversion::interleaved_heads, {{.name = "arcee",
                                                             .common = gguf_rms_norm_keys(),
                                                             .flags = gguf_llama_biases(),
                                                             .head_dim = GgufHeadDim::always,
                                                             .finish = finish_rope_scaling}})},
      {.model_types = {"xverse"},
       .classes = llama_classes("Xverse"),
       .reader = read_xverse,
       .names = llama_names(),
       .gguf = GgufForm(
           GgufConversion::interleaved_heads,
           {{.name = "xverse", .common = gguf_rms_norm_keys(), .head_dim = GgufHeadDim::never}})}};
}

}  // namespace headroom::detail
