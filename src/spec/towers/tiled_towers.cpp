// Towers of LLaVA-NeXT and LLaVA-OneVision (arXiv 2408.03326), which cut an image into the tiles of
// the nearest of image_grid_pinpoints, drop the padding and end each row of patches with a trained
// vector: counted.
#include "image_encoders.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {

void count_tiled_tower(ConfigReader& config, ModelSpec& spec) {
  using CountEncoder = std::int64_t (*)(ConfigReader & vision, ModelSpec & spec);
  auto vision = config.object("vision_config");
  if (!vision) {
    config.fail("vision_config", "is missing", "add the config of the image encoder");
  }
  const auto count_encoder = vision->choice_or<CountEncoder>(
      {"model_type"}, {{"clip_vision_model", count_clip}, {"siglip_vision_model", count_siglip}},
      count_clip);
  const std::int64_t width = count_encoder(*vision, spec);
  vision->finish();
  const std::int64_t layers = config.entries_or_one("vision_feature_layer");
  const bool bias = config.flag_or({"multimodal_projector_bias"}, true);
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear_if(bias, "up", product(config, "vision_feature_layer", layers, width),
                      spec.hidden_size, WeightRole::projector);
  projector.linear_if(bias, "down", spec.hidden_size, spec.hidden_size, WeightRole::projector);
  projector.add("end_of_row", {spec.hidden_size}, WeightRole::projector);
  config.ignore({"image_grid_pinpoints", "vision_aspect_ratio", "vision_feature_select_strategy",
                 "projector_hidden_act", "image_seq_length", "use_image_newline_parameter",
                 "ignore_index", "vocab_size"});
}

}  // namespace headroom::detail
