#include "encoder_heads.h"

#include <utility>

namespace headroom::detail {

ClassifierSpec encoder_classifier(ConfigReader& config, ClassifierInput input) {
  ClassifierSpec result;
  result.input = input;
  result.dropout = config.probability_or({"classifier_dropout"},
                                         config.probability_or({"hidden_dropout_prob"}, 0.1));
  return result;
}

HeadReader plain_classifier(ClassifierInput input) {
  return
      [input](ConfigReader& config) { return classifier_head(encoder_classifier(config, input)); };
}

HeadReader dense_classifier(ActivationKind activation) {
  return [activation](ConfigReader& config) {
    ClassifierSpec head = encoder_classifier(config, ClassifierInput::first_token);
    head.dense = activation;
    head.dense_dropout = head.dropout;
    return classifier_head(head);
  };
}

HeadSpec span_head(ConfigReader& config) {
  ClassifierSpec spans = encoder_classifier(config, ClassifierInput::every_token);
  spans.dropout = 0;
  spans.spans = true;
  return classifier_head(spans);
}

HeadSpec next_sentence_head(ConfigReader& config) {
  ClassifierSpec next = encoder_classifier(config, ClassifierInput::pooled_token);
  next.num_labels = 2;
  next.dropout = 0;
  return classifier_head(next);
}

ModelClasses pretraining_classes(const std::string& prefix, HeadReader masked) {
  const auto both = [masked = std::move(masked)](ConfigReader& config) {
    HeadSpec head = next_sentence_head(config);
    head.language_model = masked(config).language_model;
    return head;
  };
  return ModelClasses{{{prefix + "ForPreTraining", both},
                       {prefix + "ForNextSentencePrediction", next_sentence_head}}};
}

HeadSpec choice_head(ConfigReader& config) {
  ClassifierSpec choice = encoder_classifier(config, ClassifierInput::pooled_token);
  choice.num_labels = 1;
  return classifier_head(choice);
}

void count_layer_weights(ConfigReader& config, ModelSpec& spec) {
  const bool sums = config.flag_or({"use_weighted_layer_sum"}, false);
  if (!sums || !spec.head.classifier) return;
  spec.counted_only.push_back({"head.layer_weights",
                               {spec.encoder->num_layers + 1},
                               WeightRole::head,
                               1,
                               ModelPart::audio,
                               CountedUse::loaded});
  if (spec.not_run.empty()) spec.not_run = "its weighted sum of all layers has no kernel yet";
}

ModelClasses roberta_classes(const std::string& prefix) {
  // GGUF files have no pooler.
  const auto model = [](ConfigReader& config) {
    return config.flag_or({"add_pooling_layer"}, true) ? pooler_head(config) : HeadSpec{};
  };
  const auto masked = [](ConfigReader& config) {
    return language_model_head(masked_language_model_head(config, ActivationKind::gelu));
  };
  return ModelClasses{
      {{prefix + "Model", model},
       {prefix + "ForMaskedLM", masked},
       {prefix + "ForCausalLM", masked},
       {prefix + "ForSequenceClassification", dense_classifier(ActivationKind::tanh)},
       {prefix + "ForTokenClassification", plain_classifier(ClassifierInput::every_token)},
       {prefix + "ForQuestionAnswering", span_head},
       {prefix + "ForMultipleChoice", choice_head}}};
}

}  // namespace headroom::detail
