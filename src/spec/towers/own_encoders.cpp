// Towers that only one family has: Llama 4, GLM-4.1V, InternVL, Kimi K2.5, Voxtral.
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kEmbedding = WeightRole::embedding;
constexpr auto kProjector = WeightRole::projector;

std::int64_t squared(const ConfigReader& config, std::string_view key, std::int64_t side) {
  return product(config, key, side, side);
}

}  // namespace

void count_llama4_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 768);
  layers.inner = vision.size_or({"intermediate_size"}, 5632);
  layers.count = vision.layers_or({"num_hidden_layers"}, 34);
  ignore_tower_keys(vision);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 448, 14);
  const std::int64_t input = vision.size_or({"projector_input_dim"}, 4096);
  const std::int64_t output = vision.size_or({"projector_output_dim"}, 4096);
  const std::int64_t to_text = vision.size_or({"vision_output_dim"}, 7680);
  vision.ignore({"pixel_shuffle_ratio"});  // patches merged into one; changes no weight
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight", {layers.width, grid.elements}, kEmbedding);
  tower.add("class_token", {layers.width}, kEmbedding);
  tower.add("position_embeddings.weight", {grid.patches + 1, layers.width}, kEmbedding);
  tower.norm(NormKind::layer_norm, "first_norm", layers.width);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  // The adapter stands inside the vision model.
  tower.add("adapter.up.weight", {input, layers.inner}, WeightRole::mlp);
  tower.add("adapter.down.weight", {output, input}, WeightRole::mlp);
  TowerWeights projector(spec, ModelPart::projector);
  projector.add("weight", {spec.hidden_size, to_text}, kProjector);
}

void count_glm4v_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const PatchGrid grid = read_patch_grid(vision, "in_channels", 336, 14);
  const std::int64_t out = vision.size_or({"out_hidden_size"}, 4096);
  const std::int64_t inner = vision.size_or({"intermediate_size"}, 13696);
  const std::int64_t frames = vision.size_or({"temporal_patch_size"}, 2);
  const std::int64_t merged = vision.size_or({"spatial_merge_size"}, 2);
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1536);
  layers.inner = out;  // intermediate_size is the merger's
  layers.count = vision.layers_or({"depth"}, 24);
  layers.ffn = FfnKind::gated;
  layers.norm = NormKind::rms_norm;
  layers.qkv_bias = vision.flag_or({"attention_bias"}, false);
  layers.output_bias = layers.ffn_bias = false;
  ignore_tower_keys(vision);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", product(vision, "patch_size", frames, grid.elements),
               layers.width, kEmbedding);
  tower.add("position_embeddings.weight", {grid.patches, layers.width}, kEmbedding);
  tower.norm(NormKind::rms_norm, "first_norm", layers.width);
  tower.layers(layers);
  tower.norm(NormKind::rms_norm, "final_norm", layers.width);
  tower.linear("downsample",
               product(vision, "spatial_merge_size", squared(vision, "spatial_merge_size", merged),
                       layers.width),
               out, kEmbedding);
  TowerWeights projector(spec, ModelPart::projector);
  projector.add("input.weight", {out, out}, kProjector);
  projector.norm(NormKind::layer_norm, "norm", out);
  for (const char* const name : {"gate.weight", "up.weight"}) {
    projector.add(name, {inner, out}, kProjector);
  }
  projector.add("down.weight", {out, inner}, kProjector);
}

