// The classes that a config's `architectures` may name, and the head of each.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Reads the head of a class from the config.
using HeadReader = std::function<HeadSpec(ConfigReader& config)>;

struct ModelClass {
  std::string name;
  HeadReader head;
};

/// The classes of a family. The first is the default.
struct ModelClasses {
  ModelClasses(std::vector<ModelClass> classes) : list(std::move(classes)) {}
  std::vector<ModelClass> list;
};

/// Sets `spec.architecture` and `spec.head` by the class that the config names. Throws if the class
/// is not in `classes`.
void read_class(ConfigReader& config, ModelSpec& spec, const ModelClasses& classes);

/// Sets both by the first class. For a part of a model, whose class is the whole model's: the
/// config of the part may name a class of the code that it was made with.
void read_default_class(ConfigReader& config, ModelSpec& spec, const ModelClasses& classes);

/// One class without a head, for a single layer or a wrapper.
[[nodiscard]] ModelClasses one_class(std::string name);

/// The classes of both lists: the family's and its vendor's.
[[nodiscard]] ModelClasses either_of(ModelClasses first, const ModelClasses& second);

/// Default of `tie_word_embeddings`, and the precision of the logits.
struct DecoderHead {
  bool tied = false;
  bool float32_logits = false;
};

/// Hugging Face's classes of a decoder: `prefix` + ForCausalLM (or `language_model_class`), Model,
/// ForSequenceClassification, ForTokenClassification and ForQuestionAnswering.
[[nodiscard]] ModelClasses decoder_classes(const std::string& prefix, DecoderHead head,
                                           std::string language_model_class = {});

/// Labels of a classifier whose config states none (transformers, PreTrainedConfig).
inline constexpr std::int64_t kDefaultLabels = 2;

/// The number of labels that `num_labels` or `id2label` states; `otherwise` if both are absent.
/// Throws for an `id2label` without entries.
[[nodiscard]] std::int64_t label_count(ConfigReader& config, std::int64_t otherwise);

/// Sets the classifier's number of labels to label_count(), by default kDefaultLabels. A class for
/// spans is run with two labels only, as the reference code does.
void read_num_labels(ConfigReader& config, ModelSpec& spec);

/// Heads without settings.
[[nodiscard]] HeadSpec no_head(ConfigReader& config);
[[nodiscard]] HeadSpec pooler_head(ConfigReader& config);

/// A classifier, with a pooler if its input is the pooled token.
[[nodiscard]] HeadSpec classifier_head(const ClassifierSpec& classifier);
/// The first and the last token of an answer: two scores per token.
[[nodiscard]] HeadSpec answer_span_head(ConfigReader& config);
/// A decoder's classifier of whole sequences, by their last token that is not `pad_token_id`.
[[nodiscard]] HeadSpec last_token_classifier(ConfigReader& config);
/// Takes the padding token of a classifier of last tokens from the config of the text model, as a
/// multimodal model's class does.
void read_padding_of_text(ConfigReader& text, HeadSpec& head);
/// A decoder's classifier of every token.
[[nodiscard]] HeadSpec every_token_classifier(ConfigReader& config);
/// A token id, if the config gives one; some write -1 for none.
[[nodiscard]] std::optional<std::int64_t> read_token_id(ConfigReader& config, std::string_view key);
/// A projection to the vocabulary.
[[nodiscard]] HeadSpec language_model_head(const LanguageModelHeadSpec& language_model);

/// BERT's head for masked words: a dense layer with `activation`, a norm, and a projection that is
/// tied to the word embeddings unless `tie_word_embeddings` is false.
[[nodiscard]] LanguageModelHeadSpec masked_language_model_head(ConfigReader& config,
                                                               ActivationKind activation);

/// A language model's projection, tied to the word embeddings by `tie_word_embeddings`; `head.tied`
/// is the default.
[[nodiscard]] LanguageModelHeadSpec language_model_of(ConfigReader& config, DecoderHead head);

}  // namespace headroom::detail
