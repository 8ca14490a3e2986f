// Multimodal models: towers, a projector, and a text model that is a family of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../family.h"

namespace headroom::detail {

/// Reads the towers and the projector, or counts their weights.
using TowerCounter = void (*)(ConfigReader& config, ModelSpec& spec);

/// How tie_word_embeddings of the whole model and of its text_config tie the head, as the class in
/// transformers 5 does. `whole`: as the whole model says, separate if it says nothing. `either`: if
/// either says so; `either_else_tied`: likewise, and if the whole model says nothing. `never`:
/// whatever they say. `whole_else_tied`: as the whole model says, else tied; files of transformers
/// 4 leave it to the text model, and so does a file of no version whose text_config says something.
/// `text`: as the text model says.
enum class HeadTying { whole, either, either_else_tied, whole_else_tied, text, never };

/// Towers of a config that describes none: those of the class's defaults, or none.
enum class AbsentTower { default_sizes, none };

/// A family of multimodal models.
struct Wrapper {
  ModelTypes model_types;
  std::vector<std::string> classes;  ///< with a language-model head
  std::vector<std::string> bare_classes;
  std::string_view text_type;  ///< model_type of a text_config that names none
  TowerCounter count_towers;
  HeadTying tying;
  /// Keys that a text_config may omit, and their values in the wrapper's class: a JSON object.
  std::string_view text_defaults = "{}";
  /// Stored names of tower and projector; those of the text model are its family's.
  OrNone<NameTable> names = None("headroom counts this model, but its towers do not run");
  AbsentTower absent_tower = AbsentTower::default_sizes;
  std::string_view text_key = "text_config";  ///< of the text model's config
  ModelClasses classifiers{{}};               ///< with another head
  /// Keys of training code in the text model's config, which no class reads.
  std::span<const std::string_view> unread_text_keys{};
};

/// The record of a multimodal family. Its text model is counted by the family that
/// text_config.model_type names; the text model's keys may also stand beside vision_config.
[[nodiscard]] Family wrapper_family(const Wrapper& wrapper);

/// Reads text model, towers and placeholders, for a family whose wrapper follows from its config.
void read_wrapped_model(ConfigReader& config, ModelSpec& spec, const Wrapper& wrapper);

/// Notes what a config that describes no tower means: sizes of `spec.architecture`, or no tower.
void note_absent_tower(const ConfigReader& config, AbsentTower absent, ModelSpec& spec);

/// Reads the placeholders of images and sound in the token ids into `spec.tower_tokens`.
void read_tower_tokens(ConfigReader& config, ModelSpec& spec);

/// Reads the text model. `spec.head` is the wrapper's class's: without a language model, it
/// replaces the text model's.
void read_wrapped_text(ConfigReader& config, ModelSpec& spec, const Wrapper& wrapper);

}  // namespace headroom::detail
