// MPT: ALiBi, LayerNorm without bias, no biases at all (MosaicML, MPT-7B).
#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_attention(ConfigReader& config, AttentionSpec& attention) {
  config.expect_text("attn_type", "multihead_attention");
  config.expect_flag("alibi", true);
  config.expect_flag("qk_ln", false);
  attention.alibi.steepest = config.number_or({"alibi_bias_max"}, attention.alibi.steepest);
  attention.clip_qkv = config.number_or({"clip_qkv"}, 0);
  if (config.has("softmax_scale")) {
    attention.scale = AttentionScale::fixed;
    attention.fixed_scale = config.number_or({"softmax_scale"}, 1);
  }
  config.ignore({"attn_impl", "attn_pdrop", "attn_uses_sequence_id", "prefix_lm", "model_type"});
  config.finish();
}

void read_mpt(ConfigReader& config, ModelSpec& spec) {
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
  config.ignore({"expansion_ratio"});  // the class always expands by 4
  stack.norm = {NormKind::layer_norm, false, config.number_or({"layer_norm_epsilon"}, 1e-5)};
  stack.final_norm = stack.norm;
  stack.dropout.ffn_output = config.probability_or({"resid_pdrop"}, 0);
  stack.dropout.attention_output = stack.dropout.ffn_output;
  // Transformers' class supports no other values; the vendor's code builds another model.
  config.expect_flag("no_bias", true);
  config.expect_number("logit_scale", 0);
  config.ignore({"emb_pdrop", "max_seq_len", "learned_pos_emb", "embedding_fraction", "init_config",
                 "init_device", "norm_type", "tokenizer_name", "verbose", "ffn_config", "fc_type",
                 "attn_config"});
  spec.decoder = stack;
}

constexpr NameRule kMpt[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"decoder.layers.attention_norm.%", "blocks.{}.norm_1.%"},
    {"decoder.layers.mlp_norm.%", "blocks.{}.norm_2.%"},
    {"decoder.layers.attention.query.%", "blocks.{}.attn.Wqkv.%", part(0)},
    {"decoder.layers.attention.key.%", "blocks.{}.attn.Wqkv.%", part(1)},
    {"decoder.layers.attention.value.%", "blocks.{}.attn.Wqkv.%", part(2)},
    {"decoder.layers.attention.output.%", "blocks.{}.attn.out_proj.%"},
    {"decoder.layers.mlp.up.%", "blocks.{}.ffn.up_proj.%"},
    {"decoder.layers.mlp.down.%", "blocks.{}.ffn.down_proj.%"},
    {"decoder.final_norm.%", "norm_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

/// The vendor's class name for this model.
ModelClasses vendor_classes() {
  return ModelClasses{{{"MPTForCausalLM", [](ConfigReader& config) {
                          return language_model_head(language_model_of(config, {.tied = true}));
                        }}}};
}

void finish_mpt(const GgufMetadataReader& metadata, ConfigDraft& config) {
  ConfigDraft attention = config.add_object("attn_config");
  attention.set_flag("alibi", true);
  attention.copy(metadata, "attention.max_alibi_bias", "alibi_bias_max");
  attention.copy(metadata, "attention.clamp_kqv", "clip_qkv");
}

}  // namespace

std::vector<Family> mpt_families() {
  return {{.model_types = {"mpt"},
           .classes = either_of(decoder_classes("Mpt", {.tied = true}), vendor_classes()),
           .reader = read_mpt,
           .names = NameTable{{kMpt}, {"transformer."}, {{"lm_head.weight", ExtraKind::tied_copy}}},
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "mpt",
                              .own = {{"context_length", "max_seq_len"},
                                      {"embedding_length", "d_model"},
                                      {"block_count", "n_layers"},
                                      {"attention.head_count", "n_heads"},
                                      {"attention.layer_norm_epsilon", "layer_norm_epsilon"}},
                              .tie = GgufTie::always,
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_mpt}})}};
}

}  // namespace headroom::detail
