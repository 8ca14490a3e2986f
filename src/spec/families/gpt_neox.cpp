// GPT-NeoX and Pythia: parallel attention and FFN with a norm each, RoPE on a quarter of each head
// (arXiv 2204.06745, 2304.01373).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_gpt_neox(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm = {NormKind::layer_norm, true};
  defaults.norm_eps = 1e-5;
  defaults.rope.partial_rotary_factor = 0.25;
  defaults.bias_when_absent = true;
  defaults.ffn = FfnKind::plain;
  defaults.activation = ActivationKind::gelu;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.ffn.bias = true;
  if (config.flag_or({"use_parallel_residual"}, true)) {
    stack.residual = ResidualKind::parallel_two_norms;
  }
  const double dropout = config.probability_or({"hidden_dropout"}, 0);
  stack.dropout.embedding = dropout;
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
}

constexpr NameRule kGptNeox[] = {
    {"embeddings.word_embeddings.%", "embed_in.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.input_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.attention.query_key_value.%",
     part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "layers.{}.attention.query_key_value.%",
     part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "layers.{}.attention.query_key_value.%",
     part(2, Stacking::per_key_value_head)},
    {"decoder.layers.attention.output.%", "layers.{}.attention.dense.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.dense_h_to_4h.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.dense_4h_to_h.%"},
    {"decoder.final_norm.%", "final_layer_norm.%"},
    {"head.language_model.%", "embed_out.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

void finish_neox(const GgufMetadataReader& metadata, ConfigDraft& config) {
  config.set_number("rotary_pct", gguf_rotary_fraction(metadata));
}

}  // namespace

std::vector<Family> gpt_neox_families() {
  return {{.model_types = {"gpt_neox"},
           .classes = llama_classes("GPTNeoX"),
           .reader = read_gpt_neox,
           .names = NameTable{{kGptNeox},
                              {"gpt_neox."},
                              {{"attn.bias", ExtraKind::causal_mask},
                               {"attn.masked_bias", ExtraKind::causal_mask},
                               {"attention.bias", ExtraKind::causal_mask},
                               {"attention.masked_bias", ExtraKind::causal_mask},
                               {"embed_out.weight", ExtraKind::tied_copy}}},
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "gptneox",
                              .own = {{"context_length", "max_position_embeddings"},
                                      {"embedding_length", "hidden_size"},
                                      {"block_count", "num_hidden_layers"},
                                      {"feed_forward_length", "intermediate_size"},
                                      {"attention.head_count", "num_attention_heads"},
                                      {"attention.layer_norm_epsilon", "layer_norm_eps"},
                                      {"use_parallel_residual", "use_parallel_residual"},
                                      {"rope.freq_base", "rotary_emb_base"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_neox}})}};
}

}  // namespace headroom::detail
