// The audio tower of Phi-4 multimodal (arXiv 2503.01743), which is counted: a Conformer (arXiv
// 2005.08100) behind strided convolutions. Of two spellings of a key, the second is that of
// Microsoft's own class (speech_conformer_encoder.py of Phi-4-multimodal-instruct).
#include <bit>

#include "../common_keys.h"
#include "image_towers.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kPhiConvolution = WeightRole::convolution;
constexpr auto kPhiProjector = WeightRole::projector;
constexpr auto kPhiNorm = NormKind::layer_norm;

/// The size `key`, or `nested` in the object `object`, as Microsoft's class has it.
std::int64_t read_nested_size(ConfigReader& audio, std::string_view object, std::string_view nested,
                              std::string_view key, std::int64_t otherwise) {
  const std::int64_t size = audio.size_or({key}, otherwise);
  auto settings = audio.object(object);
  if (!settings) return size;
  settings->expect_text("type", "t5");  // of the positions
  const std::int64_t stated = settings->size_or({nested}, size);
  settings->finish();
  return stated;
}

/// Two linear layers from a tower to the text model.
void add_projection(ModelSpec& spec, const std::string& name, std::int64_t width) {
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear(name + ".up", width, spec.hidden_size, kPhiProjector);
  projector.linear(name + ".down", spec.hidden_size, spec.hidden_size, kPhiProjector);
}

/// Halvings of both sides of a spectrogram, by depthwise and pointwise convolutions.
void add_halvings(ConfigReader& audio, std::int64_t width, TowerWeights& tower) {
  constexpr std::int64_t kArea = 9;  // of a kernel of 3 × 3
  const std::int64_t channels =
      read_nested_size(audio, "nemo_conv_settings", "conv_channels", "nemo_conv_channels", 1024);
  const std::int64_t reduction = audio.size_or({"time_reduction"}, 8);
  const auto bits = static_cast<std::uint64_t>(reduction);
  if (reduction < 2 || !std::has_single_bit(bits)) {
    audio.fail("time_reduction", "does not halve the sound", "use a power of 2");
  }
  const std::int64_t halvings = std::countr_zero(bits);
  std::int64_t bins = audio.size_or({"input_size"}, 80);
  for (std::int64_t i = 0; i < halvings; ++i) bins = (bins - 1) / 2 + 1;
  bins = audio.size_or({"nemo_final_size"}, bins);  // as the class stores them
  // Numbers in the class's sequence of convolutions and activations.
  tower.linear("convolutions.0", kArea, channels, kPhiConvolution);
  for (std::int64_t i = 1; i < halvings; ++i) {
    const std::string depthwise = std::to_string(3 * i - 1);
    const std::string pointwise = std::to_string(3 * i);
    tower.linear("convolutions." + depthwise, kArea, channels, kPhiConvolution);
    tower.linear("convolutions." + pointwise, channels, channels, kPhiConvolution);
  }
  tower.linear("input", product(audio, "nemo_conv_channels", bins, channels), width,
               WeightRole::embedding);
}

void add_conformer_layers(ConfigReader& audio, std::int64_t width, TowerWeights& tower) {
  const std::int64_t layers = audio.layers_or({"num_blocks", "num_hidden_layers"}, 24);
  const std::int64_t inner = audio.size_or({"intermediate_size", "linear_units"}, 1536);
  const std::int64_t wide = audio.size_or({"ext_pw_out_channel"}, 1024);
  const std::int64_t separable =
      audio.size_or({"depthwise_separable_out_channel", "depthwise_seperable_out_channel"}, 1024);
  const std::int64_t deep =
      product(audio, "depthwise_multiplier", audio.size_or({"depthwise_multiplier"}, 1), width);
  for (const char* const name : {"layers.first_mlp", "layers.second_mlp"}) {
    const std::string path(name);
    tower.norm(kPhiNorm, path + ".norm", width, layers);
    tower.linear(path + ".gate_up", width, product(audio, "intermediate_size", 2, inner),
                 WeightRole::mlp, layers);
    tower.linear(path + ".down", inner, width, WeightRole::mlp, layers);
  }
  for (const char* const name : {"query", "key", "value", "output"}) {
    tower.linear(std::string("layers.attention.") + name, width, width, WeightRole::attention,
                 layers);
  }
  for (const char* const name : {"attention_norm", "convolution.norm", "norm"}) {
    tower.norm(kPhiNorm, std::string("layers.") + name, width, layers);
  }
  tower.linear("layers.convolution.in", width, product(audio, "ext_pw_out_channel", 2, wide),
               kPhiConvolution, layers);
  for (const char* const name : {"gate_bias", "up_bias"}) {
    tower.add(std::string("layers.convolution.") + name, {wide}, kPhiConvolution, layers);
  }
  tower.linear("layers.convolution.depthwise", audio.size_or({"kernel_size"}, 3), deep,
               kPhiConvolution, layers);
  tower.linear("layers.convolution.pointwise", deep, separable, kPhiConvolution, layers);
  tower.linear("layers.convolution.out", width, wide, kPhiConvolution, layers);
}

}  // namespace

void count_phi4_audio(ConfigReader& audio, ModelSpec& spec) {
  const std::int64_t width = audio.size_or({"hidden_size", "attention_dim"}, 1024);
  const std::int64_t heads = audio.size_or({"num_attention_heads", "attention_heads"}, 16);
  const bool symmetric = audio.flag_or({"bias_symmetric"}, false);
  const std::int64_t distance = read_nested_size(audio, "relative_attention_bias_args",
                                                 "t5_bias_max_distance", "bias_max_distance", 1000);
  const std::int64_t distances = product(audio, "bias_max_distance", distance, symmetric ? 1 : 2);
  TowerWeights tower(spec, ModelPart::audio);
  add_halvings(audio, width, tower);
  tower.add("relative_positions", {distances, heads}, WeightRole::relative_position_bias);
  add_conformer_layers(audio, width, tower);
  const std::int64_t joined =
      product(audio, "downsample_rate", audio.size_or({"downsample_rate"}, 1), width);
  add_projection(spec, "speech", joined);
  add_projection(spec, "speech_beside_images", joined);
  audio.ignore({"activation", "chunk_size", "left_chunk", "dropout_rate", "conv_activation",
                "conv_glu_type", "nemo_activation", "audio_token_id", "feature_layer"});
  ignore_tower_keys(audio);
  read_common_keys(audio, spec);
  audio.finish();
}

void read_phi4_multimodal_towers(ConfigReader& config, ModelSpec& spec) {
  read_phi4_vision_tower(config, spec);
  ConfigReader audio = config.object_or_empty("audio_config");
  count_phi4_audio(audio, spec);
  spec.assumptions.emplace_back("its LoRA adapters for images and speech are not counted");
}

}  // namespace headroom::detail
