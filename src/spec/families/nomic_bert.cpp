// NomicBERT: BERT's post-norm encoder with RoPE, SwiGLU and no biases in its GEMMs (arXiv
// 2402.01613). GTE: such an encoder with biases of its attention (arXiv 2407.19669).
#include <cmath>

#include "../common_keys.h"
#include "../encoder_heads.h"
#include "../family.h"
#include "../rope.h"

namespace headroom::detail {
namespace {

ModelClasses nomic_bert_classes() {
  const auto masked = [](ConfigReader& config) {
    const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::silu);
    return language_model_head(masked_language_model_head(config, activation));
  };
  return ModelClasses{
      {{"NomicBertModel", no_head},
       {"NomicBertForMaskedLM", masked},
       {"NomicBertForPreTraining", masked},
       {"NomicBertForSequenceClassification", plain_classifier(ClassifierInput::pooled_token)},
       {"NomicBertForTokenClassification", plain_classifier(ClassifierInput::every_token)}}};
}

/// Choices of the publisher's own class that its weights do not use, and keys of its kernels.
void expect_published_choices(ConfigReader& config) {
  for (const std::string_view off :
       {"causal", "prenorm", "use_rms_norm", "parallel_block", "parallel_block_tied_norm",
        "rotary_emb_interleaved", "scale_attn_by_inverse_layer_idx"}) {
    config.expect_flag(off, false);
  }
  config.expect_flag("scale_attn_weights", true);
  config.expect_number("rotary_emb_fraction", 1);
  config.ignore({"dense_seq_output", "fused_bias_fc", "fused_dropout_add_ln", "use_flash_attn",
                 "use_xentropy", "reorder_and_upcast_attn", "max_trained_positions",
                 "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                 "summary_type", "summary_use_proj", "rotary_emb_scale_base"});
}

/// The publisher's class rounds the table up to whole multiples.
std::int64_t padded_vocabulary(ConfigReader& config) {
  const std::int64_t words = config.size({"vocab_size"});
  const std::int64_t multiple = config.size_or({"pad_vocab_size_multiple"}, 1);
  return (words + multiple - 1) / multiple * multiple;
}

FfnSpec read_swiglu(ConfigReader& config, std::int64_t hidden_size) {
  const bool up = config.flag_or({"mlp_fc1_bias"}, false);
  if (config.flag_or({"mlp_fc2_bias"}, up) != up) {
    config.fail("mlp_fc2_bias", "differs from mlp_fc1_bias", "use one value for both");
  }
  const bool is_swiglu = config.is_text("activation_function", "swiglu");
  config.expect_text("activation_function", "swiglu");
  const ActivationKind activation =
      is_swiglu ? ActivationKind::silu
                : read_activation(config, {"hidden_act"}, ActivationKind::silu);
  constexpr std::int64_t kDefaultExpansion = 4;
  const std::int64_t width = config.size_or(
      {"intermediate_size", "n_inner"}, product(config, "n_inner", kDefaultExpansion, hidden_size));
  return {FfnKind::gated, width, activation, up};
}

void read_nomic_bert(ConfigReader& config, ModelSpec& spec) {
  expect_published_choices(config);
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size({"hidden_size", "n_embd"});
  spec.embedding.vocab_size = padded_vocabulary(config);
  spec.embedding.type_vocab_size = config.count_or({"type_vocab_size"}, 2);
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings =
      config.size_or({"max_position_embeddings", "n_positions"}, 2048);

  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers", "n_layer"});
  const std::int64_t heads = config.size({"num_attention_heads", "n_head"});
  stack.self_attention =
      multi_head_attention(config, "num_attention_heads", heads, spec.hidden_size);
  config.expect_number("head_dim", static_cast<double>(stack.self_attention.head_dim));
  stack.self_attention.qkv_bias = config.flag_or({"qkv_proj_bias"}, false);
  stack.self_attention.output_bias = stack.self_attention.qkv_bias;
  RopeDefaults rope;
  rope.theta = config.number_or({"rotary_emb_base"}, 1000);
  spec.position.rope = read_rope(config, spec.position, stack.self_attention.head_dim, rope);
  config.expect_number("rotary_scaling_factor", 1);
  stack.ffn = read_swiglu(config, spec.hidden_size);
  stack.norm_placement = NormPlacement::post;
  stack.norm = {NormKind::layer_norm, true,
                config.number_or({"layer_norm_eps", "layer_norm_epsilon"}, 1e-12)};
  spec.embedding.norm = stack.norm;
  const double hidden_dropout = config.probability_or({"hidden_dropout_prob", "resid_pdrop"}, 0);
  stack.dropout.embedding = config.probability_or({"embd_pdrop"}, hidden_dropout);
  stack.dropout.attention_output = hidden_dropout;
  stack.dropout.ffn_output = hidden_dropout;
  stack.dropout.attention_probs =
      config.probability_or({"attention_probs_dropout_prob", "attn_pdrop"}, 0);
  spec.encoder = stack;
}

/// Choices of the publisher's own class (Alibaba-NLP/new-impl), and keys of its kernels.
void expect_gte_choices(ConfigReader& config) {
  config.expect_text("position_embedding_type", "rope");
  config.expect_text("layer_norm_type", "layer_norm");
  config.expect_flag("pack_qkv", true);
  config.expect_flag("logn_attention_scale", false);
  config.ignore({"unpad_inputs", "use_memory_efficient_attention", "logn_attention_clip1"});
}

/// RoPE, whose published "ntk" scaling multiplies the base by its factor f and divides all
/// frequencies by f^(2/d) (vLLM, ntk_scaling_rope.py).
void read_gte_rope(ConfigReader& config, ModelSpec& spec, std::int64_t head_dim) {
  RopeDefaults defaults;
  defaults.theta = 160000;
  auto scaling = config.object("rope_scaling");
  if (!scaling || !scaling->is_text("type", "ntk")) {
    spec.position.rope = read_rope(config, spec.position, head_dim, defaults);
    return;
  }
  scaling->expect_text("type", "ntk");
  const double factor = scaling->number_or({"factor"}, 1);
  if (scaling->has("mixed_b")) config.fail("rope_scaling", "has mixed_b", "leave it out");
  scaling->ignore({"mixed_b"});
  scaling->finish();
  RopeSpec& rope = spec.position.rope;
  rope.theta = config.number_or({"rope_theta"}, defaults.theta) * factor;
  rope.scaling = RopeScalingKind::linear;
  rope.factor = std::pow(factor, 2.0 / static_cast<double>(head_dim));
}

void read_gte(ConfigReader& config, ModelSpec& spec) {
  expect_gte_choices(config);
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size_or_of_class({"hidden_size"}, 768);
  spec.embedding.vocab_size = config.size_or_of_class({"vocab_size"}, 250048);
  spec.embedding.type_vocab_size = config.count_or({"type_vocab_size"}, 1);
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings = config.size_or({"max_position_embeddings"}, 8192);
  StackSpec stack;
  stack.num_layers = config.layers_or({"num_hidden_layers"}, 12);
  if (!config.has("num_hidden_layers")) config.note_of_class("num_hidden_layers", "12");
  stack.self_attention =
      multi_head_attention(config, "num_attention_heads",
                           config.size_or_of_class({"num_attention_heads"}, 12), spec.hidden_size);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  read_gte_rope(config, spec, stack.self_attention.head_dim);
  stack.ffn = {FfnKind::gated, config.size_or_of_class({"intermediate_size"}, 3072),
               read_activation(config, {"hidden_act"}, ActivationKind::gelu), false};
  stack.ffn.down_bias = true;
  stack.norm_placement = NormPlacement::post;
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_eps"}, 1e-12)};
  spec.embedding.norm = stack.norm;
  const double dropout = config.probability_or({"hidden_dropout_prob"}, 0.1);
  stack.dropout.embedding = dropout;
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_probs_dropout_prob"}, 0);
  spec.encoder = stack;
}

/// The class of transformers, and that of the publisher.
ModelClasses gte_classes(const std::string& prefix) {
  const auto masked = [](ConfigReader& config) {
    const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
    return language_model_head(masked_language_model_head(config, activation));
  };
  return ModelClasses{
      {{prefix + "Model", no_head},
       {prefix + "ForMaskedLM", masked},
       {prefix + "ForSequenceClassification", plain_classifier(ClassifierInput::pooled_token)},
       {prefix + "ForTokenClassification", plain_classifier(ClassifierInput::every_token)}}};
}

constexpr NameRule kNomicBert[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.token_type_embeddings.%", "embeddings.token_type_embeddings.%"},
    {"embeddings.norm.%", "emb_ln.%"},
    {"encoder.layers.attention.query.%", "encoder.layers.{}.attn.Wqkv.%", part(0)},
    {"encoder.layers.attention.key.%", "encoder.layers.{}.attn.Wqkv.%", part(1)},
    {"encoder.layers.attention.value.%", "encoder.layers.{}.attn.Wqkv.%", part(2)},
    {"encoder.layers.attention.output.%", "encoder.layers.{}.attn.out_proj.%"},
    {"encoder.layers.attention_norm.%", "encoder.layers.{}.norm1.%"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.mlp.fc11.%"},
    {"encoder.layers.mlp.gate.%", "encoder.layers.{}.mlp.fc12.%"},
    {"encoder.layers.mlp.down.%", "encoder.layers.{}.mlp.fc2.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layers.{}.norm2.%"},
    {"head.pooler.dense.%", "pooler.dense.%"},
    {"head.transform.dense.%", "cls.predictions.transform.dense.%"},
    {"head.transform.norm.%", "cls.predictions.transform.layer_norm.%"},
    {"head.language_model.weight", "cls.predictions.decoder.weight"},
    {"head.language_model.bias", "cls.predictions.decoder.bias"},
    {"head.language_model.bias", "cls.predictions.bias"},
    {"head.classifier.%", "classifier.%"},
};

constexpr NameRule kGte[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.token_type_embeddings.%", "embeddings.token_type_embeddings.%"},
    {"embeddings.norm.%", "embeddings.LayerNorm.%"},
    {"encoder.layers.attention.query.%", "encoder.layer.{}.attention.qkv_proj.%", part(0)},
    {"encoder.layers.attention.key.%", "encoder.layer.{}.attention.qkv_proj.%", part(1)},
    {"encoder.layers.attention.value.%", "encoder.layer.{}.attention.qkv_proj.%", part(2)},
    {"encoder.layers.attention.output.%", "encoder.layer.{}.attention.o_proj.%"},
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.attn_ln.%"},
    {"encoder.layers.mlp.up.%", "encoder.layer.{}.mlp.up_gate_proj.%", part(0)},
    {"encoder.layers.mlp.gate.%", "encoder.layer.{}.mlp.up_gate_proj.%", part(1)},
    {"encoder.layers.mlp.down.%", "encoder.layer.{}.mlp.down_proj.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.mlp_ln.%"},
    {"head.pooler.dense.%", "pooler.dense.%"},
    {"head.transform.dense.%", "lm_head.dense.%"},
    {"head.transform.norm.%", "lm_head.norm.%"},
    {"head.language_model.%", "lm_head.decoder.%"},
    {"head.classifier.%", "classifier.%"},
};

NameTable gte_names() {
  return {{kGte},
          {"gte.", "new."},
          {{"lm_head.", ExtraKind::unused_head, NamePart::beginning},
           {"lm_head.decoder.weight", ExtraKind::tied_copy},
           {"classifier.weight", ExtraKind::unused_head},
           {"classifier.bias", ExtraKind::unused_head},
           {"pooler.dense.weight", ExtraKind::unused_head},
           {"pooler.dense.bias", ExtraKind::unused_head}}};
}

void finish_nomic_bert(const GgufMetadataReader& metadata, ConfigDraft& config) {
  config.set_count("type_vocab_size", metadata.rows("token_types.weight").value_or(0));
}

}  // namespace

std::vector<Family> nomic_bert_families() {
  return {{.model_types = {"nomic_bert"},
           .classes = nomic_bert_classes(),
           .reader = read_nomic_bert,
           .names = NameTable{{kNomicBert},
                              {"bert.", "nomic_bert."},
                              {{"cls.predictions.decoder.weight", ExtraKind::tied_copy},
                               {"cls.predictions.bias", ExtraKind::tied_copy},
                               {"cls.", ExtraKind::unused_head, NamePart::beginning},
                               {"pooler.dense.weight", ExtraKind::unused_head},
                               {"pooler.dense.bias", ExtraKind::unused_head}}},
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "nomic-bert",
                              .own = {{"context_length", "n_positions"},
                                      {"embedding_length", "n_embd"},
                                      {"block_count", "n_layer"},
                                      {"feed_forward_length", "n_inner"},
                                      {"attention.head_count", "n_head"},
                                      {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
                                      {"rope.freq_base", "rotary_emb_base"}},
                              .flags = {{"blk.0.attn_qkv.bias", "qkv_proj_bias"},
                                        {"blk.0.ffn_up.bias", "mlp_fc1_bias"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_nomic_bert}})},
          {.model_types = {"gte", "new"},
           .classes = either_of(gte_classes("Gte"), gte_classes("New")),
           .reader = read_gte,
           .names = gte_names(),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
