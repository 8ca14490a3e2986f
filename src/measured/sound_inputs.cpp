#include "sound_inputs.h"

#include <fmt/format.h>

#include "headroom/error.h"
#include "safetensors.h"

namespace headroom::measured {
namespace {

/// Reads audio features [batch, mel bins, frames]. The encoder halves the number of frames.
TokenInputs read_audio(const checkpoint::SafetensorsFile& file, const std::string& name,
                       const AudioSpec& audio, std::vector<float>& features) {
  const checkpoint::StoredTensor* tensor = file.find(name);
  const bool matches = tensor != nullptr && tensor->shape.size() == 3 && tensor->shape[0] > 0 &&
                       tensor->shape[1] == audio.num_mel_bins && tensor->shape[2] > 0 &&
                       tensor->shape[2] % 2 == 0;
  if (!matches) {
    throw Error(ErrorCode::invalid_input, "has no matching tensor [batch, mel bins, frames]",
                checkpoint::tensor_place(file.path(), name),
                fmt::format("store {} mel bins and an even number of frames", audio.num_mel_bins));
  }
  features.resize(static_cast<std::size_t>(tensor->shape[0] * tensor->shape[1] * tensor->shape[2]));
  checkpoint::copy_as_float32(*tensor, features, checkpoint::tensor_place(file.path(), name));
  file.require_unchanged();
  return {tensor->shape[0], tensor->shape[2] / 2, {}, {}, {}};
}

/// Positions of the first layer's output, and of the last one's.
struct WaveformLengths {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

WaveformLengths lengths_of(const WaveformSpec& waveform, std::int64_t samples) {
  WaveformLengths lengths;
  for (const WaveformLayer& layer : waveform.layers) {
    samples = samples < layer.kernel_size ? 0 : (samples - layer.kernel_size) / layer.stride + 1;
    if (lengths.first == 0) lengths.first = samples;
  }
  lengths.last = samples;
  return lengths;
}

/// Returns whether samples after the fewest that fill the last layer change nothing: a norm of the
/// first layer's channels over time averages all its positions.
bool ignores_last_samples(const WaveformSpec& waveform, const WaveformLengths& lengths) {
  switch (waveform.norm) {
    case WaveformNorm::first_group:
      return lengths.first == waveform.fewest_inputs(1, lengths.last);
    case WaveformNorm::every_layer:
      break;
  }
  return true;
}

}  // namespace

void read_audio_inputs(std::filesystem::path path, const AudioSpec& audio, InputFile& inputs) {
  const checkpoint::SafetensorsFile file(path.replace_extension(".safetensors"));
  inputs.inputs.encoder = read_audio(file, "input_features", audio, inputs.inputs.audio_features);
  if (!inputs.generate) return;
  const bool has_generate_features = file.find("generate.input_features") != nullptr;
  inputs.generate->encoder =
      read_audio(file, has_generate_features ? "generate.input_features" : "input_features", audio,
                 inputs.generate->audio_features);
}

ModelInputs read_waveform(std::filesystem::path path, const ModelSpec& spec) {
  const checkpoint::SafetensorsFile file(path.replace_extension(".safetensors"));
  const WaveformSpec& waveform = *spec.embedding.waveform;
  const checkpoint::StoredTensor* tensor = file.find("input_values");
  const std::string place = checkpoint::tensor_place(file.path(), "input_values");
  const bool is_matrix = tensor != nullptr && tensor->shape.size() == 2 && tensor->shape[0] > 0;
  const std::int64_t samples = is_matrix ? tensor->shape[1] : 0;
  const WaveformLengths lengths = lengths_of(waveform, samples);
  if (lengths.last == 0) {
    throw Error(ErrorCode::invalid_input, "has no matching tensor [batch, samples]", place,
                fmt::format("store at least {} samples", waveform.fewest_inputs(0, 1)));
  }
  const std::int64_t kept = waveform.fewest_inputs(0, lengths.last);
  if (!ignores_last_samples(waveform, lengths)) {
    throw Error(
        ErrorCode::invalid_input,
        fmt::format("has {} samples, whose last ones fill no position of the encoder", samples),
        place, fmt::format("store {} samples", kept));
  }
  std::vector<float> all(static_cast<std::size_t>(tensor->shape[0] * samples));
  checkpoint::copy_as_float32(*tensor, all, place);
  file.require_unchanged();
  ModelInputs inputs;
  inputs.main = {tensor->shape[0], lengths.last, {}, {}, {}};
  for (std::int64_t item = 0; item < tensor->shape[0]; ++item) {
    const auto begin = all.begin() + item * samples;
    inputs.audio_features.insert(inputs.audio_features.end(), begin, begin + kept);
  }
  return inputs;
}

}  // namespace headroom::measured
