// Notes on a workload: positions, towers, adapters, unread keys of the config, and saved tensors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "default_lengths.h"
#include "headroom/workload.h"
#include "resolve_audio.h"
#include "resolve_images.h"
#include "setting_format.h"
#include "sizes.h"

namespace headroom {

std::vector<std::string> notes_on_chunks(const Workload& workload, const ModelSpec& spec) {
  std::vector<std::string> notes;
  const auto& global = spec.main_stack().self_attention.global;
  if (!global) return notes;
  const std::int64_t widest = 2 * detail::traits_of(spec).window.size;
  const std::int64_t padding = (widest - workload.seq_len % widest) % widest;
  if (padding > 0 && workload.attention == AttentionImplementation::eager) {
    notes.push_back(fmt::format(
        "the reference code pads the whole pass to {} tokens, a multiple of the window of {}; the "
        "figures pad inside attention only ({} {} has the cost of the padded pass)",
        workload.seq_len + padding, widest, Setting::seq_len, workload.seq_len + padding));
  }
  const bool of_text = global->by_default == DefaultGlobalTokens::before_separator ||
                       global->by_default == DefaultGlobalTokens::behind_separators;
  if (of_text && workload.global_tokens == 0) {
    notes.push_back(
        fmt::format("{} gives the tokens {} global attention, as many as the text has; the figures "
                    "have none ({} counts them)",
                    spec.architecture,
                    global->by_default == DefaultGlobalTokens::before_separator ? "of the question"
                                                                                : "of the choice",
                    Setting::global_tokens));
  }
  return notes;
}

namespace {

/// Says that a sequence is longer than the positions of `reader`; empty if it is not.
std::string note_on_positions(Integer tokens, const PositionSpec& position,
                              const std::string& reader) {
  const auto most = detail::positions_of(position);
  if (!most || tokens <= *most) return {};
  if (position.kind == PositionKind::learned) {
    return fmt::format(
        "{} tokens exceed the {} positions of {}: its published weights cannot run this",
        to_string(tokens), *most, reader);
  }
  return fmt::format("{} tokens exceed the trained context of {}", to_string(tokens), *most);
}

std::string note_on_encoder_positions(const Workload& workload, const ModelSpec& spec) {
  const bool is_default = workload.enc_seq_len == detail::default_enc_length(spec);
  if (spec.kind != ModelKind::encoder_decoder || is_default) return {};
  return note_on_positions(workload.enc_seq_len, spec.encoder_positions(),
                           spec.name + "'s encoder");
}

bool is_of_adapter(const CountedWeight& weight) { return weight.part == ModelPart::adapter; }

/// A folder of an adapter is its base model with further weights, none of which is frozen.
std::string note_on_adapter(const Workload& workload, const ModelSpec& spec) {
  const bool has_adapter = std::ranges::any_of(spec.counted_only, is_of_adapter);
  if (!has_adapter || workload.phase != Phase::train) return {};
  return "training counts all weights as trained, also those of the adapter's base model; "
         "train-time, given the adapter's rank, counts a step that trains the adapter alone";
}

/// One of several models may have no latent attention.
std::string note_on_latent(const Workload& workload, const ModelSpec& spec) {
  if (workload.latent == LatentAttention::absorbed || has_latent_attention(spec)) return {};
  return fmt::format("the model has no latent attention, so {} has no effect", Setting::latent);
}

}  // namespace

std::vector<std::string> notes_on_positions(const Workload& workload, const ModelSpec& spec) {
  const Integer tokens = Integer{workload.past_len} + workload.seq_len;
  std::vector<std::string> notes;
  for (std::string note : {note_on_positions(tokens, spec.position, spec.name),
                           note_on_encoder_positions(workload, spec)}) {
    if (!note.empty()) notes.push_back(std::move(note));
  }
  return notes;
}

std::vector<std::string> notes_on(const Workload& workload, const ModelSpec& spec) {
  std::vector<std::string> notes = notes_on_positions(workload, spec);
  for (std::string note : {note_on_adapter(workload, spec), note_on_images(workload, spec),
                           note_on_audio(workload, spec), note_on_latent(workload, spec)}) {
    if (!note.empty()) notes.push_back(std::move(note));
  }
  std::ranges::move(notes_on_chunks(workload, spec), std::back_inserter(notes));
  const std::vector<std::string> of_config = notes_on_config(spec);
  notes.insert(notes.end(), of_config.begin(), of_config.end());
  return notes;
}

std::vector<std::string> notes_on_config(const ModelSpec& spec) {
  std::vector<std::string> notes;
  if (!spec.unread_keys.empty()) {
    notes.push_back(
        fmt::format("the config has keys that headroom does not know, taken to change "
                    "no figure: {}",
                    fmt::join(spec.unread_keys, ", ")));
  }
  notes.insert(notes.end(), spec.assumptions.begin(), spec.assumptions.end());
  const auto is_not_run = [](const CountedWeight& weight) {
    return weight.use == CountedUse::part_not_run && weight.role != WeightRole::head &&
           !is_of_adapter(weight);
  };
  const auto is_head_not_run = [](const CountedWeight& weight) {
    return weight.use == CountedUse::part_not_run && weight.role == WeightRole::head;
  };
  if (std::ranges::any_of(spec.counted_only, is_head_not_run)) {
    notes.push_back(
        fmt::format("the head of {} counts as parameters and weights only", spec.architecture));
  }
  if (std::ranges::any_of(spec.counted_only, is_not_run)) {
    notes.emplace_back("parts outside the text model count as parameters and weights only");
  }
  if (std::ranges::any_of(spec.counted_only, is_of_adapter)) {
    notes.emplace_back("the adapter counts as parameters and weights only");
  }
  return notes;
}

std::vector<std::string> notes_on_saved_tensors(const Workload& workload, const ModelSpec& spec) {
  std::vector<std::string> notes;
  const bool written_out = workload.phase == Phase::train &&
                           workload.kernels == Kernels::reference &&
                           spec.main_stack().ffn.activation == ActivationKind::gelu_new;
  if (written_out) {
    notes.push_back(
        fmt::format("the reference code runs gelu_new as elementary operations and saves 4 "
                    "tensors; a fused kernel saves 1 ({} fused)",
                    Setting::kernels));
  }
  const bool transposes = workload.phase == Phase::train && workload.batch_size > 1 &&
                          workload.kernels == Kernels::reference &&
                          spec.main_stack().self_attention.global;
  if (transposes) {
    notes.emplace_back(
        "the reference code transposes batch and sequence, so each projection of a layer's input "
        "saves a copy of it; the figures have one, as with a batch of 1");
  }
  return notes;
}

}  // namespace headroom
