// The classes that a config's `architectures` can name, and the head that each puts on the stacks.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Reads a class's head from the config.
using HeadReader = std::function<HeadSpec(ConfigReader& config)>;

struct ModelClass {
  std::string name;
  HeadReader head;
};

/// The classes of a family. A config without `architectures` means the first.
struct ModelClasses {
  ModelClasses(std::vector<ModelClass> classes) : list(std::move(classes)) {}
  std::vector<ModelClass> list;
};

/// Sets `spec.architecture` and `spec.head` by the class that the config names. Throws for a class
/// that is not in `classes`.
void read_class(ConfigReader& config, ModelSpec& spec, const ModelClasses& classes);

/// The one class of a layer on its own or of a wrapper, with no head.
[[nodiscard]] ModelClasses one_class(std::string name);

/// All classes of both lists: a family's own and its vendor's.
[[nodiscard]] ModelClasses either_of(ModelClasses first, const ModelClasses& second);

/// How a family ties its head to the word table when `tie_word_embeddings` is absent, and the
/// precision of its logits.
struct DecoderHead {
  bool tied = false;
  bool float32_logits = false;
};

/// The classes that Hugging Face derives for every decoder: `prefix` + ForCausalLM (or
/// `language_model_class`), Model, ForSequenceClassification, ForTokenClassification and
/// ForQuestionAnswering.
[[nodiscard]] ModelClasses decoder_classes(const std::string& prefix, DecoderHead head,
                                           std::string language_model_class = {});

/// Gives the classifier the number of labels by `num_labels` or `id2label`; 2 where the config has
/// neither, since Hugging Face leaves its default out.
void read_num_labels(ConfigReader& config, ModelSpec& spec);

/// Heads that need nothing from the config.
[[nodiscard]] HeadSpec no_head(ConfigReader& config);
[[nodiscard]] HeadSpec pooler_head(ConfigReader& config);

/// A head that is one classifier, with the pooler that its input needs.
[[nodiscard]] HeadSpec classifier_head(const ClassifierSpec& classifier);
/// A head that is one projection to the vocabulary.
[[nodiscard]] HeadSpec language_model_head(const LanguageModelHeadSpec& language_model);

/// BERT's head of masked-word prediction: a dense layer with `activation`, a norm, and a projection
/// that is the word table unless `tie_word_embeddings` is false.
[[nodiscard]] LanguageModelHeadSpec masked_language_model_head(ConfigReader& config,
                                                               ActivationKind activation);

/// A language model's projection: shared with the word table by `tie_word_embeddings`, or `tied`
/// where that key is absent.
[[nodiscard]] LanguageModelHeadSpec language_model_of(ConfigReader& config, DecoderHead head);

}  // namespace headroom::detail
