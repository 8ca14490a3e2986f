// BERT and RoBERTa: post-norm encoders (arXiv 1810.04805, 1907.11692). RoBERTa differs in its heads
// and in position rows that no token uses.
#include "../bert.h"

namespace headroom::detail {
namespace {

ClassifierSpec classifier(ConfigReader& config, ClassifierInput input) {
  ClassifierSpec result;
  result.input = input;
  result.dropout = config.probability_or({"classifier_dropout"},
                                         config.probability_or({"hidden_dropout_prob"}, 0.1));
  return result;
}

ClassifierSpec fixed_classifier(ConfigReader& config, ClassifierInput input,
                                std::int64_t num_labels) {
  ClassifierSpec result = classifier(config, input);
  result.num_labels = num_labels;
  return result;
}

/// The heads of RoBERTa-like classes, whose names begin with `prefix`.
void read_roberta_like(ConfigReader& config, ModelSpec& spec, std::string_view prefix) {
  const auto name = [&](std::string_view suffix) {
    return std::string(prefix) + std::string(suffix);
  };
  ClassifierSpec sequence = classifier(config, ClassifierInput::first_token);
  sequence.dense = ActivationKind::tanh;
  sequence.dense_dropout = sequence.dropout;
  const std::string model = name("Model");
  const std::string masked = name("ForMaskedLM");
  const std::string sequences = name("ForSequenceClassification");
  const std::string tokens = name("ForTokenClassification");
  const std::string questions = name("ForQuestionAnswering");
  const std::string choices = name("ForMultipleChoice");
  ClassifierSpec spans = fixed_classifier(config, ClassifierInput::every_token, 2);
  spans.dropout = 0;
  read_architecture(
      config, spec,
      {{model, pooler_head()},
       {masked, language_model_head(masked_language_model_head(config, ActivationKind::gelu))},
       {sequences, classifier_head(sequence)},
       {tokens, classifier_head(classifier(config, ClassifierInput::every_token))},
       {questions, classifier_head(spans)},
       {choices, classifier_head(fixed_classifier(config, ClassifierInput::pooled_token, 1))}});
  read_bert_encoder(config, spec, ActivationKind::gelu);
  // Positions are counted on from behind the padding token's id.
  spec.position.offset = config.count_or({"pad_token_id"}, 1) + 1;
  spec.position.skips_padding = true;
}

}  // namespace

void read_bert(ConfigReader& config, ModelSpec& spec) {
  const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
  const LanguageModelHeadSpec masked = masked_language_model_head(config, activation);
  HeadSpec pretraining =
      classifier_head(fixed_classifier(config, ClassifierInput::pooled_token, 2));
  pretraining.classifier->dropout = 0;
  HeadSpec next_sentence = pretraining;
  pretraining.language_model = masked;
  ClassifierSpec spans = fixed_classifier(config, ClassifierInput::every_token, 2);
  spans.dropout = 0;
  read_architecture(config, spec,
                    {{"BertModel", pooler_head()},
                     {"BertForMaskedLM", language_model_head(masked)},
                     {"BertForPreTraining", pretraining},
                     {"BertForNextSentencePrediction", next_sentence},
                     {"BertForSequenceClassification",
                      classifier_head(classifier(config, ClassifierInput::pooled_token))},
                     {"BertForTokenClassification",
                      classifier_head(classifier(config, ClassifierInput::every_token))},
                     {"BertForQuestionAnswering", classifier_head(spans)},
                     {"BertForMultipleChoice", classifier_head(fixed_classifier(
                                                   config, ClassifierInput::pooled_token, 1))}});
  read_bert_encoder(config, spec, ActivationKind::gelu);
}

void read_roberta(ConfigReader& config, ModelSpec& spec) {
  read_roberta_like(config, spec, "Roberta");
}

void read_xlm_roberta(ConfigReader& config, ModelSpec& spec) {
  read_roberta_like(config, spec, "XLMRoberta");
}

}  // namespace headroom::detail
