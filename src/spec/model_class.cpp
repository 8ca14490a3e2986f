#include "model_class.h"

#include <fmt/format.h>

#include <algorithm>

#include "similar.h"

namespace headroom::detail {

namespace {

/// The head of every class, so that the keys of the others count as known.
std::vector<HeadSpec> read_heads(ConfigReader& config, const ModelClasses& classes) {
  std::vector<HeadSpec> heads;
  heads.reserve(classes.list.size());
  for (const ModelClass& candidate : classes.list) heads.push_back(candidate.head(config));
  return heads;
}

}  // namespace

void read_default_class(ConfigReader& config, ModelSpec& spec, const ModelClasses& classes) {
  config.ignore({"architectures"});
  spec.architecture = classes.list.front().name;
  spec.head = read_heads(config, classes).front();
}

void read_class(ConfigReader& config, ModelSpec& spec, const ModelClasses& classes) {
  const std::vector<std::string> names = config.texts("architectures");
  if (names.size() > 1) {
    spec.assumptions.push_back(fmt::format(
        "architectures names {} classes: the first, {}, is counted", names.size(), names.front()));
  }
  const std::vector<HeadSpec> heads = read_heads(config, classes);
  std::string known;
  for (const ModelClass& candidate : classes.list) {
    known += (known.empty() ? "" : ", ") + candidate.name;
  }
  const std::string& name = names.empty() ? classes.list.front().name : names.front();
  // Published files and their readers differ in capitals: ExaoneMoEForCausalLM,
  // ExaoneMoeForCausalLM.
  const auto found = std::ranges::find(classes.list, lower_case(name),
                                       [](const ModelClass& one) { return lower_case(one.name); });
  if (found == classes.list.end()) {
    config.fail("architectures", fmt::format("the class \"{}\" is not supported", name),
                "use one of: " + known);
  }
  spec.architecture = found->name;
  spec.head = heads[static_cast<std::size_t>(found - classes.list.begin())];
}

ModelClasses one_class(std::string name) {
  return ModelClasses{{ModelClass{std::move(name), no_head}}};
}

ModelClasses either_of(ModelClasses first, const ModelClasses& second) {
  first.list.insert(first.list.end(), second.list.begin(), second.list.end());
  return first;
}

ModelClasses decoder_classes(const std::string& prefix, DecoderHead head,
                             std::string language_model_class) {
  if (language_model_class.empty()) language_model_class = prefix + "ForCausalLM";
  const auto language_model = [head](ConfigReader& config) {
    return language_model_head(language_model_of(config, head));
  };
  return ModelClasses{{{std::move(language_model_class), language_model},
                       {prefix + "Model", no_head},
                       {prefix + "ForSequenceClassification", last_token_classifier},
                       {prefix + "ForTokenClassification", every_token_classifier},
                       {prefix + "ForQuestionAnswering", answer_span_head}}};
}

std::int64_t label_count(ConfigReader& config, std::int64_t otherwise) {
  const auto labels = config.entries("id2label");
  const std::int64_t count = config.size_or({"num_labels"}, labels.value_or(otherwise));
  if (count == 0) {
    config.fail("id2label", "has no label, but the class scores labels",
                "list its labels, or state num_labels");
  }
  return count;
}

void read_num_labels(ConfigReader& config, ModelSpec& spec) {
  config.ignore({"id2label", "label2id", "num_labels"});
  if (!spec.head.classifier || spec.head.classifier->num_labels != 0) return;
  const std::int64_t num_labels = label_count(config, kDefaultLabels);
  spec.head.classifier->num_labels = num_labels;
  constexpr std::int64_t kEndsOfSpan = 2;
  if (spec.head.classifier->spans && num_labels != kEndsOfSpan) {
    spec.not_run = fmt::format(
        "its class scores the first and the last token of an answer, and its config has {} label{}",
        num_labels, num_labels == 1 ? "" : "s");
  }
}

HeadSpec no_head(ConfigReader& /*config*/) { return {}; }

HeadSpec pooler_head(ConfigReader& /*config*/) {
  HeadSpec head;
  head.pooler = true;
  return head;
}

HeadSpec classifier_head(const ClassifierSpec& classifier) {
  HeadSpec head;
  head.pooler = classifier.input == ClassifierInput::pooled_token;
  head.classifier = classifier;
  return head;
}

HeadSpec answer_span_head(ConfigReader& /*config*/) {
  ClassifierSpec classifier;
  classifier.input = ClassifierInput::every_token;
  classifier.num_labels = 2;
  classifier.spans = true;
  return classifier_head(classifier);
}

std::optional<std::int64_t> read_token_id(ConfigReader& config, std::string_view key) {
  const std::int64_t id = config.integers_or(key, -1).front();
  return id < 0 ? std::nullopt : std::optional(id);
}

HeadSpec every_token_classifier(ConfigReader& config) {
  ClassifierSpec classifier;
  classifier.input = ClassifierInput::every_token;
  classifier.dropout =
      config.probability_or({"classifier_dropout"}, config.probability_or({"hidden_dropout"}, 0.1));
  return classifier_head(classifier);
}

HeadSpec last_token_classifier(ConfigReader& config) {
  ClassifierSpec classifier;
  classifier.input = ClassifierInput::last_token;
  classifier.bias = false;
  classifier.token_id = read_token_id(config, "pad_token_id");
  return classifier_head(classifier);
}

void read_padding_of_text(ConfigReader& text, HeadSpec& head) {
  if (!head.classifier || head.classifier->input != ClassifierInput::last_token) return;
  head.classifier->token_id = read_token_id(text, "pad_token_id");
}

HeadSpec language_model_head(const LanguageModelHeadSpec& language_model) {
  HeadSpec head;
  head.language_model = language_model;
  return head;
}

LanguageModelHeadSpec language_model_of(ConfigReader& config, DecoderHead head) {
  const bool tied = config.flag_or({"tie_word_embeddings"}, head.tied);
  LanguageModelHeadSpec language_model;
  language_model.weight = tied ? WeightSharing::shared : WeightSharing::separate;
  language_model.float32_logits = head.float32_logits;
  return language_model;
}

LanguageModelHeadSpec masked_language_model_head(ConfigReader& config, ActivationKind activation) {
  LanguageModelHeadSpec head = language_model_of(config, {.tied = true});
  head.bias = true;
  head.transform = activation;
  return head;
}

}  // namespace headroom::detail
