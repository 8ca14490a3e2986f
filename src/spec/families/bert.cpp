// BERT and RoBERTa: post-norm encoders (arXiv 1810.04805, 1907.11692). RoBERTa has other heads and
// unused rows in the position table; JinaBERT has ALiBi and gated networks.
#include "../bert.h"

#include "../encoder_heads.h"
#include "../family.h"
#include "jina_embeddings.h"

namespace headroom::detail {
namespace {

/// XLM-RoBERTa, or Jina Embeddings v3, whose published config has the same type.
void read_roberta(ConfigReader& config, ModelSpec& spec) {
  if (is_rotary_roberta(config)) return read_rotary_roberta(config, spec);
  read_bert_encoder(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
  // Positions start after the id of the padding token.
  spec.position.offset = config.position_after_padding();
  spec.position.skips_padding = true;
}

HeadSpec bert_masked_head(ConfigReader& config) {
  const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
  return language_model_head(masked_language_model_head(config, activation));
}

/// GGUF files have no pooler.
HeadSpec bert_model_head(ConfigReader& config) {
  return config.flag_or({"add_pooling_layer"}, true) ? pooler_head(config) : HeadSpec{};
}

ModelClasses bert_classes(const std::string& prefix) {
  const ModelClasses classes{
      {{prefix + "Model", bert_model_head},
       {prefix + "ForMaskedLM", bert_masked_head},
       {prefix + "LMHeadModel", bert_masked_head},
       {prefix + "ForSequenceClassification", plain_classifier(ClassifierInput::pooled_token)},
       {prefix + "ForTokenClassification", plain_classifier(ClassifierInput::every_token)},
       {prefix + "ForQuestionAnswering", span_head},
       {prefix + "ForMultipleChoice", choice_head}}};
  return either_of(classes, pretraining_classes(prefix, bert_masked_head));
}

/// JinaBERT: no position table, but ALiBi on both sides, and gated networks without a bias on their
/// inputs (arXiv 2310.19923, section 3.1). Published configs say "bert".
void read_jina_bert(ConfigReader& config, ModelSpec& spec) {
  read_bert_layers(config, spec, ActivationKind::gelu);
  config.ignore({"emb_pooler", "attn_implementation", "embedding_model"});
  config.expect_number("alibi_scaling", 1);
  StackSpec& stack = *spec.encoder;
  const bool alibi = config.choice_or<bool>({"position_embedding_type"},
                                            {{"absolute", false}, {"alibi", true}}, false);
  if (alibi) {
    spec.position.kind = PositionKind::none;
    stack.self_attention.alibi.kind = AlibiKind::power_below;
  }
  const auto gated =
      config.choice_or<std::optional<ActivationKind>>({"feed_forward_type"},
                                                      {{"original", std::nullopt},
                                                       {"geglu", ActivationKind::gelu},
                                                       {"reglu", ActivationKind::relu}},
                                                      std::nullopt);
  if (!gated) return;
  stack.ffn.kind = FfnKind::gated;
  stack.ffn.activation = *gated;
  stack.ffn.bias = false;
  stack.ffn.down_bias = true;
}

void read_bert(ConfigReader& config, ModelSpec& spec) {
  if (spec.architecture.starts_with("JinaBert")) return read_jina_bert(config, spec);
  read_bert_encoder(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
}

// Checkpoints converted from TensorFlow, such as bert-base-uncased, use its names for norms.
constexpr NameRule kTensorflowNorms[] = {
    {"embeddings.norm.weight", "embeddings.LayerNorm.gamma"},
    {"embeddings.norm.bias", "embeddings.LayerNorm.beta"},
    {"encoder.layers.attention_norm.weight", "encoder.layer.{}.attention.output.LayerNorm.gamma"},
    {"encoder.layers.attention_norm.bias", "encoder.layer.{}.attention.output.LayerNorm.beta"},
    {"encoder.layers.mlp_norm.weight", "encoder.layer.{}.output.LayerNorm.gamma"},
    {"encoder.layers.mlp_norm.bias", "encoder.layer.{}.output.LayerNorm.beta"},
    {"head.transform.norm.weight", "cls.predictions.transform.LayerNorm.gamma"},
    {"head.transform.norm.bias", "cls.predictions.transform.LayerNorm.beta"},
};

constexpr NameRule kJinaBert[] = {
    {"encoder.layers.mlp.gate.%", "encoder.layer.{}.mlp.gated_layers.%", part(0)},
    {"encoder.layers.mlp.up.%", "encoder.layer.{}.mlp.gated_layers.%", part(1)},
    {"encoder.layers.mlp.down.%", "encoder.layer.{}.mlp.wo.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.mlp.layernorm.%"},
};

NameTable bert_names() {
  return {{bert_rules(), kTensorflowNorms, kJinaBert},
          {"bert."},
          {{"cls.predictions.decoder.weight", ExtraKind::tied_copy},
           {"cls.predictions.bias", ExtraKind::tied_copy},
           {"cls.", ExtraKind::unused_head, NamePart::beginning},
           {"bert.pooler.", ExtraKind::unused_head, NamePart::beginning},
           {"pooler.", ExtraKind::unused_head, NamePart::beginning}}};
}

NameTable xlm_roberta_names() {
  NameTable names = roberta_names("roberta.", {rotary_roberta_rules()});
  names.extras.insert(names.extras.end(),
                      {{"weight.0.lora_A", ExtraKind::unused_part},
                       {"weight.0.lora_B", ExtraKind::unused_part},
                       {"pooler.dense.parametrizations.weight.original", ExtraKind::unused_head}});
  return names;
}

void finish_bert(const GgufMetadataReader& metadata, ConfigDraft& config) {
  config.set_count("type_vocab_size", metadata.rows("token_types.weight").value_or(0));
}

/// A gated network stands in one tensor with the other input, or beside it in older files;
/// llama.cpp's activation is then GELU.
void finish_jina(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_bert(metadata, config);
  const std::int64_t inner = metadata.count("feed_forward_length").value_or(0);
  const bool gated = metadata.has_tensor("blk.0.ffn_gate.weight") ||
                     metadata.rows("blk.0.ffn_up.weight").value_or(inner) != inner;
  config.set_text("feed_forward_type", gated ? "geglu" : "original");
}

}  // namespace

std::vector<Family> bert_families() {
  return {{.model_types = {"bert"},
           .classes = either_of(bert_classes("Bert"), bert_classes("JinaBert")),
           .reader = read_bert,
           .names = bert_names(),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "bert",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"}},
                              .constants = {{"add_pooling_layer", "false"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_bert}})},
          {.model_types = {"jina_bert"},
           .classes = bert_classes("JinaBert"),
           .reader = read_jina_bert,
           .names = bert_names(),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "jina-bert-v2",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"}},
                              .constants = {{"add_pooling_layer", "false"},
                                            {"position_embedding_type", "\"alibi\""}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_jina}})},
          {.model_types = {"roberta"},
           .classes = either_of(roberta_classes("Roberta"), roberta_classes("XLMRoberta")),
           .reader = read_roberta,
           .names = roberta_names("roberta."),
           .gguf = None("llama.cpp stores it under the name of BERT")},
          {.model_types = {"xlm-roberta"},
           .classes = either_of(roberta_classes("XLMRoberta"), roberta_classes("Roberta")),
           .reader = read_roberta,
           .names = xlm_roberta_names(),
           .gguf = None("llama.cpp stores it under the name of BERT")},
          {.model_types = {"camembert"},
           .classes = either_of(roberta_classes("Camembert"), roberta_classes("Roberta")),
           .reader = read_roberta,
           .names = roberta_names("roberta."),
           .gguf = None("llama.cpp stores it under the name of BERT")}};
}

}  // namespace headroom::detail
