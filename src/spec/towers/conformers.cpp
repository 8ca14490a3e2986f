// Audio towers of Gemma 4, which runs, and of Gemma 3n, Conformers (arXiv 2005.08100, 2303.01037),
// and the image tower of Gemma 3n, which are counted.
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kConformerInput = WeightRole::embedding;
constexpr auto kConformerOutput = WeightRole::projector;

/// Height and width of a convolution's kernel and of its steps.
struct ConvolutionGrid {
  std::vector<std::int64_t> kernel{3, 3};
  std::vector<std::int64_t> stride{2, 2};
};

struct ConformerSizes {
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kernel = 0;             ///< of a layer's convolution
  std::vector<std::int64_t> channels;  ///< of both convolutions before the layers
  std::int64_t input_width = 0;        ///< of a position after these
};

/// Channels of two convolutions, which `key` lists.
std::vector<std::int64_t> read_channels(ConfigReader& audio, std::string_view key) {
  std::vector<std::int64_t> channels = audio.list_of_counts(key);
  if (channels.empty()) channels = {128, 32};
  if (channels.size() != 2) {
    audio.fail(key, "does not name two convolutions", "use two numbers of channels");
  }
  return channels;
}

void add_convolutions(ConfigReader& audio, std::string_view key, const ConformerSizes& sizes,
                      const std::vector<ConvolutionGrid>& grids, TowerWeights& tower) {
  std::int64_t before = 1;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const std::string name = "conv" + std::to_string(i + 1);
    const std::int64_t area = product(audio, key, grids[i].kernel[0], grids[i].kernel[1]);
    tower.add(name + ".weight", {sizes.channels[i], product(audio, key, before, area)},
              kConformerInput);
    tower.add(name + "_norm.weight", {sizes.channels[i]}, WeightRole::norm);
    before = sizes.channels[i];
  }
  tower.add("input.weight", {sizes.width, sizes.input_width}, kConformerInput);
}

void add_layers(ConfigReader& audio, const ConformerSizes& sizes, TowerWeights& tower) {
  if (sizes.width % sizes.heads != 0) {
    audio.fail("hidden_size", "is no multiple of the number of heads",
               "use heads that divide hidden_size");
  }
  const std::int64_t width = sizes.width;
  const std::int64_t layers = sizes.layers;
  constexpr std::int64_t kExpansion = 4;  // of both feed-forward networks of a layer
  const std::int64_t inner = product(audio, "hidden_size", kExpansion, width);
  tower.add("layers.mlp.up.weight", {inner, width}, WeightRole::mlp, 2 * layers);
  tower.add("layers.mlp.down.weight", {width, inner}, WeightRole::mlp, 2 * layers);
  for (const char* const name : {"query", "key", "value", "output", "relative_key"}) {
    tower.add(std::string("layers.attention.") + name + ".weight", {width, width},
              WeightRole::attention, layers);
  }
  tower.add("layers.attention.scale", {width / sizes.heads}, WeightRole::attention, layers);
  constexpr auto kConvolution = WeightRole::convolution;
  tower.add("layers.convolution.in.weight", {2 * width, width}, kConvolution, layers);
  tower.add("layers.convolution.out.weight", {width, width}, kConvolution, layers);
  tower.add("layers.convolution.weight", {width, sizes.kernel}, kConvolution, layers);
  constexpr std::int64_t kNorms = 9;  // two of each network and of the convolution, three others
  tower.norm(NormKind::rms_norm, "layers.norms", width, kNorms * layers);
}

/// The kernels and steps of Gemma 3n's convolutions.
std::vector<ConvolutionGrid> read_grids(ConfigReader& audio) {
  std::vector<ConvolutionGrid> grids(2);
  const auto kernels = audio.pairs("sscp_conv_kernel_size");
  const auto strides = audio.pairs("sscp_conv_stride_size");
  for (std::size_t i = 0; i < grids.size(); ++i) {
    if (i < kernels.size()) grids[i].kernel = {kernels[i][0], kernels[i][1]};
    if (i < strides.size()) grids[i].stride = {strides[i][0], strides[i][1]};
  }
  return grids;
}

