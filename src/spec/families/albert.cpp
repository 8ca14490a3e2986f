// ALBERT, ELECTRA and RemBERT: BERT with narrow embeddings and a projection; ALBERT shares one set
// of weights among all layers, RemBERT's head has a table of its own (arXiv 1909.11942, 2003.10555,
// 2010.12821).
#include <fmt/format.h>

#include "../bert.h"
#include "../encoder_heads.h"
#include "../family.h"
#include "../towers/tower_weights.h"

namespace headroom::detail {
namespace {

ClassifierSpec classifier(ConfigReader& config, ClassifierInput input, std::string_view dropout) {
  ClassifierSpec result;
  result.input = input;
  result.dropout =
      config.probability_or({dropout}, config.probability_or({"hidden_dropout_prob"}, 0.1));
  return result;
}

HeadSpec albert_masked_head(ConfigReader& config) {
  return language_model_head(masked_language_model_head(config, ActivationKind::gelu_new));
}

/// A classifier after ALBERT's dropout.
HeadReader albert_classifier(ClassifierInput input) {
  return [input](ConfigReader& config) {
    return classifier_head(classifier(config, input, "classifier_dropout_prob"));
  };
}

ModelClasses albert_classes() {
  const auto pretraining = [](ConfigReader& config) {
    HeadSpec head = albert_masked_head(config);
    head.pooler = true;
    head.classifier = classifier(config, ClassifierInput::pooled_token, "classifier_dropout_prob");
    return head;
  };
  const auto choice = [](ConfigReader& config) {
    ClassifierSpec one =
        classifier(config, ClassifierInput::pooled_token, "classifier_dropout_prob");
    one.num_labels = 1;
    return classifier_head(one);
  };
  return ModelClasses{
      {{"AlbertModel", pooler_head},
       {"AlbertForMaskedLM", albert_masked_head},
       {"AlbertForPreTraining", pretraining},
       {"AlbertForSequenceClassification", albert_classifier(ClassifierInput::pooled_token)},
       {"AlbertForTokenClassification", albert_classifier(ClassifierInput::every_token)},
       {"AlbertForQuestionAnswering", span_head},
       {"AlbertForMultipleChoice", choice}}};
}

/// Layers of a group in sequence, each with weights of its own; num_hidden_layers counts groups.
void set_inner_layers(ConfigReader& config, StackSpec& stack) {
  constexpr std::int64_t kMost = 16;  // that one run of layers folds
  const std::int64_t inner = config.size_or({"inner_group_num"}, 1);
  if (inner == 1) return;
  if (inner > kMost) {
    config.fail("inner_group_num", fmt::format("{} is above {}", inner, kMost),
                fmt::format("use {} or fewer", kMost));
  }
  stack.layers_of_group = inner;
  const std::int64_t layers = product(config, "num_hidden_layers", stack.num_layers, inner);
  stack.num_layers = layers;
  const LayerVariant equal{stack.self_attention, stack.ffn};
  stack.variants.assign(static_cast<std::size_t>(inner - 1), equal);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    stack.variant_of_layer.push_back(static_cast<std::size_t>(layer % inner));
  }
}

void read_albert(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu_new);
  count_unread_head_bias(spec);
  StackSpec& stack = *spec.encoder;
  spec.embedding.embedding_size = config.size_or({"embedding_size"}, 128);
  spec.embedding.projection_bias = true;
  const std::int64_t groups = config.size_or({"num_hidden_groups"}, 1);
  if (stack.num_layers % groups != 0) {
    config.fail("num_hidden_groups", "does not divide num_hidden_layers",
                "use a divisor of num_hidden_layers");
  }
  stack.num_weight_groups = groups;
  set_inner_layers(config, stack);
  if (spec.head.language_model) {
    spec.head.language_model->transform = stack.ffn.activation;
  }
  config.ignore({"net_structure_type", "gap_size", "num_memory_blocks", "down_scale_factor",
                 "classifier_dropout_prob"});
}

