// Heads that the encoders since BERT share: classifiers of a token or of all tokens, spans,
// choices.
#pragma once

#include "config_reader.h"
#include "headroom/model_spec.h"
#include "model_class.h"

namespace headroom::detail {

/// A classifier after `classifier_dropout`, or `hidden_dropout_prob` if that is absent.
[[nodiscard]] ClassifierSpec encoder_classifier(ConfigReader& config, ClassifierInput input);

/// Reads a classifier of `input` without a dense layer of its own.
[[nodiscard]] HeadReader plain_classifier(ClassifierInput input);

/// Reads RoBERTa's classifier: a dense layer with `activation` on the first token, then the
/// projection to the labels.
[[nodiscard]] HeadReader dense_classifier(ActivationKind activation);

/// Start and end scores of every token: a projection to the config's labels, without dropout.
[[nodiscard]] HeadSpec span_head(ConfigReader& config);

/// Two scores from the pooled token: whether a sentence follows another.
[[nodiscard]] HeadSpec next_sentence_head(ConfigReader& config);

/// BERT's classes of pretraining: `prefix` + ForPreTraining, with the head of `masked` words beside
/// that of the next sentence, and ForNextSentencePrediction.
[[nodiscard]] ModelClasses pretraining_classes(const std::string& prefix, HeadReader masked);

/// One score per choice from the pooled token.
[[nodiscard]] HeadSpec choice_head(ConfigReader& config);

/// Reads use_weighted_layer_sum, by which classifiers of sound read a weighted sum of all hidden
/// states, and counts its weights: one for each layer of `spec.encoder` and one for its input.
void count_layer_weights(ConfigReader& config, ModelSpec& spec);

/// RoBERTa's classes: `prefix` + Model, ForMaskedLM, ForSequenceClassification, …
[[nodiscard]] ModelClasses roberta_classes(const std::string& prefix);

}  // namespace headroom::detail