/// Bins of the spectrogram after one of the convolutions, which pads both sides with one.
std::int64_t bins_after(ConfigReader& audio, std::int64_t bins, const ConvolutionGrid& grid) {
  const std::int64_t padded = audio.sum("input_feat_size", bins, 2);
  if (padded < grid.kernel[1]) {
    audio.fail("input_feat_size", "is smaller than a kernel", "use a larger number of bins");
  }
  return (padded - grid.kernel[1]) / grid.stride[1] + 1;
}

/// Tokens of a modality: a table, norms of the table's rows and of the tower's, a projection.
void add_embedder(ConfigReader& tower, ModelSpec& spec, const char* name, std::int64_t width) {
  TowerWeights projector(spec, ModelPart::projector);
  const std::string path(name);
  projector.add(path + ".table.weight", {tower.size_or({"vocab_size"}, 128), width},
                kConformerInput);
  projector.norm(NormKind::rms_norm, path + ".norms", width, 2);
  projector.add(path + ".weight", {spec.hidden_size, width}, kConformerOutput);
  tower.ignore({"vocab_offset"});
}

void count_gemma3n_audio(ConfigReader& config, ModelSpec& spec) {
  ConfigReader audio = config.object_or_empty("audio_config");
  ConformerSizes sizes;
  sizes.width = audio.size_or({"hidden_size"}, 1536);
  sizes.layers = audio.layers_or({"conf_num_hidden_layers"}, 12);
  sizes.heads = audio.size_or({"conf_num_attention_heads"}, 8);
  sizes.kernel = audio.size_or({"conf_conv_kernel_size"}, 5);
  constexpr const char* kChannels = "sscp_conv_channel_size";
  sizes.channels = read_channels(audio, kChannels);
  const std::vector<ConvolutionGrid> grids = read_grids(audio);
  std::int64_t bins = audio.size_or({"input_feat_size"}, 128);
  for (const ConvolutionGrid& grid : grids) bins = bins_after(audio, bins, grid);
  sizes.input_width = product(audio, kChannels, bins, sizes.channels[1]);
  TowerWeights tower(spec, ModelPart::audio);
  add_convolutions(audio, kChannels, sizes, grids, tower);
  add_layers(audio, sizes, tower);
  add_embedder(audio, spec, "audio", sizes.width);
  audio.ignore({"conf_attention_chunk_size", "conf_attention_context_left",
                "conf_attention_context_right", "conf_attention_logit_cap", "conf_reduction_factor",
                "conf_residual_weight", "gradient_clipping", "sscp_conv_group_norm_eps",
                "sscp_conv_eps"});
  ignore_tower_keys(audio);
  read_common_keys(audio, spec);
  audio.finish();
}

/// MobileNet V5, whose layers no key describes: the sum over the tensors of timm's
/// mobilenetv5_300m_enc (timm 1.0).
void count_mobile_net(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kParameters = 294'126'912;
  constexpr std::int64_t kWidth = 2048;
  ConfigReader vision = config.object_or_empty("vision_config");
  vision.expect_text("architecture", "mobilenetv5_300m_enc");
  const std::int64_t width = vision.size_or({"hidden_size"}, kWidth);
  if (width != kWidth) {
    vision.fail("hidden_size", "is not that of mobilenetv5_300m_enc", "use 2048");
  }
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("weights", {kParameters}, WeightRole::convolution);
  add_embedder(vision, spec, "image", width);
  vision.ignore({"do_pooling", "label_names", "num_classes", "model_args", "pretrained_cfg",
                 "global_pool", "num_features"});
  ignore_tower_keys(vision);
  read_common_keys(vision, spec);
  vision.finish();
}

}  // namespace

void count_gemma3n_towers(ConfigReader& config, ModelSpec& spec) {
  count_mobile_net(config, spec);
  count_gemma3n_audio(config, spec);
  config.ignore({"audio_soft_tokens_per_image", "vision_soft_tokens_per_image"});
}