/// One score per token: original or replaced.
HeadSpec discriminator_head(ConfigReader& config) {
  ClassifierSpec replaced = encoder_classifier(config, ClassifierInput::every_token);
  replaced.num_labels = 1;
  replaced.dropout = 0;
  replaced.scores = true;
  replaced.dense = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
  return classifier_head(replaced);
}

ModelClasses electra_classes() {
  const auto masked = [](ConfigReader& config) {
    return language_model_head(masked_language_model_head(config, ActivationKind::gelu));
  };
  const auto choice = [](ConfigReader& config) {
    ClassifierSpec head = encoder_classifier(config, ClassifierInput::first_token);
    head.dense = ActivationKind::gelu;
    head.num_labels = 1;
    return classifier_head(head);
  };
  return ModelClasses{
      {{"ElectraModel", no_head},
       {"ElectraForPreTraining", discriminator_head},
       {"ElectraForMaskedLM", masked},
       {"ElectraForCausalLM", masked},
       {"ElectraForSequenceClassification", dense_classifier(ActivationKind::gelu)},
       {"ElectraForTokenClassification", plain_classifier(ClassifierInput::every_token)},
       {"ElectraForQuestionAnswering", span_head},
       {"ElectraForMultipleChoice", choice}}};
}

void read_electra(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
  const std::int64_t width = config.size_or({"embedding_size"}, 128);
  if (width != spec.hidden_size) {
    spec.embedding.embedding_size = width;
    spec.embedding.projection_bias = true;
  }
  config.ignore({"summary_type", "summary_use_proj", "summary_activation",
                 "summary_last_dropout"});  // only for multiple choice
}

constexpr std::string_view kRemBertMasked = "RemBertForMaskedLM";
constexpr std::string_view kRemBertCausal = "RemBertForCausalLM";

/// RemBertLMPredictionHead: wider than the words that the model reads, and not tied to them.
void count_rembert_words(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t width = config.size_or({"output_embedding_size"}, 1664);
  if (spec.architecture != kRemBertMasked && spec.architecture != kRemBertCausal) return;
  TowerWeights head(spec, ModelPart::text, CountedUse::part_not_run);
  head.linear("head.predictions.dense", spec.hidden_size, width, WeightRole::head);
  head.norm(NormKind::layer_norm, "head.predictions.norm", width);
  head.linear("head.predictions.words", width, spec.embedding.vocab_size, WeightRole::head);
  spec.not_run = "its head has no kernel yet";
}

void read_rembert(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
  spec.embedding.embedding_size = config.size_or({"input_embedding_size"}, 256);
  spec.embedding.projection_bias = true;
  config.expect_flag("tie_word_embeddings", false);
  count_rembert_words(config, spec);
}

ModelClasses rembert_classes() {
  return ModelClasses{
      {{"RemBertModel", pooler_head},
       {std::string(kRemBertMasked), no_head},
       {std::string(kRemBertCausal), no_head},
       {"RemBertForSequenceClassification", plain_classifier(ClassifierInput::pooled_token)},
       {"RemBertForTokenClassification", plain_classifier(ClassifierInput::every_token)},
       {"RemBertForQuestionAnswering", span_head},
       {"RemBertForMultipleChoice", choice_head}}};
}

constexpr NameRule kRemBert[] = {
    {"embeddings.projection.%", "encoder.embedding_hidden_mapping_in.%"},
    {"head.predictions.dense.%", "cls.predictions.dense.%"},
    {"head.predictions.norm.%", "cls.predictions.LayerNorm.%"},
    {"head.predictions.words.%", "cls.predictions.decoder.%"},
};

