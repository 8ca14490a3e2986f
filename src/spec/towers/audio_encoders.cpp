// Audio towers: Whisper's encoder in Voxtral, Qwen2-Audio (arXiv 2407.10759), Qwen2.5-Omni (arXiv
// 2503.20215) and, behind 2-D convolutions, Qwen3-Omni (arXiv 2509.17765).
#include "../rope.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kInputRole = WeightRole::embedding;

/// Sets the positions of a segment, whose number the encoder's convolutions halve.
void set_segment(AudioTowerSpec& tower, std::int64_t positions) {
  tower.segment_positions = positions;
  tower.segment_frames = 2 * positions;
}

/// Computed positions within each of the segments, the last of which may be shorter.
void set_sines(AudioTowerSpec& tower) {
  tower.position.kind = PositionKind::sinusoidal;
  tower.position.table = PositionTable::tensor2tensor;
  tower.rule = ClipRule::shorter_last;
}

/// Sizes of a class that an audio_config may omit.
struct EncoderSizes {
  std::int64_t width = 1280;
  std::int64_t inner = 5120;
  std::int64_t layers = 32;
  std::int64_t heads = 20;
};

constexpr EncoderSizes kQwen3OmniAudio{};
constexpr EncoderSizes kQwen3AsrAudio{1024, 4096, 24, 16};

