#include "sound_inputs.h"

#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"
#include "safetensors.h"
#include "with_noun.h"

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

/// Sizes of clips, each of several segments.
struct ClipSizes {
  std::int64_t clips = 0;
  std::int64_t bins = 0;
  std::int64_t frames = 0;   ///< of a clip
  std::int64_t segment = 0;  ///< frames of a segment
};

/// Reorders clips [bins, frames] to segments [bins, segment], the last one completed with zeros.
std::vector<float> in_segments(const std::vector<float>& clips, const ClipSizes& sizes) {
  std::vector<float> all;
  for (std::int64_t clip = 0; clip < sizes.clips; ++clip) {
    for (std::int64_t first = 0; first < sizes.frames; first += sizes.segment) {
      const std::int64_t frames = std::min(sizes.segment, sizes.frames - first);
      for (std::int64_t bin = 0; bin < sizes.bins; ++bin) {
        const auto begin = clips.begin() + (clip * sizes.bins + bin) * sizes.frames + first;
        all.insert(all.end(), begin, begin + frames);
        all.insert(all.end(), static_cast<std::size_t>(sizes.segment - frames), 0.0F);
      }
    }
  }
  return all;
}

/// Clips [frames, bins], each completed with zeros to whole segments of consecutive frames.
std::vector<float> in_rows(const std::vector<float>& clips, const ClipSizes& sizes) {
  const std::int64_t whole = (sizes.frames + sizes.segment - 1) / sizes.segment * sizes.segment;
  std::vector<float> all;
  for (std::int64_t clip = 0; clip < sizes.clips; ++clip) {
    const auto begin = clips.begin() + clip * sizes.frames * sizes.bins;
    all.insert(all.end(), begin, begin + sizes.frames * sizes.bins);
    all.resize(static_cast<std::size_t>((clip + 1) * whole * sizes.bins));
  }
  return all;
}

/// Frames that a clip of an input file may have, in words; empty if `frames` may.
std::string wanted_frames(const AudioTowerSpec& tower, std::int64_t frames) {
  const std::int64_t segment = tower.segment_frames;
  switch (tower.rule) {
    case ClipRule::completed:
    case ClipRule::masked:  // keys of silence, which a shorter clip would hide, have no kernel
      if (frames > 0 && frames % segment == 0) return {};
      return fmt::format("whole segments of {} frames", segment);
    case ClipRule::shorter_last:
      break;
  }
  // The reference's 2-D convolutions read less silence where no segment of a batch is whole.
  const std::int64_t least = tower.embedding.audio->grid_channels > 0 ? segment : 1;
  if (frames >= least) return {};
  return detail::with_noun(least, "frame") + " or more";
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

SegmentInputs read_segments(const checkpoint::SafetensorsFile& file, const std::string& name,
                            const ModelSpec& spec) {
  const AudioTowerSpec& tower = *spec.audio_tower;
  const std::int64_t bins = tower.embedding.audio->num_mel_bins;
  const bool frames_first = tower.embedding.audio->subsampling.has_value();
  const std::size_t of_bins = frames_first ? 2 : 1;
  const std::size_t of_frames = 3 - of_bins;
  const checkpoint::StoredTensor* const tensor = file.find(name);
  const std::string place = checkpoint::tensor_place(file.path(), name);
  const bool matches = tensor != nullptr && tensor->shape.size() == 3 && tensor->shape[0] > 0 &&
                       tensor->shape[of_bins] == bins &&
                       wanted_frames(tower, tensor->shape[of_frames]).empty();
  if (!matches) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("has no matching tensor [clips, {}]",
                            frames_first ? "frames, mel bins" : "mel bins, frames"),
                place,
                fmt::format("store clips of {} mel bins and {}", bins, wanted_frames(tower, 0)));
  }
  const std::int64_t frames = tensor->shape[of_frames];
  std::vector<float> clips(static_cast<std::size_t>(tensor->shape[0] * bins * frames));
  checkpoint::copy_as_float32(*tensor, clips, place);
  file.require_unchanged();
  const ClipSizes sizes{tensor->shape[0], bins, frames, tower.segment_frames};
  return {frames_first ? in_rows(clips, sizes) : in_segments(clips, sizes),
          std::vector<std::int64_t>(static_cast<std::size_t>(tensor->shape[0]), frames)};
}

std::vector<std::int64_t> segment_frames(const AudioTowerSpec& tower, const SegmentInputs& audio) {
  std::vector<std::int64_t> frames;
  for (const std::int64_t of_clip : audio.clip_frames) {
    for (std::int64_t first = 0; first < of_clip; first += tower.segment_frames) {
      frames.push_back(std::min(tower.segment_frames, of_clip - first));
    }
  }
  return frames;
}

void require_audio_placeholders(const TokenInputs& tokens,
                                const std::optional<SegmentInputs>& audio, const ModelSpec& spec,
                                const std::string& where) {
  const std::int64_t wanted = audio ? audio_totals(spec, audio->clip_frames).placeholders : 0;
  if (wanted == std::ssize(tokens.audio_rows)) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("has {} placeholders of sound, but the sound becomes {} tokens",
                          tokens.audio_rows.size(), wanted),
              where, "give one placeholder per audio token, and all sound as input_features");
}

void drop_padding(TokenInputs& tokens, const std::optional<SegmentInputs>& audio,
                  const ModelSpec& spec) {
  if (!audio) return;
  const AudioTowerSpec& tower = *spec.audio_tower;
  std::vector<std::int64_t> kept;
  auto row = tokens.audio_rows.begin();
  for (const std::int64_t frames : audio->clip_frames) {
    kept.insert(kept.end(), row, row + tower.tokens_of_clip(frames));
    row += tower.placeholders_of_clip(frames);
  }
  tokens.audio_rows = std::move(kept);
}

void add_random_sound(const ModelSpec& spec, const Workload& workload, std::mt19937_64& generator,
                      ModelInputs& inputs) {
  const AudioTowerSpec& tower = *spec.audio_tower;
  const WorkloadAudio& audio = workload.audio;
  std::normal_distribution<float> normal;
  const std::int64_t values =
      audio.totals.segments * tower.embedding.audio->num_mel_bins * tower.segment_frames;
  const std::int64_t clips = audio.count * workload.batch_size;
  inputs.audio = SegmentInputs{std::vector<float>(static_cast<std::size_t>(values)),
                               std::vector<std::int64_t>(static_cast<std::size_t>(clips),
                                                         frames_of_clip(tower, audio.seconds))};
  for (float& value : inputs.audio->features) value = normal(generator);
  const std::int64_t of_clip = audio.totals.tokens / clips;
  const std::int64_t padding = audio.totals.placeholders / clips - of_clip;
  for (std::int64_t sequence = 0; sequence < workload.batch_size; ++sequence) {
    std::int64_t row = sequence * workload.seq_len;
    for (const std::int64_t image : inputs.main.visual_rows) {
      if (image / workload.seq_len == sequence) row = image + 1;
    }
    for (std::int64_t clip = 0; clip < audio.count; ++clip) {
      ++row;  // the text before the clip
      for (std::int64_t i = 0; i < of_clip; ++i) inputs.main.audio_rows.push_back(row++);
      row += padding;
    }
  }
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
    throw Error(ErrorCode::invalid_input,
                fmt::format("has {}, whose last ones fill no position of the encoder",
                            detail::with_noun(samples, "sample")),
                place, "store " + detail::with_noun(kept, "sample"));
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
