#include "projected_inputs.h"

#include "tower_weights.h"

namespace headroom::detail {
namespace {

constexpr auto kPixelTable = WeightRole::embedding;
constexpr auto kToTextRole = WeightRole::projector;

/// Numbers of a merged patch: 3 colours of each pixel.
std::int64_t read_merged_patch(ConfigReader& vision) {
  constexpr std::int64_t kColours = 3;
  const std::int64_t patch = vision.size_or({"patch_size"}, 16);
  const std::int64_t merged = vision.size_or({"pooling_kernel_size"}, 3);
  const std::int64_t side = product(vision, "patch_size", patch, merged);
  vision.expect_number("model_patch_size", static_cast<double>(side));
  return product(vision, "patch_size", kColours, product(vision, "patch_size", side, side));
}

void count_pixels(ConfigReader& vision, ModelSpec& spec) {
  const std::int64_t pixels = read_merged_patch(vision);
  const std::int64_t width = vision.size_or({"mm_embed_dim"}, 3840);
  const std::int64_t out = vision.size_or({"output_proj_dims"}, 3840);
  TowerWeights tower(spec, ModelPart::vision);
  tower.norm(NormKind::layer_norm, "patch_norm", pixels);
  tower.linear("patch_embeddings", pixels, width, kPixelTable);
  tower.norm(NormKind::layer_norm, "embedding_norm", width);
  const std::int64_t rows = vision.size_or({"mm_posemb_size"}, 1120);
  tower.add("position_embeddings", {rows, 2, width}, kPixelTable);
  tower.norm(NormKind::layer_norm, "position_norm", width);
  TowerWeights(spec, ModelPart::projector)
      .linear_if(false, "image", out, spec.hidden_size, kToTextRole);
  vision.ignore({"num_soft_tokens"});
}

/// The class has three more names for the samples of one token.
void count_samples(ConfigReader& audio, ModelSpec& spec) {
  const std::int64_t samples = audio.size_or({"audio_embed_dim"}, 640);
  for (const char* const name : {"hidden_size", "audio_samples_per_token", "output_proj_dims"}) {
    audio.expect_number(name, static_cast<double>(samples));
  }
  TowerWeights(spec, ModelPart::projector)
      .linear_if(false, "audio", samples, spec.hidden_size, kToTextRole);
}

void finish_inputs(ConfigReader& part, ModelSpec& spec) {
  ignore_tower_keys(part);
  read_common_keys(part, spec);
  part.finish();
}

}  // namespace

void count_gemma4_unified_towers(ConfigReader& config, ModelSpec& spec) {
  if (auto vision = config.object("vision_config")) {
    count_pixels(*vision, spec);
    finish_inputs(*vision, spec);
  }
  if (auto audio = config.object("audio_config")) {
    count_samples(*audio, spec);
    finish_inputs(*audio, spec);
  }
}

}  // namespace headroom::detail
