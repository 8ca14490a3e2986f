// BERT, RoBERTa and XLM-RoBERTa, which differ in their heads.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kBert[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.position_embeddings.%", "embeddings.position_embeddings.%"},
    {"embeddings.token_type_embeddings.%", "embeddings.token_type_embeddings.%"},
    {"embeddings.norm.%", "embeddings.LayerNorm.%"},
    {"encoder.layers.attention.query.%", "encoder.layer.{}.attention.self.query.%"},
    {"encoder.layers.attention.key.%", "encoder.layer.{}.attention.self.key.%"},
    {"encoder.layers.attention.value.%", "encoder.layer.{}.attention.self.value.%"},
    {"encoder.layers.attention.output.%", "encoder.layer.{}.attention.output.dense.%"},
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.attention.output.LayerNorm.%"},
    {"encoder.layers.mlp.up.%", "encoder.layer.{}.intermediate.dense.%"},
    {"encoder.layers.mlp.down.%", "encoder.layer.{}.output.dense.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.output.LayerNorm.%"},
    {"head.pooler.dense.%", "pooler.dense.%"},
    {"head.transform.dense.%", "cls.predictions.transform.dense.%"},
    {"head.transform.norm.%", "cls.predictions.transform.LayerNorm.%"},
    {"head.language_model.weight", "cls.predictions.decoder.weight"},
    {"head.language_model.bias", "cls.predictions.bias"},
    {"head.classifier.dense.%", "classifier.dense.%"},
    {"head.classifier.%", "classifier.%"},
};

constexpr NameRule kRobertaHead[] = {
    {"head.transform.dense.%", "lm_head.dense.%"},
    {"head.transform.norm.%", "lm_head.layer_norm.%"},
    {"head.language_model.weight", "lm_head.decoder.weight"},
    {"head.language_model.bias", "lm_head.bias"},
    {"head.classifier.%", "classifier.out_proj.%"},
};

// Checkpoints converted from TensorFlow, such as bert-base-uncased, name norms as it does.
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

}  // namespace

std::span<const NameRule> bert_rules() { return kBert; }

NameTable bert_names(const ModelSpec& /*spec*/) {
  return {{kBert, kTensorflowNorms},
          {"bert."},
          {{"cls.predictions.decoder.weight", ExtraKind::tied_copy},
           {"cls.predictions.decoder.bias", ExtraKind::tied_copy},
           {"cls.", ExtraKind::unused_head, NamePart::beginning},
           {"bert.pooler.", ExtraKind::unused_head, NamePart::beginning},
           {"pooler.", ExtraKind::unused_head, NamePart::beginning}}};
}

NameTable roberta_names(const ModelSpec& /*spec*/) {
  return {{kRobertaHead, kBert},
          {"roberta."},
          {{"lm_head.decoder.weight", ExtraKind::tied_copy},
           {"lm_head.decoder.bias", ExtraKind::tied_copy},
           {"lm_head.", ExtraKind::unused_head, NamePart::beginning},
           {"roberta.pooler.", ExtraKind::unused_head, NamePart::beginning},
           {"pooler.", ExtraKind::unused_head, NamePart::beginning}}};
}

}  // namespace headroom::checkpoint