/// Whisper's encoder (arXiv 2212.04356).
AudioTowerSpec read_whisper_encoder(ConfigReader& audio, const EncoderSizes& absent = {}) {
  AudioTowerSpec tower;
  tower.hidden_size = audio.size_or({"hidden_size", "d_model"}, absent.width);
  tower.embedding.input = InputKind::audio;
  tower.embedding.audio = AudioSpec{audio.size_or({"num_mel_bins"}, 128), ActivationKind::gelu};
  tower.position.kind = PositionKind::learned;
  tower.position.max_position_embeddings = audio.size_or({"max_source_positions"}, 1500);
  StackSpec& stack = tower.stack;
  stack.num_layers = audio.layers_or({"num_hidden_layers", "encoder_layers"}, absent.layers);
  const std::int64_t heads =
      audio.size_or({"num_attention_heads", "encoder_attention_heads"}, absent.heads);
  stack.self_attention =
      multi_head_attention(audio, "num_attention_heads", heads, tower.hidden_size);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.key_bias = false;
  stack.self_attention.output_bias = true;
  const std::int64_t inner = audio.size_or({"intermediate_size", "encoder_ffn_dim"}, absent.inner);
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

void ignore_thinker_keys(ConfigReader& config) {
  config.ignore({"position_id_per_seconds", "seconds_per_chunk", "audio_start_token_id",
                 "audio_end_token_id", "user_token_id", "ignore_index"});
}

/// Whisper's layers behind three 2-D convolutions, on short segments of sound; two linear layers.
void read_gridded_encoder(ConfigReader& config, ModelSpec& spec, const EncoderSizes& absent) {
  ConfigReader audio = config.object_or_empty("audio_config");
  AudioTowerSpec tower = read_whisper_encoder(audio, absent);
  set_sines(tower);
  AudioSpec& sound = *tower.embedding.audio;
  sound.grid_channels = audio.size_or({"downsample_hidden_size"}, 480);
  const std::int64_t half = audio.size_or({"n_window"}, 50);
  tower.segment_frames = product(audio, "n_window", 2, half);
  sound.joined_frames = tower.segment_frames;
  tower.segment_positions = tower.rows_of_segment(tower.segment_frames);
  const std::int64_t attended = audio.size_or({"n_window_infer"}, 800);
  tower.attended_segments = attended / tower.segment_frames;
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

namespace {

/// Positions that the pooling after Whisper's encoder averages.
constexpr std::int64_t kAveraged = 2;

/// Whisper's encoder before such a pooling.
AudioTowerSpec read_averaged_whisper(ConfigReader& config) {
  ConfigReader audio = config.object_or_empty("audio_config");
  AudioTowerSpec tower = read_whisper_encoder(audio);
  set_segment(tower, tower.position.max_position_embeddings);
  if (tower.segment_positions % kAveraged != 0) {
    audio.fail("max_source_positions", "is odd", "use an even number, as the pooling does");
  }
  audio.finish();
  tower.rule = ClipRule::masked;
  return tower;
}

}  // namespace

void read_qwen2_audio_tower(ConfigReader& config, ModelSpec& spec) {
  AudioTowerSpec tower = read_averaged_whisper(config);
  tower.projector = {GroupStep{RowGroup::mean, kAveraged}, NormStep{"norm", tower.stack.norm},
                     LinearStep{"linear", spec.hidden_size, true}, SilenceStep{}};
  config.ignore({"hidden_size", "ignore_index"});
  spec.audio_tower = std::move(tower);
}

void read_audioflamingo3_tower(ConfigReader& config, ModelSpec& spec) {
  AudioTowerSpec tower = read_averaged_whisper(config);
  const bool bias = config.flag_or({"projector_bias"}, true);
  tower.projector = {
      GroupStep{RowGroup::mean, kAveraged},
      NormStep{"norm", tower.stack.norm},
      LinearStep{"up", spec.hidden_size, bias},
      ActivationStep{read_activation(config, {"projector_hidden_act"}, ActivationKind::gelu)},
      LinearStep{"down", spec.hidden_size, bias},
      SilenceStep{}};
  spec.audio_tower = std::move(tower);
}

void read_musicflamingo_tower(ConfigReader& config, ModelSpec& spec) {
  read_audioflamingo3_tower(config, spec);
  config.ignore({"audio_bos_token_id", "audio_eos_token_id", "audio_frame_step", "rope_parameters",
                 "rope_theta", "head_dim"});
  spec.not_run = "positions in time that turn its tower's rows have no kernel yet";
}

void read_glm_asr_tower(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kPositions = 1500;
  ConfigReader audio = config.object_or_empty("audio_config");
  const std::int64_t positions = audio.size_or({"max_position_embeddings"}, kPositions);
  AudioTowerSpec tower = read_whisper_encoder(audio);
  tower.position = {};
  tower.position.kind = PositionKind::rotary;
  tower.position.max_position_embeddings = positions;
  tower.position.rope = read_rope(audio, tower.position, tower.stack.self_attention.head_dim,
                                  {.partial_rotary_factor = 0.5});
  tower.stack.final_norm = tower.stack.norm;
  AttentionSpec& attention = tower.stack.self_attention;
  attention.num_key_value_heads =
      audio.size_or({"num_key_value_heads"}, attention.num_attention_heads);
  if (attention.num_attention_heads % attention.num_key_value_heads != 0) {
    audio.fail("num_key_value_heads", "does not divide num_attention_heads", "use a divisor");
  }
  set_segment(tower, positions);
  const std::int64_t inner = tower.stack.ffn.intermediate_size;
  const std::int64_t grouped = inner / tower.hidden_size;
  if (inner % tower.hidden_size != 0 || positions % grouped != 0) {
    audio.fail("intermediate_size", "is not a multiple of hidden_size that divides the positions",
               "use 4 · hidden_size, as the class does");
  }
  audio.finish();
  tower.projector = {
      GroupStep{RowGroup::side_by_side, grouped}, LinearStep{"up", 2 * spec.hidden_size, true},
      ActivationStep{read_activation(config, {"projector_hidden_act"}, ActivationKind::gelu)},
      LinearStep{"down", spec.hidden_size, true}, SilenceStep{}};
  tower.rule = ClipRule::masked;
  spec.audio_tower = std::move(tower);
}

void read_qwen2_5_omni_towers(ConfigReader& config, ModelSpec& spec) {
  read_qwen2_5_vl_tower(config, spec);
  ConfigReader audio = config.object_or_empty("audio_config");
  AudioTowerSpec tower = read_whisper_encoder(audio);
  set_sines(tower);
  set_segment(tower, audio.size_or({"n_window"}, 100));
  tower.embedding.audio->joined_frames = tower.segment_frames;
  tower.attended_segments = 1;
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
  read_gridded_encoder(config, spec, kQwen3OmniAudio);
}

void read_qwen3_asr_tower(ConfigReader& config, ModelSpec& spec) {
  read_gridded_encoder(config, spec, kQwen3AsrAudio);
  config.ignore(
      {"timestamp_token_id", "token_classification_bias", "support_languages", "classify_num"});
}

}  // namespace headroom::detail
