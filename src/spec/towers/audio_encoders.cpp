// Audio towers that are counted: Whisper's encoder in Voxtral and Qwen2.5-Omni (arXiv 2503.20215),
// and Qwen3-Omni's own (arXiv 2509.17765).
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kInputRole = WeightRole::embedding;
constexpr auto kOutputRole = WeightRole::projector;
constexpr std::int64_t kAudioKernel = 3;  // of every convolution, as in Whisper

TowerLayers read_audio_layers(ConfigReader& audio) {
  TowerLayers layers;
  layers.width = audio.size_or({"hidden_size", "d_model"}, 1280);
  layers.inner = audio.size_or({"intermediate_size", "encoder_ffn_dim"}, 5120);
  layers.count = audio.layers_or({"num_hidden_layers", "encoder_layers"}, 32);
  audio.ignore({"encoder_attention_heads", "activation_function", "activation_dropout", "dropout",
                "scale_embedding"});
  ignore_tower_keys(audio);
  return layers;
}

/// Whisper's encoder (arXiv 2212.04356) without its positions. Returns its layers.
TowerLayers count_whisper_encoder(ConfigReader& audio, TowerWeights& tower) {
  TowerLayers layers = read_audio_layers(audio);
  layers.key_bias = false;
  const std::int64_t bins = audio.size_or({"num_mel_bins"}, 128);
  tower.linear("conv1", product(audio, "num_mel_bins", bins, kAudioKernel), layers.width,
               kInputRole);
  tower.linear("conv2", product(audio, "hidden_size", layers.width, kAudioKernel), layers.width,
               kInputRole);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  return layers;
}

/// Width of the outputs, which replace the text model's embeddings.
std::int64_t read_output_width(ConfigReader& audio, ModelSpec& spec) {
  const std::int64_t width = audio.size_or({"output_dim"}, 3584);
  if (width != spec.hidden_size) {
    spec.not_run = "its audio tokens do not have the width of the text model";
  }
  // Positions are sines; the others divide a recording into windows.
  audio.ignore({"max_source_positions", "n_window", "n_window_infer", "conv_chunksize"});
  return width;
}

/// Columns after one of the strided convolutions, with padding 1.
std::int64_t halved(std::int64_t columns) { return (columns + 1) / 2; }

void ignore_thinker_keys(ConfigReader& config) {
  config.ignore({"position_id_per_seconds", "seconds_per_chunk", "audio_start_token_id",
                 "audio_end_token_id", "user_token_id", "ignore_index"});
}

}  // namespace

void count_voxtral_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader audio = config.object_or_empty("audio_config");
  TowerWeights tower(spec, ModelPart::audio);
  const TowerLayers layers = count_whisper_encoder(audio, tower);
  const std::int64_t positions = audio.size_or({"max_source_positions"}, 1500);
  tower.add("position_embeddings.weight", {positions, layers.width}, kInputRole);
  audio.finish();
  // Four frames stand side by side in the projector's input, which has the FFN's width.
  TowerWeights projector(spec, ModelPart::projector);
  projector.add("up.weight", {spec.hidden_size, layers.inner}, kOutputRole);
  projector.add("down.weight", {spec.hidden_size, spec.hidden_size}, kOutputRole);
  config.ignore({"projector_hidden_act", "hidden_size"});  // that of the text model
}

