// Audio towers: Whisper's encoder in Voxtral, Qwen2.5-Omni (arXiv 2503.20215) and, behind 2-D
// convolutions, Qwen3-Omni (arXiv 2509.17765), which run; and Gemma 4's, which is counted.
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kInputRole = WeightRole::embedding;
constexpr auto kOutputRole = WeightRole::projector;
constexpr std::int64_t kAudioKernel = 3;  // of every convolution, as in Whisper

/// Sets the positions of a segment, whose number the encoder's convolutions halve.
void set_segment(AudioTowerSpec& tower, std::int64_t positions) {
  tower.segment_positions = positions;
  tower.segment_frames = 2 * positions;
}

/// Computed positions within each of the segments, of which clips have whole ones.
void set_sines(AudioTowerSpec& tower) {
  tower.position.kind = PositionKind::sinusoidal;
  tower.position.table = PositionTable::tensor2tensor;
  tower.rule = ClipRule::whole_segments;
}

/// Whisper's encoder (arXiv 2212.04356).
AudioTowerSpec read_whisper_encoder(ConfigReader& audio) {
  AudioTowerSpec tower;
  tower.hidden_size = audio.size_or({"hidden_size", "d_model"}, 1280);
  tower.embedding.input = InputKind::audio;
  tower.embedding.audio = AudioSpec{audio.size_or({"num_mel_bins"}, 128), ActivationKind::gelu};
  tower.position.kind = PositionKind::learned;
  tower.position.max_position_embeddings = audio.size_or({"max_source_positions"}, 1500);
  StackSpec& stack = tower.stack;
  stack.num_layers = audio.layers_or({"num_hidden_layers", "encoder_layers"}, 32);
  const std::int64_t heads = audio.size_or({"num_attention_heads", "encoder_attention_heads"}, 20);
  stack.self_attention =
      multi_head_attention(audio, "num_attention_heads", heads, tower.hidden_size);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.key_bias = false;
  stack.self_attention.output_bias = true;
  const std::int64_t inner = audio.size_or({"intermediate_size", "encoder_ffn_dim"}, 5120);
  const ActivationKind activation =
      read_activation(audio, {"activation_function"}, ActivationKind::gelu);
  stack.ffn = {FfnKind::plain, inner, activation, true};
  stack.norm = {NormKind::layer_norm, true, 1e-5};
  const double dropout = audio.probability_or({"dropout"}, 0);
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
  stack.dropout.attention_probs = audio.probability_or({"attention_dropout"}, 0);
  stack.dropout.ffn_activation = audio.probability_or({"activation_dropout"}, 0);
  audio.ignore({"scale_embedding", "layerdrop", "encoder_layerdrop"});
  ignore_tower_keys(audio);
  return tower;
}

/// Width of the outputs, which replace the text model's embeddings.
std::int64_t read_output_width(ConfigReader& audio, ModelSpec& spec) {
  const std::int64_t width = audio.size_or({"output_dim"}, 3584);
  if (width != spec.hidden_size) {
    spec.not_run = "its audio tokens do not have the width of the text model";
  }
  return width;
}

/// Columns after one of the strided convolutions, with padding 1.
std::int64_t halved(std::int64_t columns) { return (columns + 1) / 2; }

void ignore_thinker_keys(ConfigReader& config) {
  config.ignore({"position_id_per_seconds", "seconds_per_chunk", "audio_start_token_id",
                 "audio_end_token_id", "user_token_id", "ignore_index"});
}

}  // namespace

void read_voxtral_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader audio = config.object_or_empty("audio_config");
  AudioTowerSpec tower = read_whisper_encoder(audio);
  tower.stack.dropout.embedding = tower.stack.dropout.ffn_output;
  tower.stack.final_norm = tower.stack.norm;
  set_segment(tower, tower.position.max_position_embeddings);
  // Rows stand side by side in the projector's input, which has the width of the FFN.
  const std::int64_t inner = tower.stack.ffn.intermediate_size;
  const std::int64_t grouped = inner / tower.hidden_size;
  if (inner % tower.hidden_size != 0 || tower.segment_positions % grouped != 0) {
    audio.fail("intermediate_size", "is not a multiple of hidden_size that divides the positions",
               "use 4 · hidden_size, as the class does");
  }
  audio.finish();
  tower.projector = {
      GroupStep{RowGroup::side_by_side, grouped}, LinearStep{"up", spec.hidden_size, false},
      ActivationStep{read_activation(config, {"projector_hidden_act"}, ActivationKind::gelu)},
      LinearStep{"down", spec.hidden_size, false}};
  config.ignore({"hidden_size"});  // that of the text model
  spec.audio_tower = std::move(tower);
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
  AudioTowerSpec tower = read_whisper_encoder(audio);
  set_sines(tower);
  set_segment(tower, audio.size_or({"n_window"}, 100));
  constexpr std::int64_t kAveraged = 2;
  const bool has_positions = tower.segment_positions <= tower.position.max_position_embeddings;
  if (tower.segment_positions % kAveraged != 0 || !has_positions) {
    audio.fail("n_window", "is odd, or exceeds max_source_positions", "use an even number");
  }
  const std::int64_t width = read_output_width(audio, spec);
  tower.projector = {GroupStep{RowGroup::mean, kAveraged}, NormStep{"norm", tower.stack.norm},
                     LinearStep{"linear", width, true}};
  TowerWeights unread(spec, ModelPart::audio, CountedUse::loaded);
  unread.add("first_and_last_token", {2, width}, kInputRole);
  audio.finish();
  ignore_thinker_keys(config);
  spec.audio_tower = std::move(tower);
}

void read_qwen3_omni_towers(ConfigReader& config, ModelSpec& spec) {
  read_qwen3_vl_tower(config, spec);
  ConfigReader audio = config.object_or_empty("audio_config");
  AudioTowerSpec tower = read_whisper_encoder(audio);
  set_sines(tower);
  AudioSpec& sound = *tower.embedding.audio;
  sound.grid_channels = audio.size_or({"downsample_hidden_size"}, 480);
  const std::int64_t half = audio.size_or({"n_window"}, 50);
  sound.grid_frames = product(audio, "n_window", 2, half);
  tower.segment_frames = sound.grid_frames;
  tower.segment_positions = halved(halved(halved(sound.grid_frames)));
  const std::int64_t attended = audio.size_or({"n_window_infer"}, 800);
  tower.attended_segments = attended / sound.grid_frames;
  if (tower.attended_segments == 0 ||
      tower.segment_positions > tower.position.max_position_embeddings) {
    audio.fail("n_window", "exceeds half of n_window_infer, or max_source_positions",
               "use a smaller window");
  }
  tower.stack.self_attention.key_bias = true;
  tower.stack.final_norm = tower.stack.norm;
  const std::int64_t width = read_output_width(audio, spec);
  tower.projector = {LinearStep{"up", tower.hidden_size, true},
                     ActivationStep{tower.stack.ffn.activation}, LinearStep{"down", width, true}};
  audio.ignore({"conv_chunksize"});  // segments that the convolutions read at once
  audio.finish();
  ignore_thinker_keys(config);
  spec.audio_tower = std::move(tower);
}

}  // namespace headroom::detail
