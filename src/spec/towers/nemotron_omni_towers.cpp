// The towers of Nemotron 3 Nano Omni, which are counted: C-RADIO, a ViT with class and register
// tokens (arXiv 2312.06709), and Parakeet, a Conformer (arXiv 2005.08100) behind strided
// convolutions (arXiv 2305.05084).
#include <bit>
#include <string>

#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kPatchRole = WeightRole::embedding;
constexpr auto kSoundConvolution = WeightRole::convolution;
constexpr auto kLayerNorm = NormKind::layer_norm;

TowerLayers read_radio_layers(ConfigReader& vision) {
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1280);
  layers.count = vision.layers_or({"num_hidden_layers"}, 32);
  layers.inner = truncated(vision, "mlp_ratio", vision.number_or({"mlp_ratio"}, 4), layers.width);
  layers.qkv_bias = vision.flag_or({"qkv_bias"}, true);
  if (vision.flag_or({"use_swiglu_ffn"}, false)) {
    layers.ffn = FfnKind::gated;
    layers.inner = dinov2_gated_width(layers.inner);
  }
  return layers;
}

/// Projections of patches and of stacked frames, and a table of positions for the largest image.
void add_radio_embeddings(TowerWeights& tower, ConfigReader& vision, std::int64_t width,
                          std::int64_t frames) {
  const std::int64_t side = vision.size_or({"patch_size"}, 16);
  const std::int64_t channels = vision.size_or({"num_channels"}, 3);
  const std::int64_t elements =
      product(vision, "patch_size", channels, product(vision, "patch_size", side, side));
  const std::int64_t edge = vision.size_or({"max_img_size"}, 2048) / side;
  const std::int64_t tokens = vision.sum("num_registers", vision.count_or({"num_registers"}, 7),
                                         vision.count_or({"num_cls_tokens"}, 3));
  tower.linear_if(false, "patch_embeddings", elements, width, kPatchRole);
  tower.linear_if(false, "frame_embeddings", product(vision, "patch_size", frames, elements), width,
                  kPatchRole);
  tower.add("position_embeddings.weight", {product(vision, "max_img_size", edge, edge), width},
            kPatchRole);
  tower.add("first_tokens", {tokens, width}, kPatchRole);
}

void count_radio(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const std::int64_t frames = config.size_or({"video_temporal_patch_size"}, 2);
  if (vision.size_or({"video_temporal_patch_size"}, frames) != frames) {
    vision.fail("video_temporal_patch_size", "is not that of the whole model",
                "write one number of frames in both places");
  }
  const TowerLayers layers = read_radio_layers(vision);
  TowerWeights tower(spec, ModelPart::vision);
  add_radio_embeddings(tower, vision, layers.width, frames);
  tower.layers(layers);
  for (const char* const name : {"layers.attention_scale", "layers.mlp_scale"}) {
    tower.add(std::string(name), {layers.width}, WeightRole::norm, layers.count);
  }
  vision.ignore({"image_size", "layerscale_value", "drop_path_rate", "summary_idxs", "norm_mean",
                 "norm_std", "patch_dim", "video_patch_dim", "attention_probs_dropout_prob"});
  ignore_tower_keys(vision);
  vision.finish();
}

struct ProjectorSizes {
  std::string name;
  std::int64_t in = 0;
  std::int64_t inner = 0;
  bool bias = false;
};

/// A norm and two linear layers.
void add_projector(ModelSpec& spec, const ProjectorSizes& sizes) {
  const std::string& name = sizes.name;
  TowerWeights projector(spec, ModelPart::projector);
  projector.norm(NormKind::rms_norm, name + ".norm", sizes.in);
  projector.linear_if(sizes.bias, name + ".up", sizes.in, sizes.inner, WeightRole::projector);
  projector.linear_if(sizes.bias, name + ".down", sizes.inner, spec.hidden_size,
                      WeightRole::projector);
}

void count_image_projector(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t width = config.size_or({"vision_hidden_size", "vit_hidden_size"}, 1280);
  const std::int64_t side = read_merged_side(config, "downsample_ratio");
  const std::int64_t merged =
      product(config, "vision_hidden_size", product(config, "downsample_ratio", side, side), width);
  // Where the text model predicts several tokens, the class norms what the tower computes.
  const std::string_view text_key = config.has("text_config") ? "text_config" : "llm_config";
  ConfigReader text = config.object_or_empty(text_key);
  if (text.count_or({"num_nextn_predict_layers"}, 0) > 0) {
    TowerWeights(spec, ModelPart::projector).norm(kLayerNorm, "first_norm", width);
  }
  add_projector(spec, {"image", merged, config.size_or({"projector_hidden_size"}, 4096)});
}

