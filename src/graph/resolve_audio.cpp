#include "resolve_audio.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "headroom/error.h"
#include "resolve_images.h"
#include "setting_format.h"

namespace headroom {
namespace detail {
namespace {

constexpr std::int64_t kDefaultSeconds = 30;     // the window that Whisper was trained on
constexpr std::int64_t kMostSegments = 1 << 24;  // per pass

/// Throws unless the model has a tower that reads sound in this phase.
void require_audio_tower(const WorkloadRequest& request, const ModelSpec& spec) {
  if (!spec.audio_tower) {
    throw_invalid_input(fmt::format("{} has no audio tower that headroom runs, so {} has no effect",
                                    spec.name, Setting::audio),
                        spec.embedding.audio
                            ? fmt::format("leave out {}: {} is the length of its sound",
                                          Setting::audio, Setting::enc_seq_len)
                            : fmt::format("leave out {}", Setting::audio));
  }
  if (request.phase == Phase::decode) {
    throw_invalid_input(
        fmt::format("a decode step reads no {}: its tokens are in the KV-cache", Setting::audio),
        fmt::format("count its tokens in {}, or use {} prefill", Setting::past_len,
                    Setting::phase));
  }
}

}  // namespace

WorkloadAudio resolve_audio(const WorkloadRequest& request, const ModelSpec& spec) {
  require_at_least(Setting::audio, request.audio, 0);
  WorkloadAudio audio;
  if (request.audio == 0) {
    if (!request.audio_seconds) return audio;
    throw_invalid_input(fmt::format("{} requires {}", Setting::audio_seconds, Setting::audio),
                        fmt::format("add {} 1", Setting::audio));
  }
  require_audio_tower(request, spec);
  audio.count = request.audio;
  audio.seconds = request.audio_seconds.value_or(kDefaultSeconds);
  require_at_least(Setting::audio_seconds, audio.seconds, 1);
  const auto require_few = [](Integer value) {
    if (value <= kMostSegments) return;
    throw_invalid_input(
        fmt::format("{} is limited to {} segments in a batch", Setting::audio, kMostSegments),
        "use fewer or shorter clips");
  };
  for (const std::int64_t size : {audio.seconds, audio.count, request.batch_size}) {
    require_few(size);
  }
  const Integer clips = checked_multiply(audio.count, request.batch_size);
  const std::int64_t frames = frames_of_clip(*spec.audio_tower, audio.seconds);
  require_few(checked_multiply(clips, spec.audio_tower->segments_of_clip(frames)));
  audio.totals =
      audio_totals(spec, std::vector<std::int64_t>(static_cast<std::size_t>(clips), frames));
  return audio;
}

}  // namespace detail

namespace {

/// Throws Error{overflow}.
std::int64_t in_64_bits(Integer value) {
  constexpr unsigned kBits = 63;
  if (value > INT64_MAX) detail::throw_overflow(kBits);
  return static_cast<std::int64_t>(value);
}

/// Throws Error{invalid_input} if a clip becomes more tokens than it has placeholders.
void require_room(const AudioTowerSpec& tower, std::int64_t frames) {
  const std::int64_t tokens = tower.tokens_of_clip(frames);
  const std::int64_t most = tower.placeholders_of_clip(frames);
  if (tokens <= most) return;
  throw_invalid_input(
      fmt::format("a clip of {} frames becomes {} audio tokens, but the model has {} for each",
                  frames, tokens, most),
      "use shorter clips");
}

}  // namespace

std::int64_t frames_of_clip(const AudioTowerSpec& tower, std::int64_t seconds) {
  // The feature extractors of Whisper, Voxtral and Qwen-Omni take one every 160 samples of 16,000
  // (hop_length and sampling_rate of their preprocessor_config.json).
  constexpr std::int64_t kFramesPerSecond = 100;
  const std::int64_t frames = seconds * kFramesPerSecond;
  switch (tower.rule) {
    case ClipRule::completed:
      return tower.segments_of_clip(frames) * tower.segment_frames;
    case ClipRule::masked:
    case ClipRule::shorter_last:
      break;
  }
  return frames;
}

std::vector<std::int64_t> attended_rows(const AudioTowerSpec& tower, std::int64_t clip_frames) {
  std::vector<std::int64_t> rows;
  const std::int64_t run = tower.attended_segments * tower.segment_positions;
  for (std::int64_t left = tower.rows_of_clip(clip_frames); left > 0; left -= run) {
    rows.push_back(std::min(run, left));
  }
  return rows;
}

AudioTotals audio_totals(const ModelSpec& spec, std::span<const std::int64_t> clip_frames) {
  const AudioTowerSpec& tower = *spec.audio_tower;
  Integer segments = 0;
  Integer all_rows = 0;
  Integer tokens = 0;
  Integer pairs = 0;
  Integer placeholders = 0;
  for (const std::int64_t frames : clip_frames) {
    segments = checked_add(segments, tower.segments_of_clip(frames));
    all_rows = checked_add(all_rows, tower.rows_of_clip(frames));
    tokens = checked_add(tokens, tower.tokens_of_clip(frames));
    placeholders = checked_add(placeholders, tower.placeholders_of_clip(frames));
    require_room(tower, frames);
    if (tower.attended_segments == 0) continue;
    for (const std::int64_t rows : attended_rows(tower, frames)) {
      pairs = checked_add(pairs, checked_multiply(rows, rows));
    }
  }
  return {in_64_bits(segments), in_64_bits(all_rows), in_64_bits(tokens), in_64_bits(pairs),
          in_64_bits(placeholders)};
}

std::string note_on_audio(const Workload& workload, const ModelSpec& spec) {
  const bool hears = workload.audio.count > 0 || workload.phase == Phase::decode;
  if (!spec.audio_tower || hears) return {};
  return fmt::format(
      "no sound: of the audio tower, only parameters and weights count ({} adds clips)",
      Setting::audio);
}

}  // namespace headroom
