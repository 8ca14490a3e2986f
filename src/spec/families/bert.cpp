// BERT and RoBERTa: post-norm encoders (arXiv 1810.04805, 1907.11692). RoBERTa has other heads and
// unused rows in the position table.
#include "../bert.h"

#include "../encoder_heads.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_roberta(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
  // Positions start after the id of the padding token.
  spec.position.offset = config.count_or({"pad_token_id"}, 1) + 1;
  spec.position.skips_padding = true;
}

HeadSpec bert_masked_head(ConfigReader& config) {
  const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
  return language_model_head(masked_language_model_head(config, activation));
}

HeadSpec next_sentence_head(ConfigReader& config) {
  ClassifierSpec next = encoder_classifier(config, ClassifierInput::pooled_token);
  next.num_labels = 2;
  next.dropout = 0;
  return classifier_head(next);
}

ModelClasses bert_classes() {
  const auto pretraining = [](ConfigReader& config) {
    HeadSpec head = next_sentence_head(config);
    head.language_model = bert_masked_head(config).language_model;
    return head;
  };
  return ModelClasses{
      {{"BertModel", pooler_head},
       {"BertForMaskedLM", bert_masked_head},
       {"BertForPreTraining", pretraining},
       {"BertForNextSentencePrediction", next_sentence_head},
       {"BertForSequenceClassification", plain_classifier(ClassifierInput::pooled_token)},
       {"BertForTokenClassification", plain_classifier(ClassifierInput::every_token)},
       {"BertForQuestionAnswering", span_head},
       {"BertForMultipleChoice", choice_head}}};
}

void read_bert(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
}

constexpr NameRule kRobertaHead[] = {
    {"head.transform.dense.%", "lm_head.dense.%"},
    {"head.transform.norm.%", "lm_head.layer_norm.%"},
    {"head.language_model.weight", "lm_head.decoder.weight"},
    {"head.language_model.bias", "lm_head.bias"},
    {"head.classifier.%", "classifier.out_proj.%"},
};

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

NameTable bert_names() {
  return {{bert_rules(), kTensorflowNorms},
          {"bert."},
          {{"cls.predictions.decoder.weight", ExtraKind::tied_copy},
           {"cls.predictions.decoder.bias", ExtraKind::tied_copy},
           {"cls.", ExtraKind::unused_head, NamePart::beginning},
           {"bert.pooler.", ExtraKind::unused_head, NamePart::beginning},
           {"pooler.", ExtraKind::unused_head, NamePart::beginning}}};
}

NameTable roberta_names() {
  return {{kRobertaHead, bert_rules()},
          {"roberta."},
          {{"lm_head.decoder.weight", ExtraKind::tied_copy},
           {"lm_head.decoder.bias", ExtraKind::tied_copy},
           {"lm_head.", ExtraKind::unused_head, NamePart::beginning},
           {"roberta.pooler.", ExtraKind::unused_head, NamePart::beginning},
           {"pooler.", ExtraKind::unused_head, NamePart::beginning}}};
}

}  // namespace

std::vector<Family> bert_families() {
  return {{.model_types = {"bert"},
           .classes = bert_classes(),
           .reader = read_bert,
           .names = bert_names(),
           .gguf = None("not supported yet")},
          {.model_types = {"roberta"},
           .classes = either_of(roberta_classes("Roberta"), roberta_classes("XLMRoberta")),
           .reader = read_roberta,
           .names = roberta_names(),
           .gguf = None("not supported yet")},
          {.model_types = {"xlm-roberta"},
           .classes = either_of(roberta_classes("XLMRoberta"), roberta_classes("Roberta")),
           .reader = read_roberta,
           .names = roberta_names(),
           .gguf = None("not supported yet")},
          {.model_types = {"camembert"},
           .classes = either_of(roberta_classes("Camembert"), roberta_classes("Roberta")),
           .reader = read_roberta,
           .names = roberta_names(),
           .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
