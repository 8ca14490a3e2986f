// Audio towers of Gemma 3n and 4, Conformers (arXiv 2005.08100, 2303.01037), and the image tower of
// Gemma 3n, which is counted.
#include <fmt/format.h>

#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

/// The beginning of a Conformer's keys in the config of its tower.
struct KeyPrefix {
  std::string_view prefix;
  [[nodiscard]] std::string operator()(std::string_view key) const {
    return fmt::format("{}{}", prefix, key);
  }
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

/// Sizes that both models name alike.
ConformerSpec read_conformer(ConfigReader& audio, KeyPrefix key, const NormSpec& norm) {
  ConformerSpec conformer;
  conformer.chunk = audio.size_or({key("attention_chunk_size")}, 12);
  const std::string left_key = key("attention_context_left");
  const std::int64_t left = audio.size_or({left_key}, 13);
  if (left < 2) audio.fail(left_key, "leaves a row no key", "use 2 or more");
  conformer.earlier = left - 1;
  conformer.later = audio.count_or({key("attention_context_right")}, 0);
  conformer.kernel_size = audio.size_or({key("conv_kernel_size")}, 5);
  conformer.convolution_norm = norm;
  conformer.network_factor = audio.number_or({key("residual_weight")}, 0.5);
  conformer.clip = audio.number_or({"gradient_clipping"}, 1e10);
  return conformer;
}

/// The layers of a tower, without its convolutions before them.
void read_layers(ConfigReader& audio, KeyPrefix key, ActivationKind activation,
                 AudioTowerSpec& tower) {
  constexpr std::int64_t kExpansion = 4;
  StackSpec& stack = tower.stack;
  stack.num_layers = audio.layers_or({key("num_hidden_layers")}, 12);
  const std::string heads = key("num_attention_heads");
  stack.self_attention =
      multi_head_attention(audio, heads, audio.size_or({heads}, 8), tower.hidden_size);
  stack.self_attention.soft_cap = audio.number_or({key("attention_logit_cap")}, 50);
  stack.ffn = {FfnKind::plain, product(audio, "hidden_size", kExpansion, tower.hidden_size),
               activation, false};
  const NormSpec norm{NormKind::rms_norm, false, audio.number_or({"rms_norm_eps"}, 1e-6)};
  stack.norm = {NormKind::rms_norm, false, 1e-6};  // the class's own, whatever rms_norm_eps is
  stack.conformer = read_conformer(audio, key, norm);
}

/// Segments of the frames that become one row of a clip.
void set_segments(AudioTowerSpec& tower) {
  tower.embedding.input = InputKind::audio;
  tower.segment_frames = SubsamplingSpec::kFrames;
  tower.segment_positions = 1;
  tower.attended_segments = tower.stack.conformer->chunk;
  tower.rule = ClipRule::shorter_last;
}

/// Refuses convolutions of another size than 3 × 3 with steps of 2.
void expect_grids(ConfigReader& audio) {
  const auto expect = [&](std::string_view key, std::int64_t only) {
    if (!audio.has(key)) return;
    for (const auto& pair : audio.pairs(key)) {
      if (pair[0] == only && pair[1] == only) continue;
      audio.fail(key, "is not supported", fmt::format("use {} on both sides", only));
    }
  };
  expect("sscp_conv_kernel_size", 3);
  expect("sscp_conv_stride_size", 2);
}

/// Hard tokens of a modality, which have rows of a table and a norm of their own.
HardTokensSpec add_hard_tokens(ConfigReader& tower, ModelSpec& spec, const char* name,
                               std::int64_t width, std::int64_t first_id) {
  TowerWeights projector(spec, ModelPart::projector, CountedUse::loaded);
  const std::string path(name);
  HardTokensSpec hard;
  hard.first_id = tower.count_or({"vocab_offset"}, first_id);
  hard.count = tower.size_or({"vocab_size"}, 128);
  hard.width = width;
  hard.eps = tower.number_or({"rms_norm_eps"}, 1e-6);
  projector.add(path + ".table.weight", {hard.count, width}, WeightRole::embedding);
  projector.norm(NormKind::rms_norm, path + ".hard_norm", width);
  hard.table = "projector." + path + ".table.weight";
  hard.norm = "projector." + path + ".hard_norm.weight";
  return hard;
}

/// Sound of a clip, in segments of the frames that become one row.
AudioSpec read_gemma3n_sound(ConfigReader& audio) {
  const std::vector<std::int64_t> channels = read_channels(audio, "sscp_conv_channel_size");
  expect_grids(audio);
  AudioSpec sound;
  sound.num_mel_bins = audio.size_or({"input_feat_size"}, 128);
  sound.joined_frames = SubsamplingSpec::kFrames;
  sound.activation = ActivationKind::relu;
  const NormSpec norm{NormKind::layer_norm, false,
                      audio.number_or({"sscp_conv_group_norm_eps"}, 1e-3)};
  sound.subsampling = SubsamplingSpec{channels[0], channels[1], norm, SubsamplingRows::causal_norm};
  return sound;
}

void read_gemma3n_audio(ConfigReader& config, ModelSpec& spec) {
  ConfigReader audio = config.object_or_empty("audio_config");
  constexpr std::int64_t kFirstId = 262144 + 128;  // behind the tokens of text and of images
  AudioTowerSpec tower;
  tower.hidden_size = audio.size_or({"hidden_size"}, 1536);
  read_layers(audio, KeyPrefix{"conf_"}, ActivationKind::silu, tower);
  ConformerSpec& conformer = *tower.stack.conformer;
  conformer.keys = ConformerKeys::plain;
  if (conformer.later != 0) {
    audio.fail("conf_attention_context_right", "is not supported", "use 0");
  }
  tower.embedding.audio = read_gemma3n_sound(audio);
  set_segments(tower);
  tower.padded_tokens = config.size_or({"audio_soft_tokens_per_image"}, 188);
  HardTokensSpec hard = add_hard_tokens(audio, spec, "audio", tower.hidden_size, kFirstId);
  hard.projection = "audio_projector.linear.weight";
  const NormSpec norm{NormKind::rms_norm, false, hard.eps};
  NormSpec unweighted = norm;
  unweighted.weight = NormWeight::none;
  const std::int64_t group = audio.size_or({"conf_reduction_factor"}, 4);
  if (group > 1) tower.projector.emplace_back(GroupStep{RowGroup::first, group});
  tower.projector.emplace_back(NormStep{"norm", norm});
  tower.projector.emplace_back(LinearStep{"linear", spec.hidden_size, false});
  tower.projector.emplace_back(NormStep{"output_norm", unweighted});
  spec.embedding.hard_tokens.push_back(std::move(hard));
  spec.embedding.placeholder_id = spec.embedding.vocab_size - 1;
  audio.ignore({"sscp_conv_eps"});
  ignore_tower_keys(audio);
  read_common_keys(audio, spec);
  audio.finish();
  spec.audio_tower = std::move(tower);
}

/// MobileNet V5, whose layers no key describes: the sum over the tensors of timm's
/// mobilenetv5_300m_enc (timm 1.0).
void count_mobile_net(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kParameters = 294'126'912;
  constexpr std::int64_t kWidth = 2048;
  constexpr std::int64_t kFirstId = 262144;  // behind the tokens of text
  ConfigReader vision = config.object_or_empty("vision_config");
  vision.expect_text("architecture", "mobilenetv5_300m_enc");
  const std::int64_t width = vision.size_or({"hidden_size"}, kWidth);
  if (width != kWidth) {
    vision.fail("hidden_size", "is not that of mobilenetv5_300m_enc", "use 2048");
  }
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("weights", {kParameters}, WeightRole::convolution);
  HardTokensSpec hard = add_hard_tokens(vision, spec, "image", width, kFirstId);
  TowerWeights projector(spec, ModelPart::projector, CountedUse::loaded);
  projector.norm(NormKind::rms_norm, "image.norm", width);
  projector.add("image.weight", {spec.hidden_size, width}, WeightRole::projector);
  hard.projection = "projector.image.weight";
  spec.embedding.hard_tokens.push_back(std::move(hard));
  vision.ignore({"do_pooling", "label_names", "num_classes", "model_args", "pretrained_cfg",
                 "global_pool", "num_features"});
  ignore_tower_keys(vision);
  read_common_keys(vision, spec);
  vision.finish();
}

}  // namespace

void read_gemma3n_towers(ConfigReader& config, ModelSpec& spec) {
  count_mobile_net(config, spec);
  read_gemma3n_audio(config, spec);
  config.ignore({"vision_soft_tokens_per_image"});
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

void read_gemma4_layers(ConfigReader& audio, AudioTowerSpec& tower) {
  read_layers(audio, KeyPrefix{""}, read_activation(audio, {"hidden_act"}, ActivationKind::silu),
              tower);
  ConformerSpec& conformer = *tower.stack.conformer;
  if (audio.flag_or({"use_clipped_linears"}, true)) conformer.bounds = LayerBounds::stored;
  audio.ignore({"attention_invalid_logits_value"});  // far below every capped score
  tower.embedding.audio = read_gemma4_sound(audio, conformer.convolution_norm);
  set_segments(tower);
}

}  // namespace

void read_gemma4_audio(ConfigReader& config, ModelSpec& spec) {
  auto present = config.object("audio_config");
  if (!present) return;
  ConfigReader& audio = *present;
  AudioTowerSpec tower;
  tower.hidden_size = audio.size_or({"hidden_size"}, 1024);
  read_gemma4_layers(audio, tower);
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