constexpr NameRule kAlbert[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.position_embeddings.%", "embeddings.position_embeddings.%"},
    {"embeddings.token_type_embeddings.%", "embeddings.token_type_embeddings.%"},
    {"embeddings.norm.%", "embeddings.LayerNorm.%"},
    {"embeddings.projection.%", "encoder.embedding_hidden_mapping_in.%"},
    {"encoder.layers.attention.query.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.query.%"},
    {"encoder.layers.attention.key.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.key.%"},
    {"encoder.layers.attention.value.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.value.%"},
    {"encoder.layers.attention.output.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.dense.%"},
    {"encoder.layers.attention_norm.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.attention.LayerNorm.%"},
    {"encoder.layers.mlp.up.%", "encoder.albert_layer_groups.{}.albert_layers.0.ffn.%"},
    {"encoder.layers.mlp.down.%", "encoder.albert_layer_groups.{}.albert_layers.0.ffn_output.%"},
    {"encoder.layers.mlp_norm.%",
     "encoder.albert_layer_groups.{}.albert_layers.0.full_layer_layer_norm.%"},
    {"head.pooler.dense.%", "pooler.%"},
    {"head.transform.dense.%", "predictions.dense.%"},
    {"head.transform.norm.%", "predictions.LayerNorm.%"},
    {"head.language_model.weight", "predictions.decoder.weight"},
    {"head.language_model.bias", "predictions.decoder.bias"},
    {"head.language_model.bias", "predictions.bias"},
    {"head.unread_bias", "predictions.bias"},
    {"head.classifier.%", "sop_classifier.classifier.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

/// Of a group's layers, if there are several.
constexpr NameRule kAlbertInner[] = {
    {"encoder.layers.inner.{i}.attention.query.%",
     "encoder.albert_layer_groups.{}.albert_layers.{i}.attention.query.%"},
    {"encoder.layers.inner.{i}.attention.key.%",
     "encoder.albert_layer_groups.{}.albert_layers.{i}.attention.key.%"},
    {"encoder.layers.inner.{i}.attention.value.%",
     "encoder.albert_layer_groups.{}.albert_layers.{i}.attention.value.%"},
    {"encoder.layers.inner.{i}.attention.output.%",
     "encoder.albert_layer_groups.{}.albert_layers.{i}.attention.dense.%"},
    {"encoder.layers.inner.{i}.attention_norm.%",
     "encoder.albert_layer_groups.{}.albert_layers.{i}.attention.LayerNorm.%"},
    {"encoder.layers.inner.{i}.mlp.up.%", "encoder.albert_layer_groups.{}.albert_layers.{i}.ffn.%"},
    {"encoder.layers.inner.{i}.mlp.down.%",
     "encoder.albert_layer_groups.{}.albert_layers.{i}.ffn_output.%"},
    {"encoder.layers.inner.{i}.mlp_norm.%",
     "encoder.albert_layer_groups.{}.albert_layers.{i}.full_layer_layer_norm.%"},
};

constexpr NameRule kElectra[] = {
    {"embeddings.projection.%", "embeddings_project.%"},
    {"head.transform.dense.%", "generator_predictions.dense.%"},
    {"head.transform.norm.%", "generator_predictions.LayerNorm.%"},
    {"head.language_model.%", "generator_lm_head.%"},
    {"head.classifier.dense.%", "discriminator_predictions.dense.%"},
    {"head.classifier.%", "discriminator_predictions.dense_prediction.%"},
    {"head.classifier.dense.%", "classifier.dense.%"},
    {"head.classifier.%", "classifier.out_proj.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

std::vector<Family> albert_families() {
  return {{.model_types = {"albert"},
           .classes = albert_classes(),
           .reader = read_albert,
           .names = NameTable{{kAlbertInner, kAlbert},
                              {"albert."},
                              {{"predictions.decoder.weight", ExtraKind::tied_copy},
                               {"predictions.bias", ExtraKind::tied_copy}}},
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"electra"},
           .classes = electra_classes(),
           .reader = read_electra,
           .names = NameTable{{kElectra, bert_rules()},
                              {"electra."},
                              {{"generator_lm_head.weight", ExtraKind::tied_copy}}},
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"rembert"},
           .classes = rembert_classes(),
           .reader = read_rembert,
           .names = NameTable{{kRemBert, bert_rules()},
                              {"rembert."},
                              {{"pooler.dense.weight", ExtraKind::unused_head},
                               {"pooler.dense.bias", ExtraKind::unused_head},
                               {"position_ids", ExtraKind::position_ids}}},
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