void count_gemma4_audio(ConfigReader& config, ModelSpec& spec) {
  auto audio = config.object("audio_config");
  if (!audio) return;
  const std::int64_t width = audio->size_or({"hidden_size"}, 1024);
  const std::int64_t layers = audio->layers_or({"num_hidden_layers"}, 12);
  const std::int64_t heads = audio->size_or({"num_attention_heads"}, 8);
  const std::int64_t out = audio->size_or({"output_proj_dims"}, 1536);
  std::vector<std::int64_t> channels = audio->list_of_counts("subsampling_conv_channels");
  if (channels.empty()) channels = {128, 32};
  if (channels.size() != 2 || width % heads != 0) {
    audio->fail("subsampling_conv_channels", "does not name two convolutions, or heads are uneven",
                "use two numbers of channels, and heads that divide hidden_size");
  }
  TowerWeights tower(spec, ModelPart::audio);
  const std::int64_t area = kAudioKernel * kAudioKernel;
  tower.add("conv1.weight", {channels[0], area}, kInputRole);
  tower.add("conv1_norm.weight", {channels[0]}, WeightRole::norm);
  tower.add("conv2.weight",
            {channels[1], product(*audio, "subsampling_conv_channels", channels[0], area)},
            kInputRole);
  tower.add("conv2_norm.weight", {channels[1]}, WeightRole::norm);
  // The class takes a quarter of the first convolution's channels for that of the mel bins.
  tower.add("input.weight",
            {width, product(*audio, "subsampling_conv_channels", channels[0] / 4, channels[1])},
            kInputRole);
  constexpr std::int64_t kExpansion = 4;  // of both feed-forward networks of a layer
  const std::int64_t inner = product(*audio, "hidden_size", kExpansion, width);
  constexpr auto kMlp = WeightRole::mlp;
  tower.add("layers.mlp.up.weight", {inner, width}, kMlp, 2 * layers);
  tower.add("layers.mlp.down.weight", {width, inner}, kMlp, 2 * layers);
  for (const char* const name : {"query", "key", "value", "output", "relative_key"}) {
    tower.add(std::string("layers.attention.") + name + ".weight", {width, width},
              WeightRole::attention, layers);
  }
  tower.add("layers.attention.scale", {width / heads}, WeightRole::attention, layers);
  tower.add("layers.convolution.in.weight", {2 * width, width}, WeightRole::convolution, layers);
  tower.add("layers.convolution.out.weight", {width, width}, WeightRole::convolution, layers);
  tower.add("layers.convolution.weight", {width, audio->size_or({"conv_kernel_size"}, 5)},
            WeightRole::convolution, layers);
  constexpr std::int64_t kNorms = 9;  // two of each network and of the convolution, three others
  tower.norm(NormKind::rms_norm, "layers.norms", width, kNorms * layers);
  tower.linear("output", width, out, kOutputRole);
  TowerWeights projector(spec, ModelPart::projector);
  projector.add("audio.weight", {spec.hidden_size, out}, kOutputRole);
  audio->ignore({"attention_chunk_size", "attention_context_left", "attention_context_right",
                 "attention_invalid_logits_value", "attention_logit_cap", "gradient_clipping",
                 "residual_weight", "use_clipped_linears"});
  ignore_tower_keys(*audio);
  read_common_keys(*audio, spec);
  audio->finish();
}

void read_qwen2_5_omni_towers(ConfigReader& config, ModelSpec& spec) {
  read_qwen2_5_vl_tower(config, spec);
  ConfigReader audio = config.object_or_empty("audio_config");
  TowerWeights tower(spec, ModelPart::audio);
  const TowerLayers layers = count_whisper_encoder(audio, tower);
  const std::int64_t width = read_output_width(audio, spec);
  tower.add("first_and_last_token", {2, width}, kInputRole);
  audio.finish();
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear("audio", layers.width, width, kOutputRole);
  ignore_thinker_keys(config);
}

void read_qwen3_omni_towers(ConfigReader& config, ModelSpec& spec) {
  read_qwen3_vl_tower(config, spec);
  ConfigReader audio = config.object_or_empty("audio_config");
  const TowerLayers layers = read_audio_layers(audio);
  const std::int64_t channels = audio.size_or({"downsample_hidden_size"}, 480);
  const std::int64_t bins = audio.size_or({"num_mel_bins"}, 128);
  const std::int64_t width = read_output_width(audio, spec);
  const std::int64_t area = kAudioKernel * kAudioKernel;
  TowerWeights tower(spec, ModelPart::audio);
  tower.linear("conv1", area, channels, kInputRole);
  tower.linear("conv2", product(audio, "downsample_hidden_size", channels, area), channels,
               kInputRole, 2);
  tower.add("input.weight",
            {layers.width, product(audio, "num_mel_bins", channels, halved(halved(halved(bins))))},
            kInputRole);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  audio.finish();
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear("audio.up", layers.width, layers.width, kOutputRole);
  projector.linear("audio.down", layers.width, width, kOutputRole);
  ignore_thinker_keys(config);
}

}  // namespace headroom::detail
