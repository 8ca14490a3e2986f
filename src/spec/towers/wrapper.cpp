#include "wrapper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "../common_keys.h"
#include "../unknown_type.h"
#include "headroom/error.h"
#include "headroom/tiled_tower.h"

namespace headroom::detail {
namespace {

const Family& text_family(ConfigReader& text, std::string_view when_absent) {
  const std::string type = text.text_or({"model_type"}, std::string(when_absent));
  const Family* const family = find_family(type);
  if (family != nullptr) return *family;
  text.fail("model_type", fmt::format("the text model \"{}\" is unknown", type),
            list_of_types_hint(type));
}

/// Returns whether the head is tied, by tie_word_embeddings of the whole model and of its text
/// model.
bool is_tied(std::optional<bool> whole, bool of_text, HeadTying tying) {
  switch (tying) {
    case HeadTying::whole:
      return whole.value_or(false);
    case HeadTying::whole_else_tied:
      return whole.value_or(of_text);
    case HeadTying::either:
      return of_text || whole.value_or(false);
    case HeadTying::either_else_tied:
      return of_text || whole.value_or(true);
    case HeadTying::never:
      return false;
    case HeadTying::text:
      return of_text;
  }
  throw Error(ErrorCode::internal, "a rule of tying that is not handled");
}

/// Returns whether a config without tie_word_embeddings leaves the tying of its head to the class
/// of transformers 5.
bool leaves_tying(ConfigReader& config, const ConfigReader& text) {
  const std::string version = config.text_or({"transformers_version"}, "");
  return version.empty() ? !text.has("tie_word_embeddings") : !version.starts_with("4.");
}

/// Ties the head of the text model, which has its own config's tie_word_embeddings.
void tie_head(ModelSpec& spec, std::optional<bool> whole, HeadTying tying) {
  if (!spec.head.language_model) return;
  WeightSharing& weight = spec.head.language_model->weight;
  weight = is_tied(whole, weight == WeightSharing::shared, tying) ? WeightSharing::shared
                                                                  : WeightSharing::separate;
}

void read_text(ConfigReader& text, ModelSpec& spec, const Family& family, const Wrapper& wrapper) {
  family.reader.read(text, spec);
  read_common_keys(text, spec);
  text.ignore({"num_image_tokens"});  // patches of an image: no size of the text model
  // Of the code that Idefics3 and SmolVLM were trained with, whose options their class lacks.
  text.expect_flag("qk_layer_norms", false);
  text.expect_flag("use_resampler", false);
  text.ignore(
      {"is_llama_config", "neftune_noise_alpha", "perceiver_config", "pixel_shuffle_factor"});
  for (const std::string_view key : wrapper.unread_text_keys) text.ignore({key});
}

/// The text model's config, with the values of the wrapper's class that it leaves out.
ConfigReader text_config_of(ConfigReader& config, ModelSpec& spec, const Wrapper& wrapper) {
  const ConfigReader own = config.object_or_empty(wrapper.text_key);
  config.ignore_keys_of(own);
  std::vector<std::string> filled;
  ConfigReader text = own.with_defaults(wrapper.text_defaults, filled);
  if (!filled.empty()) {
    spec.assumptions.push_back(fmt::format("{} omits {}: counted with the defaults of {}",
                                           wrapper.text_key, fmt::join(filled, ", "),
                                           spec.architecture));
  }
  return text;
}

/// tie_word_embeddings of the whole model, or of its class of transformers 5, which is noted.
std::optional<bool> whole_tying(ConfigReader& config, const ConfigReader& text, ModelSpec& spec,
                                const Wrapper& wrapper, std::string_view architecture) {
  if (config.has("tie_word_embeddings")) return config.flag_or({"tie_word_embeddings"}, false);
  const bool by_class = wrapper.tying == HeadTying::whole_else_tied && leaves_tying(config, text);
  if (!by_class) return std::nullopt;
  spec.assumptions.push_back(fmt::format(
      "the config leaves out tie_word_embeddings: the head is tied to the word embeddings, as {} "
      "of transformers 5 has it",
      architecture));
  return true;
}

/// Reads a text model with a config of its own. `head` is that of the whole model's class.
void read_text_object(ConfigReader& config, ModelSpec& spec, const Wrapper& wrapper,
                      HeadSpec& head) {
  const std::string architecture = spec.architecture;
  ConfigReader text = text_config_of(config, spec, wrapper);
  const Family& family = text_family(text, wrapper.text_type);
  text.use_class_sizes(text.text_or({"model_type"}, std::string(wrapper.text_type)));
  spec.text_type = family.model_types.names.front();
  read_default_class(text, spec, family.classes);
  if (head.language_model) {
    tie_head(spec, whole_tying(config, text, spec, wrapper, architecture), wrapper.tying);
  }
  read_text(text, spec, family, wrapper);
  read_padding_of_text(text, head);
  text.finish();
}

/// Published before text_config: the text model's keys stand beside vision_config.
void read_text_beside(ConfigReader& config, ModelSpec& spec, std::string_view text_type) {
  const Family& family = *find_family(text_type);
  config.use_class_sizes(text_type);
  spec.text_type = text_type;
  spec.head = family.classes.list.front().head(config);
  family.reader.read(config, spec);
}

HeadReader tied_or_not() {
  return [](ConfigReader& config) { return language_model_head(language_model_of(config, {})); };
}

ModelClasses wrapper_classes(const Wrapper& wrapper) {
  std::vector<ModelClass> classes;
  for (const std::string& name : wrapper.classes) classes.push_back({name, tied_or_not()});
  for (const std::string& name : wrapper.bare_classes) classes.push_back({name, no_head});
  return either_of({std::move(classes)}, wrapper.classifiers);
}

}  // namespace

void read_wrapped_text(ConfigReader& config, ModelSpec& spec, const Wrapper& wrapper) {
  HeadSpec head = spec.head;
  const bool replaces_head = !head.language_model;
  const std::string architecture = spec.architecture;
  const std::string dtype = read_dtype(config, spec);
  const bool beside = !config.has(wrapper.text_key) && config.has("num_hidden_layers");
  if (beside) {
    read_text_beside(config, spec, wrapper.text_type);
  } else {
    read_text_object(config, spec, wrapper, head);
  }
  if (!dtype.empty()) spec.torch_dtype = dtype;
  spec.architecture = architecture;
  if (replaces_head) spec.head = head;
}

void note_absent_tower(const ConfigReader& config, AbsentTower absent, ModelSpec& spec) {
  if (config.has("vision_config") || config.has("audio_config")) return;
  switch (absent) {
    case AbsentTower::none:
      spec.assumptions.emplace_back("the config describes no tower, and the model has none");
      return;
    case AbsentTower::default_sizes:
      break;
  }
  spec.assumptions.push_back(fmt::format(
      "the config describes no tower: the tower has the default sizes of {}", spec.architecture));
}

void read_tower_tokens(ConfigReader& config, ModelSpec& spec) {
  for (const std::string_view key :
       {"image_token_index", "image_token_id", "video_token_index", "video_token_id",
        "media_placeholder_token_id", "img_context_token_id"}) {
    if (config.has(key)) spec.tower_tokens.push_back(config.count_or({key}, 0));
  }
  for (const std::string_view key : {"audio_token_index", "audio_token_id"}) {
    if (config.has(key)) spec.audio_tokens.push_back(config.count_or({key}, 0));
  }
  spec.tower_tokens.insert(spec.tower_tokens.end(), spec.audio_tokens.begin(),
                           spec.audio_tokens.end());
  config.ignore({"vision_start_token_id", "vision_end_token_id", "vision_token_id",
                 "image_start_token_id", "image_end_token_id", "video_start_token_id",
                 "video_end_token_id", "boi_token_id", "eoi_token_id", "boi_token_index",
                 "eoi_token_index", "boa_token_id", "eoa_token_id", "eoa_token_index"});
}

void read_wrapped_model(ConfigReader& config, ModelSpec& spec, const Wrapper& wrapper) {
  read_wrapped_text(config, spec, wrapper);
  note_absent_tower(config, wrapper.absent_tower, spec);
  if (attends_to_images(spec) && wrapper.text_type != "mllama_text_model") {
    config.fail("text_config", "attends to the tiles of Mllama's own tower",
                "use a text model without cross_attention_layers");
  }
  wrapper.count_towers(config, spec);
  read_tower_tokens(config, spec);
}

Family wrapper_family(const Wrapper& wrapper) {
  const auto read = [wrapper](ConfigReader& config, ModelSpec& spec) {
    read_wrapped_model(config, spec, wrapper);
  };
  return {.model_types = wrapper.model_types,
          .classes = wrapper_classes(wrapper),
          .reader = read,
          .names = wrapper.names,
          .gguf = None("GGUF stores the towers in a separate file")};
}

}  // namespace headroom::detail
