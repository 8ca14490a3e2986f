#include "options.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>

#include "similar.h"
#include "type_options.h"

namespace headroom::cli {
namespace {

/// Adds an option of the group "Workload" that stores a length or batch size in `target`.
template <class Target>
Option add_length(Command command, const char* names, Target& target, const char* description) {
  const auto set = [&target](std::int64_t value) { target = value; };
  return add_count(command, names, set, description).group("Workload");
}

}  // namespace

ImageSize parse_image_size(const std::string& names, const std::string& word) {
  const std::size_t cross = word.find('x');
  const std::int64_t height = parse_count(names, word.substr(0, cross));
  return {height, cross == std::string::npos ? height : parse_count(names, word.substr(cross + 1))};
}

namespace {

Option add_image_size(Command command, std::optional<ImageSize>& size, const char* description) {
  const char* const name = "--image-size";
  const auto set = [&size, name](const std::string& word) { size = parse_image_size(name, word); };
  return command.add_text(name, "HxW", set, description).group("Workload");
}

void add_phase_and_training(Command command, WorkloadRequest& request) {
  add_choice(command, "--phase", request.phase, phase_choices(),
             "Forward pass or training step (prefill)")
      .group("Workload");
  (void)add_inference_options(command, request);
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
}

}  // namespace

void refuse_word(const std::string& names, const std::string& word,
                 const std::vector<std::string>& known) {
  const std::string guess = detail::did_you_mean(word, known);
  refuse_value(names,
               fmt::format("unknown value \"{}\"{}{}", word, guess.empty() ? "" : "; ", guess));
}

std::int64_t parse_count(const std::string& names, const std::string& word) {
  std::int64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, failed] = std::from_chars(word.data(), end, value);
  if (failed != std::errc{} || rest != end) {
    refuse_value(names, fmt::format("must be an integer of 64 bits, not \"{}\"", word));
  }
  return value;
}

std::int64_t parse_count(const std::string& names, const std::string& word, CountRange range) {
  const std::int64_t value = parse_count(names, word);
  if (value < range.least || value > range.most) {
    refuse_value(names,
                 fmt::format("must be from {} to {}, not {}", range.least, range.most, value));
  }
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

void add_output_options(Command command, OutputOptions& options) {
  const Choices<Format> formats{{"table", Format::table},
                                {"json", Format::json},
                                {"csv", Format::csv},
                                {"markdown", Format::markdown},
                                {"md", Format::markdown}};
  add_choice(command, "--format,-f", options.format, formats, "Format of the report (table)");
  command.add_text("--output,-o", "FILE", options.file, "Write to a file, whole or not at all");
  command.add_flag("--quiet,-q", options.quiet, "No notes on standard error");
}

void add_image_options(Command command, std::int64_t& images, std::optional<ImageSize>& size) {
  (void)add_length(command, "--images", images,
                   "Images per sequence, multimodal models only; of CLIP and SigLIP, in all (0)");
  (void)add_image_size(
      command, size, "Pixels of each image, before the family's preprocessing (the tower's size)");
}

InferenceOptions add_inference_options(Command command, WorkloadRequest& request) {
  InferenceOptions options;
  options.sizes = {
      add_length(command, "--batch,-b", request.batch_size, "Sequences per batch (1)"),
      add_length(
          command, "--seq,-s", request.seq_len,
          "New tokens per sequence, visual ones included (128 and those of images; 1 in decode); "
          "latent tokens of a diffusion transformer, in place of --image-size"),
      add_length(command, "--enc-seq", request.enc_seq_len,
                 "Tokens of an encoder-decoder's encoder input (128), or of a diffusion "
                 "transformer's text (its pipeline's most)"),
      add_length(command, "--images", request.images,
                 "Images per sequence, multimodal models only; of CLIP and SigLIP, in all (0)"),
      add_image_size(command, request.image_size,
                     "Pixels of each image, before the family's preprocessing (the tower's size), "
                     "or of what a diffusion transformer denoises (its pipeline's size)"),
      add_length(command, "--frames", request.frames,
                 "Frames of a diffusion transformer's video (its pipeline's number)"),
      add_length(command, "--global-tokens", request.global_tokens,
                 "Tokens with global attention per sequence, Longformer only (the class's own)")};
  options.others = {add_length(command, "--past,-p", request.past_len,
                               "Tokens already in the KV-cache (0; 127 in decode)"),
                    add_choice(command, "--attention", request.attention, attention_choices(),
                               "Attention implementation (eager; analyze on a device: fused)")
                        .group("Workload")};
  return options;
}

void add_workload_options(Command command, WorkloadRequest& request) {
  add_phase_and_training(command, request);
  add_choice(command, "--kv-dtype", request.kv_dtype, dtype_choices(),
             "Type of the KV-cache (the config's, else as --dtype)")
      .group("Workload");
}

void add_workload_options(Command command, WorkloadRequest& request, KvCacheRequest& kv_cache) {
  add_phase_and_training(command, request);
  (void)add_kv_cache_options(command, kv_cache, "KV-cache");
}

}  // namespace headroom::cli