void count_internvl_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 448, 14);
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1024);
  layers.inner = vision.size_or({"intermediate_size"}, 4096);
  layers.count = vision.layers_or({"num_hidden_layers"}, 24);
  layers.norm = vision.choice_or<NormKind>(
      {"norm_type"}, {{"layer_norm", NormKind::layer_norm}, {"rms_norm", NormKind::rms_norm}},
      NormKind::layer_norm);
  layers.qkv_bias = vision.flag_or({"attention_bias"}, false);
  const bool query_key_norm = vision.flag_or({"use_qk_norm"}, false);
  const bool positions = vision.flag_or({"use_absolute_position_embeddings"}, true);
  const bool final_norm = !vision.flag_or({"use_mean_pooling"}, true);
  vision.expect_flag("use_mask_token", false);
  vision.ignore({"layer_scale_init_value"});
  ignore_tower_keys(vision);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("class_token", {layers.width}, kEmbedding);
  tower.linear("patch_embeddings", grid.elements, layers.width, kEmbedding);
  if (positions) {
    tower.add("position_embeddings.weight", {grid.patches + 1, layers.width}, kEmbedding);
  }
  tower.layers(layers);
  for (const char* const name : {"layers.attention_scale", "layers.mlp_scale"}) {
    tower.add(name, {layers.width}, WeightRole::norm, layers.count);
  }
  for (const char* const name : {"layers.attention.query_norm", "layers.attention.key_norm"}) {
    if (query_key_norm) tower.norm(NormKind::rms_norm, name, layers.width, layers.count);
  }
  if (final_norm) tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  // Pixel shuffle: 1 / downsample_ratio patches a side become one.
  const auto side = static_cast<std::int64_t>(1 / config.number_or({"downsample_ratio"}, 0.5));
  const std::int64_t shuffled =
      product(config, "downsample_ratio", squared(config, "downsample_ratio", side), layers.width);
  TowerWeights projector(spec, ModelPart::projector);
  projector.norm(NormKind::layer_norm, "norm", shuffled);
  projector.linear("up", shuffled, spec.hidden_size, kProjector);
  projector.linear("down", spec.hidden_size, spec.hidden_size, kProjector);
  config.ignore({"image_seq_length", "projector_hidden_act", "vision_feature_layer",
                 "vision_feature_select_strategy"});
}

void count_kimi_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  const PatchGrid grid = read_patch_grid(vision, "in_channels", 896, 14);
  TowerLayers layers;
  layers.width = vision.size_or({"vt_hidden_size", "hidden_size"}, 1152);
  layers.inner = vision.size_or({"vt_intermediate_size", "intermediate_size"}, 4304);
  layers.count = vision.layers_or({"vt_num_hidden_layers", "num_hidden_layers"}, 27);
  const std::int64_t rows = vision.size_or({"init_pos_emb_height", "pos_emb_height"}, 64);
  const std::int64_t columns = vision.size_or({"init_pos_emb_width", "pos_emb_width"}, 64);
  const std::array<std::int64_t, 2> merged = vision.sides_or("merge_kernel_size", 2);
  vision.expect_number("mm_hidden_size", static_cast<double>(layers.width));
  vision.expect_number("text_hidden_size", static_cast<double>(spec.hidden_size));
  vision.expect_text("mm_projector_type", "patchmerger");
  // Sines over time, pooling of frames, heads: no weights.
  vision.ignore({"init_pos_emb_time", "pos_emb_time", "merge_type", "pos_emb_type",
                 "projector_ln_eps", "video_attn_type", "vt_num_attention_heads"});
  ignore_tower_keys(vision);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", grid.elements, layers.width, kEmbedding);
  tower.add("position_embeddings.weight",
            {product(vision, "init_pos_emb_height", rows, columns), layers.width}, kEmbedding);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  const std::int64_t wide =
      product(vision, "merge_kernel_size",
              product(vision, "merge_kernel_size", merged[0], merged[1]), layers.width);
  TowerWeights projector(spec, ModelPart::projector);
  projector.norm(NormKind::layer_norm, "norm", layers.width);
  projector.linear("up", wide, wide, kProjector);
  projector.linear("down", wide, spec.hidden_size, kProjector);
  config.ignore({"projection_hidden_size", "projection_layer_norm_eps", "ignore_index",
                 "media_placeholder_token_id", "use_unified_vision_chunk", "video_placeholder"});
}

void count_gemma4_tower(ConfigReader& config, ModelSpec& spec) {
  if (config.has("audio_config")) {
    config.fail("audio_config", "is not supported: the audio tower's weights are not counted",
                "set it to null to count the model without sound");
  }
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 768);
  layers.inner = vision.size_or({"intermediate_size"}, 3072);
  layers.count = vision.layers_or({"num_hidden_layers"}, 16);
  layers.ffn = FfnKind::gated;
  layers.norm = NormKind::rms_norm;
  layers.qkv_bias = layers.output_bias = layers.ffn_bias = false;
  const std::int64_t heads = vision.size_or({"num_attention_heads"}, 12);
  const std::int64_t head_dim = vision.size_or({"head_dim"}, 64);
  vision.expect_number("num_key_value_heads", static_cast<double>(heads));
  if (product(vision, "head_dim", heads, head_dim) != layers.width) {
    vision.fail("head_dim", "times num_attention_heads is not hidden_size",
                "use heads that fill hidden_size");
  }
  const std::int64_t patch = vision.size_or({"patch_size"}, 16);
  const std::int64_t positions = vision.size_or({"position_embedding_size"}, 10240);
  vision.expect_flag("attention_bias", false);
  // Pooling and clamps: no weights. Standardisation has buffers only.
  vision.ignore({"default_output_length", "global_head_dim", "pooling_kernel_size", "standardize",
                 "use_clipped_linears", "video_seq_length"});
  ignore_tower_keys(vision);
  read_common_keys(vision, spec);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight",
            {layers.width, product(vision, "patch_size", 3, squared(vision, "patch_size", patch))},
            kEmbedding);
  tower.add("position_embeddings.weight", {2, positions, layers.width}, kEmbedding);
  tower.layers(layers);
  for (const char* const name : {"layers.attention_output_norm", "layers.mlp_output_norm"}) {
    tower.norm(layers.norm, name, layers.width, layers.count);
  }
  for (const char* const name : {"layers.attention.query_norm", "layers.attention.key_norm"}) {
    tower.norm(layers.norm, name, head_dim, layers.count);
  }
  TowerWeights projector(spec, ModelPart::projector);
  projector.add("weight", {spec.hidden_size, layers.width}, kProjector);
  config.ignore({"vision_soft_tokens_per_image"});
}

