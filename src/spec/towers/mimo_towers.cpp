// Towers of MiMo-V2.5 and 2.6 for images, video and sound, which are counted (SGLang, mimo_vl.py
// and mimo_audio.py). The tokenizer of sound is a model of its own, in a folder beside the weights.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "tower_names.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

/// Blocks with all keys have no sinks.
void count_sinks(ConfigReader& vision, TowerWeights& tower, std::int64_t blocks,
                 std::int64_t heads) {
  const std::vector<std::int64_t> full = vision.counts("fullatt_block_indexes");
  if (!vision.flag_or({"use_sink"}, false)) return;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const bool windowed = std::ranges::find(full, block) == full.end();
    if (windowed) tower.add(fmt::format("sinks.{}.scores", block), {heads}, WeightRole::attention);
  }
}

/// Qwen2.5-VL's tower with grouped key-value heads of 64, and biases in attention and network.
void count_vision_tower(ConfigReader& vision, ModelSpec& spec) {
  constexpr std::int64_t kChannels = 64;
  const std::int64_t width = vision.size_or({"hidden_size"}, 1280);
  const std::int64_t inner = vision.size_or({"intermediate_size"}, 4608);
  const std::int64_t blocks = vision.layers_or({"depth"}, 28);
  const std::int64_t heads = vision.size_or({"num_heads"}, 32);
  const std::int64_t head_dim = vision.size_or({"qk_channels"}, kChannels);
  const std::int64_t queries = product(vision, "num_heads", heads, head_dim);
  const std::int64_t keys =
      product(vision, "num_key_value_heads", vision.size_or({"num_key_value_heads"}, 8), head_dim);
  const std::int64_t side = vision.size_or({"patch_size"}, 16);
  const std::int64_t frames = vision.size_or({"temporal_patch_size"}, 2);
  const std::int64_t channels = vision.size_or({"in_chans", "in_channels"}, 3);
  const std::int64_t patch =
      product(vision, "patch_size", product(vision, "patch_size", side, side),
              product(vision, "in_chans", frames, channels));
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight", {width, patch}, WeightRole::embedding);
  tower.linear("layers.attention.query", width, queries, WeightRole::attention, blocks);
  tower.linear("layers.attention.key", width, keys, WeightRole::attention, blocks);
  tower.linear("layers.attention.value", width, keys, WeightRole::attention, blocks);
  tower.linear("layers.attention.output", queries, width, WeightRole::attention, blocks);
  tower.linear("layers.mlp.gate", width, inner, WeightRole::mlp, blocks);
  tower.linear("layers.mlp.up", width, inner, WeightRole::mlp, blocks);
  tower.linear("layers.mlp.down", inner, width, WeightRole::mlp, blocks);
  tower.norm(NormKind::rms_norm, "layers.attention_norm", width, blocks);
  tower.norm(NormKind::rms_norm, "layers.mlp_norm", width, blocks);
  count_sinks(vision, tower, blocks, heads);
  const std::int64_t merged = vision.size_or({"spatial_merge_size"}, 2);
  const std::int64_t block = product(vision, "spatial_merge_size",
                                     product(vision, "spatial_merge_size", merged, merged), width);
  TowerWeights projector(spec, ModelPart::projector);
  projector.norm(NormKind::rms_norm, "norm", width);
  projector.linear_if(false, "up", block, block, WeightRole::projector);
  projector.linear_if(false, "down", block, vision.size_or({"out_hidden_size"}, spec.hidden_size),
                      WeightRole::projector);
  vision.ignore({"kv_channels", "num_query_groups", "spatial_patch_size", "tokens_per_second",
                 "visual_token_window_size", "vit_window_attn_types", "window_size"});
  ignore_tower_keys(vision);
  vision.finish();
}

/// Words of each of `count` codes: one number, or one for each, joined by "-".
std::vector<std::int64_t> read_code_words(ConfigReader& sound, std::int64_t count) {
  const bool is_number = sound.has("speech_vocab_size") && !sound.is_text("speech_vocab_size");
  const std::string text = is_number ? std::to_string(sound.size({"speech_vocab_size"}))
                                     : sound.text_or({"speech_vocab_size"}, "1280");
  std::vector<std::int64_t> words;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::int64_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    const bool stops = next == end || *next == '-';
    if (error != std::errc() || !stops || size < 1) {
      words.clear();
      break;
    }
    words.push_back(size);
    if (next == end) break;
    at = next + 1;
  }
  const bool is_one = words.size() == 1 && text.find('-') == std::string::npos;
  if (is_one) words.assign(static_cast<std::size_t>(count), words.front());
  if (std::ssize(words) != count) {
    sound.fail("speech_vocab_size", fmt::format("\"{}\" does not give {} sizes", text, count),
               "write one size, or one for each of audio_channels, joined by \"-\"");
  }
  return words;
}

