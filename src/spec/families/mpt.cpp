// MPT: ALiBi, norms without bias, no biases at all (MosaicML, MPT-7B).
#include "../family.h"

namespace headroom::detail {
namespace {

void read_attention(ConfigReader& config, AttentionSpec& attention) {
  config.expect("attn_type", "multihead_attention");
  config.expect("alibi", true);
  config.expect("qk_ln", false);
  attention.alibi.steepest = config.number_or({"alibi_bias_max"}, attention.alibi.steepest);
  attention.clip_qkv = config.number_or({"clip_qkv"}, 0);
  if (config.has("softmax_scale")) {
    attention.scale = AttentionScale::fixed;
    attention.fixed_scale = config.number_or({"softmax_scale"}, 1);
  }
  config.ignore({"attn_impl", "attn_pdrop", "attn_uses_sequence_id", "prefix_lm", "model_type"});
  config.finish();
}

}  // namespace

void read_mpt(ConfigReader& config, ModelSpec& spec) {
  LanguageModelHeadSpec language_model;
  language_model.weight = config.flag_or({"tie_word_embeddings"}, true) ? WeightSharing::shared
                                                                        : WeightSharing::separate;
  if (config.texts("architectures") == std::vector<std::string>{"MPTForCausalLM"}) {
    // The vendor's class of the same model.
    read_architecture(config, spec, {{"MPTForCausalLM", language_model_head(language_model)}});
  } else {
    read_decoder_architecture(config, spec, "Mpt", "MptForCausalLM", language_model);
  }
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"d_model", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});

  StackSpec stack;
  stack.num_layers = config.layers({"n_layers", "num_hidden_layers"});
  const std::int64_t heads = config.size({"n_heads", "num_attention_heads"});
  stack.self_attention = multi_head_attention(config, "n_heads", heads, spec.hidden_size);
  stack.self_attention.causal = true;
  stack.self_attention.alibi.kind = AlibiKind::power_above;
  stack.self_attention.softmax = SoftmaxPrecision::float32;
  if (auto attention = config.object("attn_config")) {
    read_attention(*attention, stack.self_attention);
    stack.dropout.attention_probs = attention->probability_or({"attn_pdrop"}, 0);
  }
  stack.ffn = {FfnKind::plain, product(config, "d_model", 4, spec.hidden_size),
               ActivationKind::gelu, false};
  stack.norm = {NormKind::layer_norm, false, config.number_or({"layer_norm_epsilon"}, 1e-5)};
  stack.final_norm = stack.norm;
  stack.dropout.ffn_output = config.probability_or({"resid_pdrop"}, 0);
  stack.dropout.attention_output = stack.dropout.ffn_output;
  // The class knows no other value; the vendor's code would build another model.
  config.expect("expansion_ratio", 4);
  config.expect("no_bias", true);
  config.expect("logit_scale", 0);
  config.ignore({"emb_pdrop", "max_seq_len", "learned_pos_emb", "embedding_fraction", "init_config",
                 "init_device", "norm_type", "tokenizer_name", "verbose", "ffn_config", "fc_type",
                 "attn_config"});
  spec.decoder = stack;
}

}  // namespace headroom::detail
