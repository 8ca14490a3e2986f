// BLOOM: ALiBi instead of positions, a norm after the embedding (arXiv 2211.05100).
#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_bloom(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"hidden_size", "n_embed", "n_embd"});
  spec.embedding.vocab_size = config.size({"vocab_size"});

  StackSpec stack;
  stack.num_layers = config.layers({"n_layer", "num_hidden_layers"});
  const std::int64_t heads = config.size({"n_head", "num_attention_heads"});
  stack.self_attention = multi_head_attention(config, "n_head", heads, spec.hidden_size);
  stack.self_attention.causal = true;
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.self_attention.alibi.kind = AlibiKind::power_below;
  stack.self_attention.softmax = SoftmaxPrecision::float32;
  stack.ffn = {FfnKind::plain, product(config, "hidden_size", 4, spec.hidden_size),
               ActivationKind::gelu_tanh, true};
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_epsilon"}, 1e-5)};
  stack.final_norm = stack.norm;
  spec.embedding.norm = stack.norm;
  const double dropout = config.probability_or({"hidden_dropout"}, 0);
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  if (config.flag_or({"apply_residual_connection_post_layernorm"}, false)) {
    stack.norm_placement = NormPlacement::residual;
  }
  // Implementation choices of the vendor's code; they change no figure.
  config.ignore({"slow_but_exact", "attention_softmax_in_fp32", "masked_softmax_fusion",
                 "bias_dropout_fusion", "n_inner", "offset_alibi", "seq_length", "skip_bias_add",
                 "skip_bias_add_qkv"});
  spec.decoder = stack;
}

}  // namespace

std::vector<Family> bloom_families() {
  return {
      {.model_types = {"bloom"},
       .classes = decoder_classes("Bloom", {.tied = true}),
       .reader = read_bloom,
       .names =
           NameTable{{bloom_rules()}, {"transformer."}, {{"lm_head.weight", ExtraKind::tied_copy}}},
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "bloom",
                          .own = {{"embedding_length", "hidden_size"},
                                  {"block_count", "n_layer"},
                                  {"attention.head_count", "n_head"},
                                  {"attention.layer_norm_epsilon", "layer_norm_epsilon"}},
                          .tie = GgufTie::always,
                          .head_dim = GgufHeadDim::never}})}};
}

}  // namespace headroom::detail
