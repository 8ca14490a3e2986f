// Options that several commands share, bound to typed values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "command_line.h"
#include "headroom/plan.h"
#include "headroom/report.h"

namespace headroom::cli {

/// Words of an option and their values. Help lists the first word for each value; others are
/// alternative spellings.
template <class Value>
using Choices = std::vector<std::pair<std::string, Value>>;

/// Throws Error{invalid_input} for a word that is not among `known`, with the closest one and the
/// words of help, "a|b|c".
[[noreturn]] void refuse_word(const std::string& names, const std::string& word,
                              const std::vector<std::string>& known, const std::string& shown);

template <class Value>
[[nodiscard]] std::string listed(const Choices<Value>& choices);

/// The value of `word`. Throws a usage error naming the option.
template <class Value>
[[nodiscard]] Value value_of(const std::string& names, const std::string& word,
                             const Choices<Value>& choices) {
  std::vector<std::string> known;
  for (const auto& [text, value] : choices) {
    if (text == word) return value;
    known.push_back(text);
  }
  refuse_word(names, word, known, listed(choices));
}

/// "a|b|c": the first word for each value, which help shows and shell completion reads.
template <class Value>
[[nodiscard]] std::string listed(const Choices<Value>& choices) {
  std::string words;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const bool another_spelling = i > 0 && choices[i].second == choices[i - 1].second;
    if (!another_spelling) words += (words.empty() ? "" : "|") + choices[i].first;
  }
  return words;
}

/// Adds an option that takes one of `choices`.
template <class Value, class Target>
Option add_choice(Command command, const std::string& names, Target& target,
                  const Choices<Value>& choices, const std::string& description) {
  const auto set = [&target, names, choices](const std::string& word) {
    target = value_of(names, word, choices);
  };
  return command.add_text(names, listed(choices), set, description);
}

/// Inclusive bounds of a count.
struct CountRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

inline constexpr CountRange kThreads{1, 4096};
inline constexpr CountRange kNewTokens{1, 1'000'000};

/// "512", "8K" (8 · 1024) or "1M" (1024²) as a number; empty for other text and beyond 64 bits.
[[nodiscard]] std::optional<std::int64_t> count_of(std::string_view word);

/// Parses `word` as count_of() does. Throws a usage error if it is not one, exceeds 64 bits, or is
/// out of range.
[[nodiscard]] std::int64_t parse_count(const std::string& names, const std::string& word);
[[nodiscard]] std::int64_t parse_count(const std::string& names, const std::string& word,
                                       CountRange range);

/// Throws a usage error for a value out of range.
void require_in_range(const std::string& names, std::int64_t value, CountRange range);

using SetCount = std::function<void(std::int64_t)>;

/// Adds an option that takes an integer of 64 bits; the library checks its range.
Option add_count(Command command, const std::string& names, SetCount set,
                 const std::string& description);
/// Adds an option that takes an integer in `range`.
Option add_count(Command command, const std::string& names, CountRange range, SetCount set,
                 const std::string& description);

[[nodiscard]] Choices<DType> dtype_choices();
[[nodiscard]] Choices<AttentionImplementation> attention_choices();
[[nodiscard]] Choices<Logits> logits_choices();
[[nodiscard]] Choices<Phase> phase_choices();
[[nodiscard]] Choices<Recompute> recompute_choices();
[[nodiscard]] Choices<Kernels> kernels_choices();

/// Format and destination of a report.
struct OutputOptions {
  std::optional<Format> format;
  bool json = false;  ///< --json
  std::string file;   ///< empty: standard output
  bool quiet = false;
};

/// Adds the required argument MODEL: a preset, a config.json, a folder, or a GGUF file.
void add_model_argument(Command command, std::string& model);
/// Adds the required argument MODEL, which may be repeated.
void add_models_argument(Command command, std::vector<std::string>& models);
/// Reports with times of operators can be traces.
enum class TraceFormat { none, offered };

/// `file` are the names of the option of the file.
void add_output_options(Command command, OutputOptions& options,
                        const std::string& file = "--output,-o",
                        TraceFormat trace = TraceFormat::none);
/// Options of every forward pass.
struct InferenceOptions {
  std::vector<Option> sizes;  ///< of the input
  std::vector<Option> others;
};

/// Parses "HEIGHTxWIDTH" in pixels, or one number for both. Throws a usage error.
[[nodiscard]] ImageSize parse_image_size(const std::string& names, const std::string& word);

/// Help of the options of towers, which several commands have.
inline constexpr const char* kImagesHelp =
    "Images per sequence (multimodal models), or in total (CLIP, SigLIP) (0)";
inline constexpr const char* kAudioHelp =
    "Clips of sound per sequence (models with an audio tower) (0)";
inline constexpr const char* kAudioSecondsHelp = "Seconds of each clip (30)";

/// Adds --images, --image-size, --audio and --audio-seconds.
void add_tower_options(Command command, PlanQuery& query);

class Variations;

/// Models that a command takes: diffusion transformers are counted, but not run.
enum class ModelUse { counted, run };

/// Adds lengths and attention. Lengths may have several values, which go to `variations`.
InferenceOptions add_inference_options(Command command, WorkloadRequest& request,
                                       Variations& variations, ModelUse use);
/// Adds the inference options, types, phase, training options, and every type, scale and policy of
/// a KV-cache. Returns that of the phase.
Option add_workload_options(Command command, WorkloadRequest& request, KvCacheRequest& kv_cache,
                            Variations& variations);

/// Parses a list of "q8_0", "k=q8_0", "v=float16" and "k=q8_0,v=float16"; the last is one value.
/// Throws a usage error.
[[nodiscard]] std::vector<KvTypes> parse_kv_types(const std::string& names,
                                                  const std::string& text);
/// The words that parse_kv_types takes, for help.
[[nodiscard]] std::string kv_type_words();

/// Adds every type, scale and policy of a KV-cache to the group of this title. Returns the options.
std::vector<Option> add_kv_cache_options(Command command, KvCacheRequest& kv_cache,
                                         const char* group);

/// The format asked for by --format or --json, else the user's, else a table.
[[nodiscard]] Format format_of(const OutputOptions& options);

/// Rendering for this output: width and colours of the terminal, or neither in a file or pipe.
[[nodiscard]] RenderOptions render_options(const OutputOptions& options, Detail detail);

/// Writes `text` to the file, whole or not at all, or to standard output; then notes to standard
/// error, unless quiet. Throws Error{missing_resource}.
void write_output(const std::string& text, const std::vector<std::string>& notes,
                  const OutputOptions& options);

}  // namespace headroom::cli
