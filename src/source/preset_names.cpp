// Names that people type for a preset: its repository, another case, a variant of the model.
#include "preset_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "headroom/error.h"
#include "headroom/model_source.h"
#include "similar.h"

namespace headroom {
namespace {

using detail::lower_case;

/// "Qwen/Qwen3-8B" in lower case and in parts, and Ollama's "qwen3:8b" with a hyphen.
struct ModelName {
  std::string organisation;  ///< empty if none was typed
  std::string model;
};

ModelName parts_of(std::string_view name) {
  std::string lower = lower_case(name);
  std::ranges::replace(lower, ':', '-');
  const auto slash = lower.find('/');
  if (slash == std::string::npos) return {"", lower};
  return {lower.substr(0, slash), lower.substr(slash + 1)};
}

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == '-') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

/// A number of parameters: "8b", "270m", "8x7b", "a22b".
bool is_size(const std::string& word) {
  const bool has_unit = word.ends_with('b') || word.ends_with('m');
  return has_unit && word.size() > 1 && std::isdigit(static_cast<unsigned char>(word.rbegin()[1]));
}

/// `name` without the words of its variants. "base", "it" and "pt" have other meanings where the
/// name has no number of parameters: bart-base is a size, opus-mt-en-it a language.
std::string without_variant(const std::string& name) {
  std::vector<std::string> words = words_of(name);
  const bool sized = std::ranges::any_of(words, is_size);
  std::erase_if(words, [&](const std::string& word) {
    return word == "instruct" || word == "chat" || word == "hf" || (sized && word == "base");
  });
  if (sized && !words.empty() && (words.back() == "it" || words.back() == "pt")) words.pop_back();
  return fmt::format("{}", fmt::join(words, "-"));
}

/// `name` without a last "-base", for names whose preset has none: DeepSeek-V3-Base.
std::string without_last_base(const std::string& name) {
  constexpr std::string_view kBase = "-base";
  return name.ends_with(kBase) ? name.substr(0, name.size() - kBase.size()) : name;
}

/// `name` without its variant and without separators beside a letter: "gpt-2" is "gpt2", and
/// "llama 3.1 8b" and "llama-3.1-8b" are "llama3.1-8b".
std::string joined(const std::string& name) {
  std::string dashed = name;
  std::ranges::replace_if(
      dashed, [](char c) { return c == ' ' || c == '_'; }, '-');
  const std::string model = without_variant(dashed);
  const auto is_digit = [&](std::size_t at) {
    return at < model.size() && std::isdigit(static_cast<unsigned char>(model[at])) != 0;
  };
  std::string result;
  for (std::size_t i = 0; i < model.size(); ++i) {
    const bool between_digits = i > 0 && is_digit(i - 1) && is_digit(i + 1);
    if (model[i] != '-' || between_digits) result += model[i];
  }
  return result;
}

std::string unchanged(const std::string& name) { return name; }

using Form = std::string (*)(const std::string& name);

/// Forms in which a typed name and a preset's are compared.
struct Comparison {
  Form typed;
  Form known;
};

/// Closest first.
constexpr std::array<Comparison, 4> kComparisons{{{unchanged, unchanged},
                                                  {without_variant, without_variant},
                                                  {without_last_base, unchanged},
                                                  {joined, joined}}};

/// Organisations on Hugging Face under two names, and those that publish others' files again.
struct Organisation {
  std::string_view typed;
  std::string_view publisher;  ///< empty: any
};
constexpr std::array<Organisation, 7> kOrganisations{{{"thudm", "zai-org"},
                                                      {"zai-org", "thudm"},
                                                      {"cohereforai", "coherelabs"},
                                                      {"coherelabs", "cohereforai"},
                                                      {"prajjwal1", "google"},
                                                      {"nousresearch", ""},
                                                      {"unsloth", ""}}};

/// True if a model of `publisher` may be meant by a name under `typed`.
bool may_mean(const std::string& typed, const std::string& publisher) {
  if (typed.empty() || typed == publisher) return true;
  return std::ranges::any_of(kOrganisations, [&](const Organisation& organisation) {
    return organisation.typed == typed &&
           (organisation.publisher.empty() || organisation.publisher == publisher);
  });
}

using Presets = std::vector<Preset>;

template <class Predicate>
Presets presets_where(const Presets& presets, Predicate fits) {
  Presets found;
  std::ranges::copy_if(presets, std::back_inserter(found), fits);
  return found;
}

bool is_called(const Preset& preset, const std::string& model, Form form) {
  const auto equals = [&](const std::string& name) { return form(lower_case(name)) == model; };
  return equals(preset.name) || std::ranges::any_of(preset.aliases, equals);
}

Preset only_one(Presets candidates, std::string_view typed) {
  if (candidates.size() == 1) return std::move(candidates.front());
  std::vector<std::string> names;
  for (const Preset& preset : candidates) names.push_back(preset.name);
  throw Error(ErrorCode::invalid_input, "could be several presets", std::string(typed),
              fmt::format("name one of them: {}", fmt::join(names, ", ")));
}

/// Several presets may count one repository with different heads: that with its name is meant.
Presets of_repository(const Presets& presets, std::string_view repository) {
  Presets found =
      presets_where(presets, [&](const Preset& preset) { return preset.repository == repository; });
  if (found.size() < 2) return found;
  const std::string model = parts_of(repository).model;
  Presets called = presets_where(
      found, [&](const Preset& preset) { return is_called(preset, model, unchanged); });
  return called.empty() ? found : called;
}

Presets guesses(const Presets& presets, const ModelName& typed, const Comparison& comparison) {
  const std::string model = comparison.typed(typed.model);
  const auto fits_organisation = [&](const Preset& preset) {
    return may_mean(typed.organisation, parts_of(preset.repository).organisation);
  };
  Presets called = presets_where(presets, [&](const Preset& preset) {
    return fits_organisation(preset) && is_called(preset, model, comparison.known);
  });
  if (!called.empty()) return called;
  return presets_where(presets, [&](const Preset& preset) {
    return fits_organisation(preset) && !preset.repository.empty() &&
           comparison.known(parts_of(preset.repository).model) == model;
  });
}

/// Presets that a typed name could mean, and by what.
struct Candidates {
  Presets presets;
  NameMatch match = NameMatch::guess;
};

Candidates candidates_for(std::string_view typed) {
  if (typed.empty()) return {};
  const Presets presets = list_presets();
  if (Presets same = of_repository(presets, typed); !same.empty()) {
    return {std::move(same), NameMatch::repository};
  }
  const ModelName name = parts_of(typed);
  for (const Comparison& comparison : kComparisons) {
    if (Presets found = guesses(presets, name, comparison); !found.empty()) {
      return {std::move(found), NameMatch::guess};
    }
  }
  return {};
}

/// Types and tools of quantised copies: "awq", "nvfp4", "4bit", "quantized.w8a8".
bool is_quantisation(const std::string& word) {
  static constexpr std::array<std::string_view, 17> kWords{
      "awq",  "bnb", "dynamic", "exl2",  "fp4", "fp8",   "gguf",    "gptq", "int4",
      "int8", "mlx", "mxfp4",   "nvfp4", "qat", "w4a16", "unsloth", "w8a8"};
  return std::ranges::find(kWords, word) != kWords.end() || word.ends_with("bit") ||
         word.starts_with("quantized");
}

/// The name without the words at its end that say how the model is quantised.
std::string before_quantisation(const std::string& model) {
  std::vector<std::string> words = words_of(model);
  while (!words.empty() && is_quantisation(words.back())) words.pop_back();
  return fmt::format("{}", fmt::join(words, "-"));
}

std::string question_of_quantised_copy(std::string_view typed) {
  const std::string model = parts_of(typed).model;
  const std::string before = before_quantisation(model);
  if (before == model) return {};
  const Presets found = candidates_for(before).presets;
  if (found.size() != 1) return {};
  return fmt::format("did you mean {}, the model before it was quantised?", found.front().name);
}

}  // namespace

std::vector<Preset> detail::presets_like(std::string_view typed) {
  return candidates_for(typed).presets;
}

std::string detail::hint_before_quantisation(std::string_view typed) {
  return question_of_quantised_copy(typed);
}

std::optional<MatchedPreset> match_preset(std::string_view typed) {
  if (auto preset = find_preset(typed)) return MatchedPreset{*std::move(preset), NameMatch::name};
  Candidates candidates = candidates_for(typed);
  if (candidates.presets.empty()) return std::nullopt;
  return MatchedPreset{only_one(std::move(candidates.presets), typed), candidates.match};
}

std::string note_on(const MatchedPreset& matched, std::string_view typed) {
  if (matched.match != NameMatch::guess) return {};
  const Preset& preset = matched.preset;
  const std::string repository =
      preset.repository.empty() ? "" : fmt::format(" ({})", preset.repository);
  return fmt::format("{} was taken as the preset {}{}", typed, preset.name, repository);
}

}  // namespace headroom
