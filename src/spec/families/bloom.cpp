// BLOOM: ALiBi in the place of positions, a norm behind the embedding (arXiv 2211.05100).
#include "../family.h"

namespace headroom::detail {

void read_bloom(ConfigReader& config, ModelSpec& spec) {
  LanguageModelHeadSpec language_model;
  language_model.weight = config.flag_or({"tie_word_embeddings"}, true) ? WeightSharing::shared
                                                                        : WeightSharing::separate;
  read_decoder_architecture(config, spec, "Bloom", "BloomForCausalLM", language_model);
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
  config.expect("apply_residual_connection_post_layernorm", false);
  // How the vendor's code computed the same.
  config.ignore({"slow_but_exact", "attention_softmax_in_fp32", "masked_softmax_fusion",
                 "bias_dropout_fusion", "n_inner", "offset_alibi", "seq_length", "skip_bias_add",
                 "skip_bias_add_qkv"});
  spec.decoder = stack;
}

}  // namespace headroom::detail
