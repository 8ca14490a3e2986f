// Sounds of an input file: features of a spectrogram, and samples. Internal to src/measured.
#pragma once

#include <filesystem>

#include "inputs.h"

namespace headroom::measured {

/// Reads `input_features`, [batch, mel bins, frames], of the inputs and of the prompt from the
/// safetensors file beside the JSON file `path`. Throws Error{invalid_input}.
void read_audio_inputs(std::filesystem::path path, const AudioSpec& audio, InputFile& inputs);

/// Reads `input_values`, [batch, samples], from the safetensors file beside `path`, and keeps those
/// that the last position needs. Throws Error{invalid_input}.
[[nodiscard]] ModelInputs read_waveform(std::filesystem::path path, const ModelSpec& spec);

}  // namespace headroom::measured
