#include "pixel_limits.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "../common_keys.h"
#include "../config_reader.h"
#include "json_text.h"

namespace headroom::detail {
namespace {

/// Returns whether the tower rounds images as Qwen's preprocessor does. GLM's counts the frames of
/// a patch, too, and interpolates its positions bicubically; Gemma 4's reads unit pixels.
bool takes_limits(const ModelSpec& spec) {
  if (!spec.tower || spec.tower->rule != ImageRule::rounded) return false;
  const ImageSpec& image = *spec.tower->embedding.image;
  return image.range == PixelRange::normalised &&
         image.interpolation != PositionInterpolation::bicubic;
}

/// Returns whether the preprocessor limits the visual tokens of an image.
bool takes_token_limits(const ModelSpec& spec) {
  if (!spec.tower) return false;
  return spec.tower->rule == ImageRule::completed || spec.tower->rule == ImageRule::nearest_aspect;
}

void read_token_limits(ConfigReader& config, TowerSpec& tower) {
  const std::int64_t side = product(config, "patch_size", tower.embedding.image->patch_size,
                                    tower.projector.merged_side());
  const std::int64_t pixels = product(config, "patch_size", side, side);
  PixelLimits& limits = *tower.pixel_limits;
  const auto limit = [&](std::string_view key, std::int64_t absent) {
    return config.has(key) ? product(config, key, config.size({key}), pixels) : absent;
  };
  if (tower.rule == ImageRule::completed) limits.least = limit("min_image_tokens", limits.least);
  limits.most = limit("max_image_tokens", limits.most);
  if (limits.most < limits.least) {
    config.fail("max_image_tokens", "is less than min_image_tokens", "use limits in order");
  }
}

}  // namespace

void read_pixel_limits(std::string_view json, const std::string& file, ModelSpec& spec) {
  if (!takes_limits(spec) && !takes_token_limits(spec)) return;
  const nlohmann::json document = parse_json(json, file);
  ConfigReader config(document, file);
  if (takes_token_limits(spec)) return read_token_limits(config, *spec.tower);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  PixelLimits limits{0, kMost};
  if (config.is_object("size")) {
    ConfigReader size = config.object_or_empty("size");
    limits.least = size.size_or({"shortest_edge", "min_pixels"}, 1);
    limits.most = size.size_or({"longest_edge", "max_pixels"}, kMost);
  }
  if (config.has("min_pixels")) limits.least = config.size({"min_pixels"});
  if (config.has("max_pixels")) limits.most = config.size({"max_pixels"});
  if (limits.most < limits.least) {
    config.fail("max_pixels", "is less than min_pixels", "use limits in order");
  }
  const bool states_any = limits.least > 1 || limits.most < kMost;
  if (states_any) spec.tower->pixel_limits = limits;
}

}  // namespace headroom::detail
