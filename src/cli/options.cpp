#include "options.h"

#include <fmt/format.h>

#include <limits>

#include "headroom/error.h"
#include "number_text.h"
#include "similar.h"
#include "type_options.h"
#include "variations.h"

namespace headroom::cli {
namespace {

/// The library checks lengths.
constexpr CountRange kAnyCount{std::numeric_limits<std::int64_t>::min(),
                               std::numeric_limits<std::int64_t>::max()};

/// Adds options of the group "Workload".
class LengthOptions {
 public:
  LengthOptions(Command command, Variations& variations)
      : command_(command), variations_(&variations) {}

  /// One that stores a length or batch size, or several, in `target`.
  template <class Target>
  Option add(const char* names, Target& target, const char* description) {
    const auto assign = [&target](std::int64_t value) { target = value; };
    return add_counts(command_, names, kAnyCount, *variations_, assign, description)
        .group("Workload");
  }

 private:
  Command command_;
  Variations* variations_;
};

}  // namespace

ImageSize parse_image_size(const std::string& names, const std::string& word) {
  const std::size_t cross = word.find('x');
  if (cross == 0 || cross + 1 == word.size()) {
    refuse_value(names, fmt::format("must be HxW, such as 512x768, not \"{}\"", word));
  }
  const std::int64_t height = parse_count(names, word.substr(0, cross));
  return {height, cross == std::string::npos ? height : parse_count(names, word.substr(cross + 1))};
}

namespace {

Option add_image_size(Command command, std::optional<ImageSize>& size, const char* description) {
  const char* const name = "--image-size";
  const auto set = [&size, name](const std::string& word) { size = parse_image_size(name, word); };
  return command.add_text(name, "HxW", set, description).group("Workload");
}

Option add_phase_and_training(Command command, WorkloadRequest& request, Variations& variations) {
  const Option phase = add_choice(command, "--phase", request.phase, phase_choices(),
                                  "Forward pass or training step (prefill)")
                           .group("Workload");
  (void)add_inference_options(command, request, variations, ModelUse::counted);
  (void)add_type_options(command, request);
  const Choices<LatentAttention> latent{{"absorbed", LatentAttention::absorbed},
                                        {"naive", LatentAttention::naive}};
  add_choice(command, "--latent", request.latent, latent,
             "Decode of multi-head latent attention: in the latent space, or with expanded keys "
             "and values in the KV-cache, as the reference code does (absorbed)")
      .group("Workload");
  add_choice(command, "--recompute", request.recompute, recompute_choices(),
             "Activation recomputation in training (none)")
      .group("Workload");
  add_choice(command, "--kernels", request.kernels, kernels_choices(),
             "Kernels of a training step: those of the reference code, or one per operator "
             "(reference)")
      .group("Workload");
  return phase;
}

}  // namespace

namespace {

/// The command that has a phase which another command lacks; empty for other words.
std::string other_phase(const std::string& word) {
  if (word == "train") return "analyze, fit and plan count training, but no command runs it.";
  if (word == "generate")
    return "measure and compare run a generation; analyze --new-tokens counts it.";
  if (word == "serve") return "fit and plan count serving: prefill and decode together.";
  if (word == "prefill" || word == "decode") {
    return "fit and plan count serving, with both prefill and decode: --phase serve.";
  }
  return {};
}

}  // namespace

void refuse_word(const std::string& names, const std::string& word,
                 const std::vector<std::string>& known, const std::string& shown) {
  std::string hint = detail::did_you_mean(word, known);
  std::string words = shown;
  for (std::size_t bar = words.find('|'); bar != std::string::npos; bar = words.find('|', bar)) {
    words.replace(bar, 1, ", ");
  }
  const std::string name = names.substr(0, names.find(','));
  const std::string elsewhere = name == "--phase" ? other_phase(word) : "";
  if (!elsewhere.empty()) hint = elsewhere;
  throw_invalid_input(
      fmt::format("{}: unknown value \"{}\"", name, word),
      fmt::format("{}{} values are {}", hint, hint.empty() ? "the" : " The", words));
}

namespace {

/// The factor that a suffix of a count stands for, as lengths of contexts are written.
std::optional<std::int64_t> factor_of(std::string_view suffix) {
  constexpr std::int64_t kKibi = 1024;
  if (suffix.empty()) return 1;
  if (suffix == "K" || suffix == "k") return kKibi;
  if (suffix == "M") return kKibi * kKibi;
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> count_of(std::string_view word) {
  const std::optional<std::int64_t> value = detail::take_integer(word);
  const std::optional<std::int64_t> factor = factor_of(word);
  std::int64_t count = 0;
  if (!value || !factor || __builtin_mul_overflow(*value, *factor, &count)) return std::nullopt;
  return count;
}

std::int64_t parse_count(const std::string& names, const std::string& word) {
  const std::optional<std::int64_t> count = count_of(word);
  if (!count) {
    refuse_value(names,
                 fmt::format("must be an integer of 64 bits, such as 512 or 8K, not \"{}\"", word));
  }
  return *count;
}

void require_in_range(const std::string& names, std::int64_t value, CountRange range) {
  if (value >= range.least && value <= range.most) return;
  refuse_value(names, fmt::format("must be from {} to {}, not {}", range.least, range.most, value));
}

std::int64_t parse_count(const std::string& names, const std::string& word, CountRange range) {
  const std::int64_t value = parse_count(names, word);
  require_in_range(names, value, range);
  return value;
}

Option add_count(Command command, const std::string& names, SetCount set,
                 const std::string& description) {
  const auto parse = [names, set = std::move(set)](const std::string& word) {
    set(parse_count(names, word));
  };
  return command.add_text(names, "N", parse, description);
}

Option add_count(Command command, const std::string& names, CountRange range, SetCount set,
                 const std::string& description) {
  const auto parse = [names, range, set = std::move(set)](const std::string& word) {
    set(parse_count(names, word, range));
  };
  return command.add_text(names, "N", parse, description);
}

Choices<DType> dtype_choices() {
  return {{"float32", DType::float32},
          {"fp32", DType::float32},
          {"f32", DType::float32},
          {"torch.float32", DType::float32},
          {"float16", DType::float16},
          {"fp16", DType::float16},
          {"f16", DType::float16},
          {"half", DType::float16},
          {"torch.float16", DType::float16},
          {"bfloat16", DType::bfloat16},
          {"bf16", DType::bfloat16},
          {"torch.bfloat16", DType::bfloat16},
          {"float8", DType::float8},
          {"fp8", DType::float8},
          {"int8", DType::int8}};
}

Choices<AttentionImplementation> attention_choices() {
  return {{"eager", AttentionImplementation::eager}, {"fused", AttentionImplementation::fused}};
}

Choices<Phase> phase_choices() {
  return {{"prefill", Phase::prefill}, {"decode", Phase::decode}, {"train", Phase::train}};
}

Choices<Logits> logits_choices() { return {{"all", Logits::all}, {"last", Logits::last}}; }

Choices<Recompute> recompute_choices() {
  return {
      {"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}};
}

Choices<Kernels> kernels_choices() {
  return {{"reference", Kernels::reference}, {"fused", Kernels::fused}};
}

void add_model_argument(Command command, std::string& model) {
  command.add_argument(
      "model", "MODEL", [&model](const std::string& text) { model = text; },
      "A preset, a config.json, a folder with one, or a GGUF file");
}

void add_models_argument(Command command, std::vector<std::string>& models) {
  command.add_arguments("model", "MODEL", models, 0,
                        "A preset, a config.json, a folder with one, or a GGUF file; or several");
}

void add_output_options(Command command, OutputOptions& options, const std::string& file,
                        TraceFormat trace) {
  Choices<Format> formats{{"table", Format::table}, {"json", Format::json},
                          {"csv", Format::csv},     {"markdown", Format::markdown},
                          {"md", Format::markdown}, {"html", Format::html}};
  if (trace == TraceFormat::offered) formats.emplace_back("trace", Format::trace);
  const Option format =
      add_choice(command, "--format,-f", options.format, formats, "Format of the report (table)");
  command.add_flag("--json", options.json, "Short for --format json").excludes(format);
  command.add_text(file, "FILE", options.file, "Write to a file, completely or not at all");
  command.add_flag("--quiet,-q", options.quiet, "No notes on standard error");
}

void add_tower_options(Command command, PlanQuery& query) {
  add_count(
      command, "--images", [&query](std::int64_t n) { query.images = n; }, kImagesHelp)
      .group("Workload");
  (void)add_image_size(
      command, query.image_size,
      "Pixels of each image, before the family's preprocessing (the tower's size)");
  add_count(
      command, "--audio", [&query](std::int64_t n) { query.audio = n; }, kAudioHelp)
      .group("Workload");
  add_count(
      command, "--audio-seconds", [&query](std::int64_t n) { query.audio_seconds = n; },
      kAudioSecondsHelp)
      .group("Workload");
}

InferenceOptions add_inference_options(Command command, WorkloadRequest& request,
                                       Variations& variations, ModelUse use) {
  const bool counts = use == ModelUse::counted;
  LengthOptions lengths(command, variations);
  InferenceOptions options;
  options.sizes = {
      lengths.add("--batch,-b", request.batch_size,
                  "Sequences per batch (1); 1,2,8 or 1..64:x2 reports each, as for every length"),
      lengths.add(
          "--seq,-s", request.seq_len,
          counts ? "New tokens per sequence, including those of images and sound (128 and these; 1 "
                   "in decode); for a diffusion transformer, latent tokens instead of --image-size"
                 : "New tokens per sequence, including those of images and sound (128 and these; 1 "
                   "in decode)"),
      lengths.add("--enc-seq", request.enc_seq_len,
                  counts ? "Tokens of an encoder-decoder's encoder input, or text tokens of a "
                           "diffusion transformer (128; speech: the whole trained window; "
                           "diffusion: its pipeline's maximum)"
                         : "Tokens of an encoder-decoder's encoder input (128; speech: the whole "
                           "trained window)"),
      lengths.add("--images", request.images, kImagesHelp),
      add_image_size(command, request.image_size,
                     counts ? "Pixels of each image, before the family's preprocessing (the "
                              "tower's size), or of a diffusion transformer's output (its "
                              "pipeline's size)"
                            : "Pixels of each image, before the family's preprocessing (the "
                              "tower's size)"),
      lengths.add("--audio", request.audio, kAudioHelp),
      lengths.add("--audio-seconds", request.audio_seconds, kAudioSecondsHelp),
      lengths.add(
          "--global-tokens", request.global_tokens,
          "Tokens with global attention per sequence, Longformer only (the class's default)")};
  if (counts) {
    options.sizes.push_back(lengths.add(
        "--frames", request.frames,
        "Frames of a video that a diffusion transformer makes (its pipeline's number)"));
  }
  options.others = {
      lengths.add("--past,-p", request.past_len,
                  "Tokens already in the KV-cache (0; in decode 127, or what the positions leave)"),
      add_choice(command, "--attention", request.attention, attention_choices(),
                 "Attention implementation (eager; on a device: fused)")
          .group("Workload"),
      add_choice(command, "--logits", request.logits, logits_choices(),
                 "Tokens whose logits a decoder's head computes (all; last in a "
                 "generation)")
          .group("Workload")};
  return options;
}

Option add_workload_options(Command command, WorkloadRequest& request, KvCacheRequest& kv_cache,
                            Variations& variations) {
  const Option phase = add_phase_and_training(command, request, variations);
  (void)add_kv_cache_options(command, kv_cache, "KV-cache");
  return phase;
}

}  // namespace headroom::cli
