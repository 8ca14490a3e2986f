// Sounds of an input file: features of a spectrogram, and samples. Internal to src/measured.
#pragma once

#include <filesystem>
#include <random>
#include <string>

#include "inputs.h"
#include "safetensors.h"

namespace headroom::measured {

/// Reads `input_features`, [batch, mel bins, frames], of the inputs and of the prompt from the
/// safetensors file beside the JSON file `path`. Throws Error{invalid_input}.
void read_audio_inputs(std::filesystem::path path, const AudioSpec& audio, InputFile& inputs);

/// Reads the clips `name`, [clips, mel bins, frames], or of a Conformer [clips, frames, mel bins],
/// with whole segments of the audio tower, or, where its rule allows it, a shorter last one. Throws
/// Error{invalid_input}.
[[nodiscard]] SegmentInputs read_segments(const checkpoint::SafetensorsFile& file,
                                          const std::string& name, const ModelSpec& spec);

/// Frames of sound in each segment.
[[nodiscard]] std::vector<std::int64_t> segment_frames(const AudioTowerSpec& tower,
                                                       const SegmentInputs& audio);

/// Throws Error{invalid_input} at `where` unless the tokens have one placeholder per audio token,
/// and per padding behind it.
void require_audio_placeholders(const TokenInputs& tokens,
                                const std::optional<SegmentInputs>& audio, const ModelSpec& spec,
                                const std::string& where);

/// Leaves out the placeholders of padding.
void drop_padding(TokenInputs& tokens, const std::optional<SegmentInputs>& audio,
                  const ModelSpec& spec);

/// Random sound in the workload's segments, and its placeholders in `inputs.main`: every clip
/// follows one token of text, and all images of its sequence.
void add_random_sound(const ModelSpec& spec, const Workload& workload, std::mt19937_64& generator,
                      ModelInputs& inputs);

/// Reads `input_values`, [batch, samples], from the safetensors file beside `path`, and keeps those
/// that the last position needs. Throws Error{invalid_input}.
[[nodiscard]] ModelInputs read_waveform(std::filesystem::path path, const ModelSpec& spec);

}  // namespace headroom::measured
