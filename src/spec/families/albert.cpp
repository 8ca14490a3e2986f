// ALBERT and ELECTRA: BERT with narrow embeddings that are projected; ALBERT with one set of
// weights for all layers (arXiv 1909.11942, 2003.10555).
#include "../bert.h"
#include "../family.h"

namespace headroom::detail {
namespace {

ClassifierSpec classifier(ConfigReader& config, ClassifierInput input, std::string_view dropout) {
  ClassifierSpec result;
  result.input = input;
  result.dropout =
      config.probability_or({dropout}, config.probability_or({"hidden_dropout_prob"}, 0.1));
  return result;
}

}  // namespace

void read_albert(ConfigReader& config, ModelSpec& spec) {
  HeadSpec masked =
      language_model_head(masked_language_model_head(config, ActivationKind::gelu_new));
  HeadSpec pretraining = masked;
  pretraining.pooler = true;
  ClassifierSpec order =
      classifier(config, ClassifierInput::pooled_token, "classifier_dropout_prob");
  pretraining.classifier = order;
  const auto head = [&](ClassifierInput input) {
    return classifier_head(classifier(config, input, "classifier_dropout_prob"));
  };
  read_architecture(config, spec,
                    {{"AlbertModel", pooler_head()},
                     {"AlbertForMaskedLM", masked},
                     {"AlbertForPreTraining", pretraining},
                     {"AlbertForSequenceClassification", head(ClassifierInput::pooled_token)},
                     {"AlbertForTokenClassification", head(ClassifierInput::every_token)},
                     {"AlbertForQuestionAnswering", head(ClassifierInput::every_token)}});
  read_bert_encoder(config, spec, ActivationKind::gelu_new);
  StackSpec& stack = *spec.encoder;
  spec.embedding.embedding_size = config.size_or({"embedding_size"}, 128);
  spec.embedding.projection_bias = true;
  const std::int64_t groups = config.size_or({"num_hidden_groups"}, 1);
  if (stack.num_layers % groups != 0) {
    config.fail("num_hidden_groups", "does not divide the number of layers", "use one that does");
  }
  stack.num_weight_groups = groups;
  config.expect("inner_group_num", 1);
  if (spec.head.language_model) {
    spec.head.language_model->transform = stack.ffn.activation;
  }
  config.ignore({"net_structure_type", "gap_size", "num_memory_blocks", "down_scale_factor",
                 "classifier_dropout_prob"});
}

void read_electra(ConfigReader& config, ModelSpec& spec) {
  LanguageModelHeadSpec masked = masked_language_model_head(config, ActivationKind::gelu);
  ClassifierSpec replaced = classifier(config, ClassifierInput::every_token, "classifier_dropout");
  replaced.num_labels = 1;
  replaced.dropout = 0;
  replaced.scores = true;
  replaced.dense = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
  ClassifierSpec sequence = classifier(config, ClassifierInput::first_token, "classifier_dropout");
  sequence.dense = ActivationKind::gelu;
  sequence.dense_dropout = sequence.dropout;
  const ClassifierSpec tokens =
      classifier(config, ClassifierInput::every_token, "classifier_dropout");
  ClassifierSpec spans = tokens;
  spans.dropout = 0;
  read_architecture(config, spec,
                    {{"ElectraModel", {}},
                     {"ElectraForPreTraining", classifier_head(replaced)},
                     {"ElectraForMaskedLM", language_model_head(masked)},
                     {"ElectraForSequenceClassification", classifier_head(sequence)},
                     {"ElectraForTokenClassification", classifier_head(tokens)},
                     {"ElectraForQuestionAnswering", classifier_head(spans)}});
  read_bert_encoder(config, spec, ActivationKind::gelu);
  const std::int64_t width = config.size_or({"embedding_size"}, 128);
  if (width != spec.hidden_size) {
    spec.embedding.embedding_size = width;
    spec.embedding.projection_bias = true;
  }
  config.ignore({"summary_type", "summary_use_proj", "summary_activation",
                 "summary_last_dropout"});  // multiple choice only
}

}  // namespace headroom::detail