/// Qwen2's layers on the sum of the codes of each frame, and a network on a group of frames.
void count_audio_tower(ConfigReader& sound, ModelSpec& spec) {
  TowerLayers layers;
  layers.count = sound.layers_or({"input_local_layers"}, 6);
  layers.width = sound.size_or({"input_local_dim"}, 1024);
  layers.inner = sound.size_or({"input_local_intermediate_size"}, 4096);
  layers.heads_width =
      product(sound, "input_local_attn_heads", sound.size_or({"input_local_attn_heads"}, 16),
              sound.size_or({"input_local_head_dim"}, 64));
  layers.ffn = FfnKind::gated;
  layers.norm = NormKind::rms_norm;
  layers.output_bias = false;
  layers.ffn_bias = false;
  TowerWeights tower(spec, ModelPart::audio);
  const std::int64_t codes = sound.layers_or({"audio_channels"}, 20);
  std::int64_t code = 0;
  for (const std::int64_t words : read_code_words(sound, codes)) {
    tower.add(fmt::format("codes.{}.weight", code++), {words, layers.width}, WeightRole::embedding);
  }
  tower.layers(layers);
  if (sound.flag_or({"add_post_norm"}, true)) {
    tower.norm(NormKind::rms_norm, "final_norm", layers.width);
  }
  sound.expect_number("projection_layers", 2);
  const std::int64_t frames =
      product(sound, "group_size", sound.size_or({"group_size"}, 4), layers.width);
  const std::int64_t wide = product(sound, "group_size", 4, frames);
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear_if(false, "sound.up", frames, wide, WeightRole::projector);
  projector.linear_if(false, "sound.down", wide,
                      sound.size_or({"out_hidden_size"}, spec.hidden_size), WeightRole::projector);
  sound.ignore({"audio_segment_size", "input_full_attention", "input_local_hidden_dropout",
                "partial_rotary_factor", "speech_zeroemb_idx"});
  ignore_tower_keys(sound);
  sound.finish();
}

constexpr NameRule kTowers[] = {
    {"vision_tower.patch_embeddings.%", "visual.patch_embed.proj.%"},
    {"vision_tower.layers.attention.query.%", "visual.blocks.{}.attn.qkv.%", part(0)},
    {"vision_tower.layers.attention.key.%", "visual.blocks.{}.attn.qkv.%", part(1)},
    {"vision_tower.layers.attention.value.%", "visual.blocks.{}.attn.qkv.%", part(2)},
    {"vision_tower.layers.attention.output.%", "visual.blocks.{}.attn.proj.%"},
    {"vision_tower.layers.mlp.gate.%", "visual.blocks.{}.mlp.gate_proj.%"},
    {"vision_tower.layers.mlp.up.%", "visual.blocks.{}.mlp.up_proj.%"},
    {"vision_tower.layers.mlp.down.%", "visual.blocks.{}.mlp.down_proj.%"},
    {"vision_tower.layers.attention_norm.%", "visual.blocks.{}.norm1.%"},
    {"vision_tower.layers.mlp_norm.%", "visual.blocks.{}.norm2.%"},
    {"vision_tower.sinks.{i}.scores", "visual.blocks.{i}.attn.sinks"},
    {"projector.norm.%", "visual.merger.ln_q.%"},
    {"projector.up.%", "visual.merger.mlp.0.%"},
    {"projector.down.%", "visual.merger.mlp.2.%"},
    {"audio_tower.codes.{i}.%", "speech_embeddings.{i}.%"},
    {"audio_tower.layers.attention.query.%",
     "audio_encoder.input_local_transformer.layers.{}.self_attn.q_proj.%"},
    {"audio_tower.layers.attention.key.%",
     "audio_encoder.input_local_transformer.layers.{}.self_attn.k_proj.%"},
    {"audio_tower.layers.attention.value.%",
     "audio_encoder.input_local_transformer.layers.{}.self_attn.v_proj.%"},
    {"audio_tower.layers.attention.output.%",
     "audio_encoder.input_local_transformer.layers.{}.self_attn.o_proj.%"},
    {"audio_tower.layers.mlp.gate.%",
     "audio_encoder.input_local_transformer.layers.{}.mlp.gate_proj.%"},
    {"audio_tower.layers.mlp.up.%",
     "audio_encoder.input_local_transformer.layers.{}.mlp.up_proj.%"},
    {"audio_tower.layers.mlp.down.%",
     "audio_encoder.input_local_transformer.layers.{}.mlp.down_proj.%"},
    {"audio_tower.layers.attention_norm.%",
     "audio_encoder.input_local_transformer.layers.{}.input_layernorm.%"},
    {"audio_tower.layers.mlp_norm.%",
     "audio_encoder.input_local_transformer.layers.{}.post_attention_layernorm.%"},
    {"audio_tower.final_norm.%", "audio_encoder.input_local_transformer.norm.%"},
    {"projector.sound.up.%", "audio_encoder.projection.mlp.0.%"},
    {"projector.sound.down.%", "audio_encoder.projection.mlp.2.%"},
};

}  // namespace

std::span<const NameRule> mimo_tower_rules() { return kTowers; }

void count_mimo_towers(ConfigReader& config, ModelSpec& spec) {
  if (auto vision = config.object("vision_config")) count_vision_tower(*vision, spec);
  if (auto sound = config.object("audio_config")) count_audio_tower(*sound, spec);
  config.ignore({"processor_config", "image_token_id", "video_token_id", "audio_token_id",
                 "audio_start_token_id", "audio_end_token_id", "vision_start_token_id",
                 "vision_end_token_id", "vision_model_type"});
}

}  // namespace headroom::detail