/// Halvings of both sides of a spectrogram: a convolution, then depthwise and pointwise ones.
void add_subsampling(TowerWeights& tower, ConfigReader& sound, std::int64_t width) {
  const std::int64_t kernel = sound.size_or({"subsampling_conv_kernel_size"}, 3);
  const std::int64_t channels = sound.size_or({"subsampling_conv_channels"}, 256);
  const std::int64_t stride = sound.size_or({"subsampling_conv_stride"}, 2);
  const auto factor = static_cast<std::uint64_t>(sound.size_or({"subsampling_factor"}, 8));
  if (factor < 2) {
    sound.fail("subsampling_factor", "does not halve the sound", "use a power of 2");
  }
  const std::int64_t area = product(sound, "subsampling_conv_kernel_size", kernel, kernel);
  std::int64_t bins = sound.size_or({"num_mel_bins"}, 80);
  const std::int64_t halvings = static_cast<std::int64_t>(std::bit_width(factor)) - 1;
  for (std::int64_t i = 0; i < halvings; ++i) {
    const std::string index = std::to_string(i);
    tower.linear("convolutions." + index, area, channels, kSoundConvolution);
    if (i > 0) tower.linear("pointwise." + index, channels, channels, kSoundConvolution);
    bins /= stride;
  }
  tower.linear("input", product(sound, "subsampling_conv_channels", bins, channels), width,
               WeightRole::embedding);
}

struct ConformerSizes {
  std::int64_t width = 0;
  std::int64_t layers = 0;
  bool bias = false;
};

void add_sound_attention(TowerWeights& tower, const ConformerSizes& sizes) {
  for (const char* const name : {"query", "key", "value", "output"}) {
    tower.linear_if(sizes.bias, std::string("layers.attention.") + name, sizes.width, sizes.width,
                    WeightRole::attention, sizes.layers);
  }
  tower.linear_if(false, "layers.attention.relative_key", sizes.width, sizes.width,
                  WeightRole::attention, sizes.layers);
  for (const char* const name : {"content_bias", "position_bias"}) {
    tower.add(std::string("layers.attention.") + name, {sizes.width}, WeightRole::attention,
              sizes.layers);
  }
}

void add_sound_layers(TowerWeights& tower, ConfigReader& sound, const ConformerSizes& sizes) {
  const std::int64_t width = sizes.width;
  const std::int64_t inner = sound.size_or({"intermediate_size"}, 4096);
  for (const char* const name : {"layers.first_mlp", "layers.second_mlp"}) {
    const std::string path(name);
    tower.norm(kLayerNorm, path + ".norm", width, sizes.layers);
    tower.linear_if(sizes.bias, path + ".up", width, inner, WeightRole::mlp, sizes.layers);
    tower.linear_if(sizes.bias, path + ".down", inner, width, WeightRole::mlp, sizes.layers);
  }
  add_sound_attention(tower, sizes);
  const bool bias = sound.flag_or({"convolution_bias"}, true);
  tower.linear_if(bias, "layers.convolution.in", width, product(sound, "hidden_size", 2, width),
                  kSoundConvolution, sizes.layers);
  tower.linear_if(bias, "layers.convolution.depthwise", sound.size_or({"conv_kernel_size"}, 9),
                  width, kSoundConvolution, sizes.layers);
  tower.linear_if(bias, "layers.convolution.out", width, width, kSoundConvolution, sizes.layers);
  // The third is a batch norm, with a weight and a bias of each channel too.
  for (const char* const name : {"attention_norm", "convolution_norm", "batch_norm", "norm"}) {
    tower.norm(kLayerNorm, std::string("layers.") + name, width, sizes.layers);
  }
}

void count_parakeet(ConfigReader& config, ModelSpec& spec) {
  const std::string_view key = config.has("audio_config") ? "audio_config" : "sound_config";
  if (!config.is_object(key)) return;
  ConfigReader sound = config.object_or_empty(key);
  ConformerSizes sizes;
  sizes.width = sound.size_or({"hidden_size"}, 1024);
  sizes.layers = sound.layers_or({"num_hidden_layers"}, 24);
  sizes.bias = sound.flag_or({"attention_bias"}, false);
  TowerWeights tower(spec, ModelPart::audio);
  add_subsampling(tower, sound, sizes.width);
  add_sound_layers(tower, sound, sizes);
  add_projector(spec, {"sound", sizes.width, sound.size({"projection_hidden_size"}),
                       sound.flag_or({"projection_bias"}, false)});
  sound.ignore({"scale_input", "max_position_embeddings", "dropout", "dropout_positions",
                "layerdrop", "activation_dropout", "sampling_rate"});
  ignore_tower_keys(sound);
  sound.finish();
}

}  // namespace

void count_nemotron_omni_towers(ConfigReader& config, ModelSpec& spec) {
  count_radio(config, spec);
  count_image_projector(config, spec);
  count_parakeet(config, spec);
  config.ignore({"force_image_size", "video_pruning_rate", "sound_context_token_id",
                 "video_context_token_id"});
}

}  // namespace headroom::detail
