#include "resolve_latent.h"

#include <fmt/format.h>

#include "resolve_images.h"
#include "setting_format.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kMostPixels = 1'000'000;  // a side; the number of patches fits 64 bits
constexpr std::int64_t kMostFrames = 1'000'000;

void require_at_most(Setting setting, std::int64_t value, std::int64_t most) {
  if (value <= most) return;
  throw_invalid_input(fmt::format("{} must be at most {}, not {}", setting, most, value),
                      fmt::format("use a smaller {}", setting));
}

/// Throws unless `value` is a multiple of `step`, plus 1 for frames.
void require_whole_patches(Setting setting, std::int64_t value, std::int64_t step,
                           std::int64_t first) {
  const std::int64_t rest = (value - first) % step;
  if (rest == 0) return;
  const std::int64_t below = value - rest;
  const std::string rule = first == 0 ? fmt::format("a multiple of {}", step)
                                      : fmt::format("{} more than a multiple of {}", first, step);
  throw_invalid_input(
      fmt::format("{} {} makes no whole patches: it must be {}", setting, value, rule),
      below > first ? fmt::format("use {} or {}", below, below + step)
                    : fmt::format("use {}", below + step));
}

void validate(const SampleSize& sample, const LatentSpec& latent) {
  const std::int64_t step = latent.pixels * latent.patch_size;
  for (const std::int64_t side : {sample.image.height, sample.image.width}) {
    require_at_least(Setting::image_size, side, 1);
    require_at_most(Setting::image_size, side, kMostPixels);
    require_whole_patches(Setting::image_size, side, step, 0);
  }
  require_at_least(Setting::frames, sample.frames, 1);
  require_at_most(Setting::frames, sample.frames, kMostFrames);
  require_whole_patches(Setting::frames, sample.frames, latent.frames * latent.patch_frames, 1);
}

/// Throws for settings of a latent in a request for another model.
void require_no_latent(const WorkloadRequest& request, const ModelSpec& spec) {
  if (!request.frames) return;
  throw_invalid_input(
      fmt::format("{} makes no video, so {} has no effect", spec.name, Setting::frames),
      fmt::format("leave out {}", Setting::frames));
}

}  // namespace

std::int64_t latent_tokens(const LatentSpec& latent, const SampleSize& sample) {
  const std::int64_t step = latent.pixels * latent.patch_size;
  // The first frame has a latent position of its own.
  const std::int64_t frames = ((sample.frames - 1) / latent.frames + 1) / latent.patch_frames;
  return frames * (sample.image.height / step) * (sample.image.width / step);
}

std::optional<SampleSize> resolve_sample(const WorkloadRequest& request, const ModelSpec& spec) {
  if (!spec.denoiser || !spec.denoiser->latent.is_video()) require_no_latent(request, spec);
  if (!spec.denoiser) return std::nullopt;
  if (request.seq_len) {
    if (!request.image_size && !request.frames) return std::nullopt;
    throw_invalid_input(
        fmt::format("{} is the number of latent tokens, which {} gives too", Setting::seq_len,
                    request.image_size ? Setting::image_size : Setting::frames),
        "give one of them");
  }
  const LatentSpec& latent = spec.denoiser->latent;
  SampleSize sample;
  sample.image =
      request.image_size.value_or(ImageSize{latent.default_height, latent.default_width});
  sample.frames = request.frames.value_or(latent.default_frames);
  validate(sample, latent);
  return sample;
}

}  // namespace headroom::detail
