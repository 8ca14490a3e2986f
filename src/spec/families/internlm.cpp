// InternLM: Llama with optional biases; the second stores Q, K and V fused by key-value head, the
// third has separate keys for biases (Shanghai AI Laboratory; arXiv 2403.17297).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_internlm(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  AttentionSpec& attention = spec.decoder->self_attention;
  attention.qkv_bias = config.flag_or({"bias"}, true);
  attention.output_bias = attention.qkv_bias;
  config.ignore({"rotary"});  // the base 10000, and a scaling beyond the context only
}

void read_internlm3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  // Transformers stores attention_bias for both, and mlp_bias.
  const bool all = config.flag_or({"attention_bias"}, false);
  stack.self_attention.qkv_bias = config.flag_or({"qkv_bias"}, all);
  stack.self_attention.output_bias = config.flag_or({"bias"}, all);
  stack.ffn.bias = config.flag_or({"mlp_bias"}, stack.self_attention.output_bias);
}

/// Score of a text by its last token that is no padding, which is reward_token_id. Source:
/// modeling_internlm2.py of internlm/internlm2-7b-reward.
HeadSpec end_score_head(ConfigReader& config) {
  config.ignore({"reward_token_id"});
  HeadSpec head = last_token_classifier(config);
  head.classifier->num_labels = 1;
  return head;
}

constexpr NameRule kInternlm2[] = {
    {"embeddings.word_embeddings.%", "tok_embeddings.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.attention_norm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.attention.wqkv.%",
     part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "layers.{}.attention.wqkv.%",
     part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "layers.{}.attention.wqkv.%",
     part(2, Stacking::per_key_value_head)},
    {"decoder.layers.attention.output.%", "layers.{}.attention.wo.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.ffn_norm.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.feed_forward.w1.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.feed_forward.w3.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.feed_forward.w2.%"},
    {"head.language_model.%", "output.%"},
    {"head.classifier.%", "v_head.%"},
};

}  // namespace

std::vector<Family> internlm_families() {
  return {{.model_types = {"internlm"},
           .classes = llama_classes("InternLM"),
           .reader = read_internlm,
           .names = llama_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"internlm2"},
           .classes = either_of(llama_classes("InternLM2"),
                                {{{"InternLM2ForRewardModel", end_score_head}}}),
           .reader = read_internlm,
           .names = llama_names({kInternlm2}),
           .gguf = GgufForm(GgufConversion::interleaved_heads,
                            {{.name = "internlm2",
                              .common = gguf_rms_norm_keys(),
                              .flags = {{"blk.0.attn_output.bias", "bias"}},
                              .head_dim = GgufHeadDim::never}})},
          {.model_types = {"internlm3"},
           // Transformers runs it as Llama.
           .classes = either_of(llama_classes("InternLM3"), llama_classes("Llama")),
           .reader = read_internlm3,
           .names = llama_names(),
           .gguf = None("llama.cpp stores it under the name of Llama")}};
}

}  // namespace headroom::detail