namespace {

/// Sound of a clip, in segments of the frames that become one row.
AudioSpec read_gemma4_sound(ConfigReader& audio, const NormSpec& norm) {
  constexpr const char* kChannels = "subsampling_conv_channels";
  const std::vector<std::int64_t> channels = read_channels(audio, kChannels);
  AudioSpec sound;
  // The class takes a quarter of the first convolution's channels for that of the mel bins.
  sound.num_mel_bins = channels[0] / 4 * 4;
  if (sound.num_mel_bins == 0) audio.fail(kChannels, "begins with fewer than 4", "use 4 or more");
  sound.joined_frames = SubsamplingSpec::kFrames;
  sound.activation = ActivationKind::relu;
  sound.subsampling =
      SubsamplingSpec{channels[0], channels[1], {NormKind::layer_norm, false, norm.eps}};
  return sound;
}

ConformerSpec read_gemma4_conformer(ConfigReader& audio, const NormSpec& norm) {
  ConformerSpec conformer;
  conformer.chunk = audio.size_or({"attention_chunk_size"}, 12);
  const std::int64_t left = audio.size_or({"attention_context_left"}, 13);
  if (left < 2) {
    audio.fail("attention_context_left", "leaves a row no key", "use 2 or more");
  }
  conformer.earlier = left - 1;
  conformer.later = audio.count_or({"attention_context_right"}, 0);
  conformer.kernel_size = audio.size_or({"conv_kernel_size"}, 5);
  conformer.convolution_norm = norm;
  conformer.network_factor = audio.number_or({"residual_weight"}, 0.5);
  conformer.clip = audio.number_or({"gradient_clipping"}, 1e10);
  if (audio.flag_or({"use_clipped_linears"}, true)) conformer.bounds = LayerBounds::stored;
  audio.ignore({"attention_invalid_logits_value"});  // far below every capped score
  return conformer;
}

void read_gemma4_layers(ConfigReader& audio, AudioTowerSpec& tower) {
  constexpr std::int64_t kExpansion = 4;
  StackSpec& stack = tower.stack;
  stack.num_layers = audio.layers_or({"num_hidden_layers"}, 12);
  stack.self_attention = multi_head_attention(
      audio, "num_attention_heads", audio.size_or({"num_attention_heads"}, 8), tower.hidden_size);
  stack.self_attention.soft_cap = audio.number_or({"attention_logit_cap"}, 50);
  stack.ffn = {FfnKind::plain, product(audio, "hidden_size", kExpansion, tower.hidden_size),
               read_activation(audio, {"hidden_act"}, ActivationKind::silu), false};
  const NormSpec norm{NormKind::rms_norm, false, audio.number_or({"rms_norm_eps"}, 1e-6)};
  stack.norm = {NormKind::rms_norm, false, 1e-6};  // the class's own, whatever rms_norm_eps is
  stack.conformer = read_gemma4_conformer(audio, norm);
  tower.embedding.audio = read_gemma4_sound(audio, norm);
}

}  // namespace

void read_gemma4_audio(ConfigReader& config, ModelSpec& spec) {
  auto present = config.object("audio_config");
  if (!present) return;
  ConfigReader& audio = *present;
  AudioTowerSpec tower;
  tower.hidden_size = audio.size_or({"hidden_size"}, 1024);
  tower.embedding.input = InputKind::audio;
  read_gemma4_layers(audio, tower);
  tower.segment_frames = SubsamplingSpec::kFrames;
  tower.segment_positions = 1;
  tower.attended_segments = tower.stack.conformer->chunk;
  tower.rule = ClipRule::shorter_last;
  const std::int64_t out = audio.size_or({"output_proj_dims"}, 1536);
  const NormSpec norm{NormKind::rms_norm, false, tower.stack.conformer->convolution_norm.eps,
                      NormWeight::none};
  tower.projector = {LinearStep{"output", out, true, ModelPart::audio}, NormStep{"norm", norm},
                     LinearStep{"linear", spec.hidden_size, false}};
  ignore_tower_keys(audio);
  read_common_keys(audio, spec);
  audio.finish();
  spec.audio_tower = std::move(tower);
}

}  // namespace headroom::detail
