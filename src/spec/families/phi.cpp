// Phi-1 to Phi-2: one LayerNorm per layer, parallel attention and FFN, biases everywhere (arXiv
// 2306.11644).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_phi(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm = {NormKind::layer_norm, true};
  defaults.norm_eps = 1e-5;
  defaults.rope.partial_rotary_factor = 0.5;
  defaults.bias = BiasRule::all;
  defaults.ffn = FfnKind::plain;
  defaults.activation = ActivationKind::gelu_new;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.residual = ResidualKind::parallel_one_norm;
  stack.ffn.bias = true;
  if (config.flag_or({"qk_layernorm"}, false)) {
    stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  }
  if (spec.head.language_model) spec.head.language_model->bias = true;
  stack.dropout.embedding = config.probability_or({"embd_pdrop"}, 0);
  stack.dropout.attention_output = config.probability_or({"resid_pdrop"}, 0);
  stack.dropout.ffn_output = stack.dropout.attention_output;
}

/// The vendor's first format of Phi-1 and Phi-1.5: GPT-2's names of sizes.
void read_phi_msft(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kWidening = 4;
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"n_embd", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings = config.size_or({"n_positions"}, 2048);
  StackSpec stack;
  stack.num_layers = config.layers({"n_layer", "num_hidden_layers"});
  const std::int64_t heads = config.size({"n_head", "num_attention_heads"});
  stack.self_attention = multi_head_attention(config, "n_head", heads, spec.hidden_size);
  stack.self_attention.num_key_value_heads = config.size_or({"n_head_kv"}, heads);
  stack.self_attention.causal = true;
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  spec.position.rope.rotary_dim = config.size_or({"rotary_dim"}, 32);
  const std::int64_t widened = product(config, "n_embd", kWidening, spec.hidden_size);
  stack.ffn = {FfnKind::plain, config.size_or({"n_inner"}, widened),
               read_activation(config, {"activation_function"}, ActivationKind::gelu_new), true};
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_epsilon"}, 1e-5)};
  stack.final_norm = stack.norm;
  stack.residual = ResidualKind::parallel_one_norm;
  stack.dropout.embedding = config.probability_or({"embd_pdrop"}, 0);
  stack.dropout.attention_probs = config.probability_or({"attn_pdrop"}, 0);
  stack.dropout.attention_output = config.probability_or({"resid_pdrop"}, 0);
  stack.dropout.ffn_output = stack.dropout.attention_output;
  if (spec.head.language_model) spec.head.language_model->bias = true;
  config.ignore({"flash_attn", "flash_rotary", "fused_dense"});
  spec.decoder = stack;
}

constexpr NameRule kPhiMsft[] = {
    {"embeddings.word_embeddings.%", "transformer.embd.wte.%"},
    {"decoder.layers.attention_norm.%", "transformer.h.{}.ln.%"},
    {"decoder.layers.attention.query.%", "transformer.h.{}.mixer.Wqkv.%", part(0)},
    {"decoder.layers.attention.key.%", "transformer.h.{}.mixer.Wqkv.%", part(1)},
    {"decoder.layers.attention.value.%", "transformer.h.{}.mixer.Wqkv.%", part(2)},
    {"decoder.layers.attention.output.%", "transformer.h.{}.mixer.out_proj.%"},
    {"decoder.layers.mlp.up.%", "transformer.h.{}.mlp.fc1.%"},
    {"decoder.layers.mlp.down.%", "transformer.h.{}.mlp.fc2.%"},
    {"decoder.final_norm.%", "lm_head.ln.%"},
    {"head.language_model.%", "lm_head.linear.%"},
};

constexpr NameRule kPhi[] = {
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.dense.%"},
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.q_layernorm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.k_layernorm.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.fc1.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.fc2.%"},
    {"decoder.final_norm.%", "final_layernorm.%"},
};

}  // namespace

std::vector<Family> phi_families() {
  return {{.model_types = {"phi"},
           .classes = llama_classes("Phi"),
           .reader = read_phi,
           .names = llama_names({kPhi}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "phi2",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_partial_rotary}})},
          {.model_types = {"phi-msft"},
           .classes = llama_classes("Phi"),
           .reader = read_phi_msft,
           .names = NameTable{{kPhiMsft}, {}, {}},
           .gguf = None("llama.cpp stores it under the name of Phi-2")}};
}

}  // namespace headroom::detail
