// Qwen, the first version: Llama with fused projections, biases on Q, K and V, and a gated FFN of
// half of `intermediate_size` (arXiv 2309.16609).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_qwen1(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm_eps = config.number_or({"layer_norm_epsilon"}, 1e-6);
  defaults.max_position_embeddings = 8192;
  defaults.head_dim = config.size_or({"kv_channels"}, 128);
  defaults.bias = BiasRule::query_key_value;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.ffn.intermediate_size /= 2;  // of each of w1 and w2
  if (stack.ffn.intermediate_size == 0) {
    config.fail("intermediate_size", "has no width for each half", "use at least 2");
  }
  stack.self_attention.output_bias = !config.flag_or({"no_bias"}, true);
  stack.ffn.bias = stack.self_attention.output_bias;
  stack.dropout.embedding = config.probability_or({"emb_dropout_prob"}, 0);
  stack.dropout.attention_probs = config.probability_or({"attn_dropout_prob"}, 0);
  config.expect_flag("scale_attn_weights", true);
  // The rows of the embedding in the first versions of the class.
  config.expect_number("padded_vocab_size", static_cast<double>(spec.embedding.vocab_size));
  // Beyond the context that the model was trained with: RoPE's base and the scores grow.
  config.ignore({"use_dynamic_ntk", "use_logn_attn", "seq_length"});
  config.ignore({"bf16", "fp16", "fp32", "use_flash_attn", "softmax_in_fp32", "onnx_safe",
                 "use_cache_quantization", "use_cache_kernel", "rotary_pct", "rotary_emb_base"});
}

constexpr NameRule kQwen1[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.c_attn.%", part(0)},
    {"decoder.layers.attention.key.%", "h.{}.attn.c_attn.%", part(1)},
    {"decoder.layers.attention.value.%", "h.{}.attn.c_attn.%", part(2)},
    {"decoder.layers.attention.output.%", "h.{}.attn.c_proj.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_2.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.w1.%"},
    {"decoder.layers.mlp.gate.%", "h.{}.mlp.w2.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.c_proj.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
};

ModelClasses qwen1_classes() {
  const HeadReader language_model = [](ConfigReader& config) {
    return language_model_head(language_model_of(config, {.float32_logits = true}));
  };
  return ModelClasses{{{"QWenLMHeadModel", language_model}, {"QWenModel", no_head}}};
}

}  // namespace

std::vector<Family> qwen1_families() {
  return {{.model_types = {"qwen"},
           .classes = qwen1_classes(),
           .reader = read_qwen1,
           .names = NameTable{{kQwen1}, {"transformer."}, {}},
           .gguf = GgufForm(GgufConversion::none, {{.name = "qwen",
                                                    .common = gguf_rms_norm_keys(),
                                                    .constants = {{"no_bias", "true"}},
                                                    .head_dim = GgufHeadDim::never}})}};
}

}  // namespace headroom::detail