void count_minimax_m3_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1280);
  layers.inner = vision.size_or({"intermediate_size"}, 5120);
  layers.count = vision.layers_or({"num_hidden_layers"}, 32);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 2016, 14);
  ConfigReader merging = vision.object_or_empty("img_token_compression_config");
  const std::int64_t frames = merging.size_or({"temporal_patch_size"}, 2);
  const std::int64_t side = merging.size_or({"spatial_merge_size"}, 2);
  merging.expect_text("image_token_compression_method", "patch_merge");
  merging.finish();
  vision.expect_text("position_embedding_type", "rope");
  vision.ignore({"rope_mode", "initializer_factor", "vision_segment_max_frames"});
  ignore_tower_keys(vision);
  vision.finish();
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight",
            {layers.width, product(vision, "patch_size", frames, grid.elements)}, kEmbedding);
  tower.norm(NormKind::layer_norm, "first_norm", layers.width);
  tower.layers(layers);
  const std::int64_t inner = config.size_or({"projector_hidden_size"}, spec.hidden_size);
  const std::int64_t merged = product(
      vision, "spatial_merge_size", squared(vision, "spatial_merge_size", side), spec.hidden_size);
  config.expect_flag("multimodal_projector_bias", true);
  config.ignore({"img_token_compression_config", "image_grid_pinpoints", "image_seq_length",
                 "process_image_mode", "projector_hidden_act", "vision_feature_layer",
                 "vision_feature_select_strategy"});
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear("up", layers.width, inner, kProjector);
  projector.linear("down", inner, spec.hidden_size, kProjector);
  projector.linear("merger.up", merged, inner, kProjector);
  projector.linear("merger.down", inner, spec.hidden_size, kProjector);
}

void count_voxtral_tower(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kKernel = 3;  // of both convolutions, as in Whisper
  ConfigReader audio = config.object_or_empty("audio_config");
  TowerLayers layers;
  layers.width = audio.size_or({"hidden_size", "d_model"}, 1280);
  layers.inner = audio.size_or({"intermediate_size", "encoder_ffn_dim"}, 5120);
  layers.count = audio.layers_or({"num_hidden_layers", "encoder_layers"}, 32);
  layers.key_bias = false;
  const std::int64_t bins = audio.size_or({"num_mel_bins"}, 128);
  const std::int64_t positions = audio.size_or({"max_source_positions"}, 1500);
  audio.ignore({"encoder_attention_heads", "activation_function", "activation_dropout", "dropout",
                "scale_embedding"});
  ignore_tower_keys(audio);
  audio.finish();
  TowerWeights tower(spec, ModelPart::audio);
  tower.linear("conv1", product(audio, "num_mel_bins", bins, kKernel), layers.width, kEmbedding);
  tower.linear("conv2", product(audio, "hidden_size", layers.width, kKernel), layers.width,
               kEmbedding);
  tower.add("position_embeddings.weight", {positions, layers.width}, kEmbedding);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  // Four frames stand side by side in the projector's input, which has the FFN's width.
  TowerWeights projector(spec, ModelPart::projector);
  projector.add("up.weight", {spec.hidden_size, layers.inner}, kProjector);
  projector.add("down.weight", {spec.hidden_size, spec.hidden_size}, kProjector);
  config.ignore({"projector_hidden_act"});
}

}  // namespace headroom::detail
