#include "encoder_heads.h"

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

HeadSpec choice_head(ConfigReader& config) {
  ClassifierSpec choice = encoder_classifier(config, ClassifierInput::pooled_token);
  choice.num_labels = 1;
  return classifier_head(choice);
}

ModelClasses roberta_classes(const std::string& prefix) {
  const auto masked = [](ConfigReader& config) {
    return language_model_head(masked_language_model_head(config, ActivationKind::gelu));
  };
  return ModelClasses{
      {{prefix + "Model", pooler_head},
       {prefix + "ForMaskedLM", masked},
       {prefix + "ForCausalLM", masked},
       {prefix + "ForSequenceClassification", dense_classifier(ActivationKind::tanh)},
       {prefix + "ForTokenClassification", plain_classifier(ClassifierInput::every_token)},
       {prefix + "ForQuestionAnswering", span_head},
       {prefix + "ForMultipleChoice", choice_head}}};
}

}  // namespace headroom::detail
