#include "resolve_images.h"

#include <fmt/format.h>

#include <algorithm>

#include "headroom/tiled_tower.h"
#include "setting_format.h"

namespace headroom {
namespace detail {

void require_at_least(Setting setting, std::int64_t value, std::int64_t least) {
  if (value >= least) return;
  throw_invalid_input(fmt::format("{} must be at least {}, not {}", setting, least, value),
                      fmt::format("give {} a value of {} or more", setting, least));
}

std::int64_t tokens_with_towers(const WorkloadRequest& request, const Workload& workload,
                                std::int64_t text) {
  const WorkloadImages& images = workload.images;
  const std::int64_t visual = images.totals.tokens / request.batch_size;
  const std::int64_t heard = workload.audio.totals.placeholders / request.batch_size;
  // Packed tiles are one run of tokens; others are images of their own.
  const std::size_t runs = images.tilings.empty() ? images.grids.size() : images.tilings.size();
  const std::int64_t least =
      visual + heard + static_cast<std::int64_t>(runs) + workload.audio.count;
  const std::int64_t tokens = request.seq_len.value_or(std::max(visual + heard + text, least));
  if (tokens >= least) return tokens;
  const std::string needed = heard == 0 ? fmt::format("{} visual tokens", visual)
                             : visual == 0
                                 ? fmt::format("{} audio tokens", heard)
                                 : fmt::format("{} tokens of images and sound", visual + heard);
  throw_invalid_input(fmt::format("{} {} is too short for {}, with a token of text before each {}",
                                  Setting::seq_len, tokens, needed, heard == 0 ? "image" : "one"),
                      fmt::format("use {} {} or more, or fewer {}", Setting::seq_len, least,
                                  heard == 0 ? Setting::images : Setting::audio));
}

namespace {

/// Throws if the model itself reads one image per sequence, whose size its config states.
void refuse_image_model(const WorkloadRequest& request, const ModelSpec& spec) {
  if (!spec.embedding.image) return;
  throw_invalid_input(
      fmt::format(
          "{} reads one image of image_size in its config per sequence, so {} has no effect",
          spec.name, request.images > 0 ? Setting::images : Setting::image_size),
      fmt::format("leave it out; {} is the number of images", Setting::batch_size));
}

/// Throws unless the model has a tower that reads images in this phase.
void require_tower(const WorkloadRequest& request, const ModelSpec& spec) {
  if (!spec.tower) {
    throw_invalid_input(fmt::format("{} has no image tower that headroom runs, so {} has no effect",
                                    spec.name, Setting::images),
                        fmt::format("leave out {}", Setting::images));
  }
  if (request.phase == Phase::decode && !attends_to_images(spec)) {
    throw_invalid_input(
        fmt::format("a decode step reads no {}: their tokens are in the KV-cache", Setting::images),
        fmt::format("count their tokens in {}, or use {} prefill", Setting::past_len,
                    Setting::phase));
  }
}

}  // namespace

WorkloadImages resolve_images(const WorkloadRequest& request, const ModelSpec& spec) {
  require_at_least(Setting::images, request.images, 0);
  WorkloadImages images;
  if (request.images > 0 || request.image_size) refuse_image_model(request, spec);
  if (request.images == 0) {
    if (!request.image_size || spec.denoiser) return images;
    throw_invalid_input(fmt::format("{} requires {}", Setting::image_size, Setting::images),
                        fmt::format("add {} 1", Setting::images));
  }
  constexpr std::int64_t kMostImages = 4096;  // per pass; each is listed
  require_tower(request, spec);
  const ImageSpec& image = *spec.tower->embedding.image;
  images.count = request.images;
  if (!request.image_size && image.image_size == 0) {
    throw_invalid_input(fmt::format("the config of {} states no size of images", spec.name),
                        fmt::format("give {} HEIGHTxWIDTH", Setting::image_size));
  }
  images.size = request.image_size.value_or(ImageSize{image.image_size, image.image_size});
  require_at_least(Setting::image_size, std::min(images.size.height, images.size.width), 1);
  const std::int64_t repeats = spec.tower->pooling ? 1 : request.batch_size;
  if (request.images > kMostImages || repeats > kMostImages / request.images) {
    throw_invalid_input(
        fmt::format("{} are limited to {} in a batch", Setting::images, kMostImages),
        fmt::format("use fewer {}", Setting::images));
  }
  const std::vector<ImageGrid> one = grids_of_image(*spec.tower, images.size);
  for (std::int64_t i = 0; i < images.count; ++i) {
    images.grids.insert(images.grids.end(), one.begin(), one.end());
  }
  std::vector<ImageGrid> all;
  for (std::int64_t i = 0; i < repeats; ++i) {
    all.insert(all.end(), images.grids.begin(), images.grids.end());
  }
  images.totals = image_totals(spec, all, request.batch_size);
  if (spec.tower->projector.packs_tiles() || reads_canvases(*spec.tower)) {
    const ImageTiling tiling = tiling_of_image(*spec.tower, images.size);
    images.tilings.assign(static_cast<std::size_t>(images.count), tiling);
    images.totals.tokens = images.count * repeats * packed_tokens(*spec.tower, tiling);
  }
  return images;
}

}  // namespace detail

std::string note_on_images(const Workload& workload, const ModelSpec& spec) {
  if (!spec.tower || workload.phase == Phase::decode) return {};
  if (workload.images.count > 0) {
    if (spec.tower->rule != ImageRule::rounded || spec.tower->pixel_limits) return {};
    return "images keep their size, rounded to whole blocks of patches: limits that a preprocessor "
           "sets on pixels or tokens are not applied";
  }
  return fmt::format(
      "text only: of the image tower, only parameters and weights count ({} adds images)",
      Setting::images);
}

}  // namespace headroom
