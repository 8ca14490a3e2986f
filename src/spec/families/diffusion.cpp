// Diffusion transformers in diffusers' format, whose configs name their class in `_class_name`.
// Structure: diffusers 0.42, models/transformers; sizes of the workload: its pipelines.
#include <fmt/format.h>

#include <array>

#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kDenoiserNotRun = "diffusion transformers have no kernels here";
constexpr double kDenoiserNormEps = 1e-6;
constexpr std::int64_t kNetworkWidths = 4;  // FeedForward: mult = 4

/// Width of the layers, and an attention of these heads with biases.
void read_heads(ConfigReader& config, ModelSpec& spec, StackSpec& stack, std::int64_t heads,
                std::int64_t head_dim) {
  AttentionSpec& attention = stack.self_attention;
  attention.num_attention_heads = config.size_or_of_class({"num_attention_heads"}, heads);
  attention.head_dim = config.size_or_of_class({"attention_head_dim"}, head_dim);
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.value_head_dim = attention.head_dim;
  attention.qkv_bias = true;
  attention.output_bias = true;
  spec.hidden_size =
      product(config, "attention_head_dim", attention.num_attention_heads, attention.head_dim);
}

/// Layers with a network of `inner` features, norms without weights, and no caption of their kind.
StackSpec denoiser_stack(std::int64_t layers) {
  StackSpec stack;
  stack.num_layers = layers;
  stack.norm = {NormKind::layer_norm, false, kDenoiserNormEps, NormWeight::none};
  return stack;
}

FfnSpec gelu_network(std::int64_t inner) {
  return {FfnKind::plain, inner, ActivationKind::gelu_tanh, true};
}

QueryKeyNormSpec rms_norm_of(QueryKeyNormScope scope) {
  return {{NormKind::rms_norm, false, kDenoiserNormEps}, scope};
}

void finish_denoiser(ConfigReader& config, ModelSpec& spec, StackSpec stack,
                     DenoiserSpec denoiser) {
  config.ignore({"_diffusers_version", "_class_name", "_name_or_path"});
  spec.kind = ModelKind::denoiser;
  spec.embedding.input = InputKind::hidden_states;
  spec.encoder = std::move(stack);
  spec.denoiser = std::move(denoiser);
  spec.not_run = kDenoiserNotRun;
}

void expect_width(const ConfigReader& config, const char* key, std::int64_t value,
                  const ModelSpec& spec) {
  if (value == spec.hidden_size) return;
  config.fail(key, fmt::format("{} is not the width of the layers, {}", value, spec.hidden_size),
              "set it to num_attention_heads times attention_head_dim");
}

/// A square image of `positions` latent positions a side.
void set_image_size(LatentSpec& latent, const ConfigReader& config, std::int64_t positions) {
  latent.default_height = product(config, "sample_size", positions, latent.pixels);
  latent.default_width = latent.default_height;
}

/// FLUX.1: the pipeline packs blocks of 2 × 2 latent positions into channels.
void read_flux(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kPixels =
      1024;  // pipeline_flux.py: default_sample_size · vae_scale_factor
  constexpr std::int64_t kTextTokens = 512;
  const std::int64_t joint = config.layers_or({"num_layers"}, 19);
  DenoiserSpec denoiser;
  denoiser.num_single_layers = config.layers_or({"num_single_layers"}, 38);
  StackSpec stack = denoiser_stack(joint + denoiser.num_single_layers);
  read_heads(config, spec, stack, 24, 128);
  stack.self_attention.query_key_norm = rms_norm_of(QueryKeyNormScope::each_head);
  stack.ffn =
      gelu_network(product(config, "num_attention_heads", kNetworkWidths, spec.hidden_size));
  spec.position.kind = PositionKind::rotary;
  spec.position.rope.layout = RopeLayout::interleaved;
  std::int64_t rotated = 0;
  for (const std::int64_t axis : config.counts("axes_dims_rope")) rotated += axis;
  if (rotated != 0 && rotated != stack.self_attention.head_dim) {
    config.fail("axes_dims_rope", "does not add up to attention_head_dim", "check the file");
  }
  config.expect_number("patch_size", 1);
  LatentSpec& latent = denoiser.latent;
  latent.layout = LatentLayout::patches;
  latent.in_channels = config.size_or_of_class({"in_channels"}, 64);
  latent.out_channels = config.size_or({"out_channels"}, latent.in_channels);
  latent.patch_size = 2;
  latent.default_height = kPixels;
  latent.default_width = kPixels;
  denoiser.conditioning.guidance = config.flag_or({"guidance_embeds"}, false);
  denoiser.conditioning.pooled_text_size = config.size_or_of_class({"pooled_projection_dim"}, 768);
  denoiser.text.size = config.size_or_of_class({"joint_attention_dim"}, 4096);
  denoiser.text.default_tokens = kTextTokens;
  finish_denoiser(config, spec, std::move(stack), std::move(denoiser));
}

std::optional<QueryKeyNormSpec> read_joint_norm(ConfigReader& config) {
  const std::optional<std::string> norm = config.optional_text({"qk_norm"});
  if (!norm) return std::nullopt;
  if (*norm == "rms_norm") return rms_norm_of(QueryKeyNormScope::each_head);
  config.fail("qk_norm", fmt::format("\"{}\" is not supported", *norm), "use rms_norm or null");
}

/// Stable Diffusion 3 and 3.5.
void read_sd3(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kTextTokens =
      333;  // 77 of CLIP and 256 of T5: pipeline_stable_diffusion_3.py
  StackSpec stack = denoiser_stack(config.layers_or({"num_layers"}, 18));
  read_heads(config, spec, stack, 18, 64);
  stack.self_attention.query_key_norm = read_joint_norm(config);
  stack.ffn =
      gelu_network(product(config, "num_attention_heads", kNetworkWidths, spec.hidden_size));
  DenoiserSpec denoiser;
  LatentSpec& latent = denoiser.latent;
  latent.in_channels = config.size_or_of_class({"in_channels"}, 16);
  latent.out_channels = config.size_or({"out_channels"}, latent.in_channels);
  latent.patch_size = config.size_or_of_class({"patch_size"}, 2);
  set_image_size(latent, config, config.size_or_of_class({"sample_size"}, 128));
  const std::int64_t side = config.size_or_of_class({"pos_embed_max_size"}, 96);
  latent.position_rows = product(config, "pos_embed_max_size", side, side);
  spec.position.kind = PositionKind::sinusoidal;
  expect_width(config, "caption_projection_dim",
               config.size_or_of_class({"caption_projection_dim"}, 1152), spec);
  denoiser.conditioning.pooled_text_size = config.size_or_of_class({"pooled_projection_dim"}, 2048);
  denoiser.text.size = config.size_or_of_class({"joint_attention_dim"}, 4096);
  denoiser.text.default_tokens = kTextTokens;
  denoiser.text.ends_in_last_joint = true;
  denoiser.dual_attention_layers = config.counts("dual_attention_layers");
  finish_denoiser(config, spec, std::move(stack), std::move(denoiser));
}

/// Settings of diffusers' older Transformer2DModel that PixArt's class does not have.
void expect_plain_layers(ConfigReader& config) {
  config.expect_text("norm_type", "ada_norm_single");
  config.expect_text("activation_fn", "gelu-approximate");
  config.expect_text("attention_type", "default");
  config.expect_flag("attention_bias", true);
  config.expect_flag("norm_elementwise_affine", false);
  for (const char* const key :
       {"double_self_attention", "only_cross_attention", "use_linear_projection"}) {
    config.expect_flag(key, false);
  }
  config.ignore({"num_embeds_ada_norm", "norm_num_groups", "upcast_attention", "norm_eps",
                 "interpolation_scale"});
}

/// PixArt-α and -Σ.
void read_pixart(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kTextTokens = 300;       // pipeline_pixart_sigma.py
  constexpr std::int64_t kAlphaTextTokens = 120;  // pipeline_pixart_alpha.py
  constexpr std::int64_t kSizedSample = 128;      // whose class conditions on sizes by default
  expect_plain_layers(config);
  StackSpec stack = denoiser_stack(config.layers_or({"num_layers"}, 28));
  read_heads(config, spec, stack, 16, 72);
  const double dropout = config.probability_or({"dropout"}, 0);
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
  stack.cross_attention = stack.self_attention;
  stack.ffn =
      gelu_network(product(config, "num_attention_heads", kNetworkWidths, spec.hidden_size));
  expect_width(config, "cross_attention_dim",
               config.size_or_of_class({"cross_attention_dim"}, 1152), spec);
  DenoiserSpec denoiser;
  LatentSpec& latent = denoiser.latent;
  latent.in_channels = config.size_or_of_class({"in_channels"}, 4);
  latent.out_channels = config.size_or({"out_channels"}, 8);
  latent.patch_size = config.size_or_of_class({"patch_size"}, 2);
  const std::int64_t sample = config.size_or_of_class({"sample_size"}, kSizedSample);
  set_image_size(latent, config, sample);
  spec.position.kind = PositionKind::sinusoidal;
  const bool sized = config.flag_or({"use_additional_conditions"}, sample == kSizedSample);
  if (sized && spec.hidden_size % 3 != 0) {
    config.fail("use_additional_conditions", "needs a width that 3 divides", "check the file");
  }
  denoiser.conditioning.image_size = sized;
  denoiser.text.size = config.size({"caption_channels"});
  denoiser.text.default_tokens = sized ? kAlphaTextTokens : kTextTokens;
  denoiser.text.projection = TextProjection::two_layers;
  denoiser.text.attention = TextAttention::cross;
  denoiser.modulation = ModulationSource::shared;
  finish_denoiser(config, spec, std::move(stack), std::move(denoiser));
}

/// Frames, height and width of a patch: [1, 2, 2].
void read_video_patch(ConfigReader& config, LatentSpec& latent) {
  std::vector<std::int64_t> patch = config.counts("patch_size");
  if (patch.empty()) patch = {1, 2, 2};
  if (patch.size() != 3 || patch[0] < 1 || patch[1] < 1 || patch[1] != patch[2]) {
    config.fail("patch_size", "is not [frames, side, side]",
                "write three sizes, the last two equal");
  }
  latent.patch_frames = patch[0];
  latent.patch_size = patch[1];
}

/// Latent of Wan 2.1's autoencoder: 16 channels, 8 × 8 pixels and 4 frames a position.
LatentSpec read_wan_latent(ConfigReader& config) {
  LatentSpec latent;
  latent.in_channels = config.size_or_of_class({"in_channels"}, 16);
  latent.out_channels = config.size_or_of_class({"out_channels"}, 16);
  if (latent.out_channels != 16) {
    config.fail("out_channels", "is not 16, the channels of Wan 2.1's autoencoder",
                "the sizes of other autoencoders are not known");
  }
  read_video_patch(config, latent);
  latent.frames = 4;
  latent.default_height = 480;  // pipeline_wan.py
  latent.default_width = 832;
  latent.default_frames = 81;
  return latent;
}

/// The image that a video continues, by its config's keys; `tokens` of CLIP's ViT-H at 224 pixels.
ReferenceImageSpec read_reference_image(ConfigReader& config, std::int64_t hidden_size) {
  constexpr std::int64_t kClipTokens = 257;
  ReferenceImageSpec image;
  image.size = config.optional_size({"image_dim"}).value_or(0);
  image.position_rows = config.optional_size({"pos_embed_seq_len"}).value_or(0);
  image.tokens = image.position_rows > 0 ? image.position_rows : kClipTokens;
  const std::int64_t added = config.optional_size({"added_kv_proj_dim"}).value_or(0);
  if (image.size > 0 ? added == hidden_size : added == 0 && image.position_rows == 0) return image;
  config.fail("added_kv_proj_dim", "is not the hidden size with image_dim, and absent without",
              "give both keys of an image-to-video model, or neither");
}

/// Wan 2.1, text to video and image to video.
void read_wan(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kTextTokens = 512;  // pipeline_wan.py
  config.ignore({"rope_max_seq_len"});
  config.expect_text("qk_norm", "rms_norm_across_heads");
  StackSpec stack = denoiser_stack(config.layers_or({"num_layers"}, 40));
  stack.norm.eps = config.number_or({"eps"}, kDenoiserNormEps);
  read_heads(config, spec, stack, 40, 128);
  stack.self_attention.query_key_norm = rms_norm_of(QueryKeyNormScope::all_heads);
  stack.cross_attention = stack.self_attention;
  stack.ffn = gelu_network(config.size_or_of_class({"ffn_dim"}, 13824));
  spec.position.kind = PositionKind::rotary;
  spec.position.rope.layout = RopeLayout::interleaved;
  DenoiserSpec denoiser;
  denoiser.latent = read_wan_latent(config);
  denoiser.reference_image = read_reference_image(config, spec.hidden_size);
  denoiser.conditioning.frequencies = config.size_or_of_class({"freq_dim"}, 256) / 2;
  denoiser.text.size = config.size_or_of_class({"text_dim"}, 4096);
  denoiser.text.default_tokens = kTextTokens;
  denoiser.text.projection = TextProjection::two_layers;
  denoiser.text.attention = TextAttention::cross;
  denoiser.text.cross_norm = config.flag_or({"cross_attn_norm"}, true);
  denoiser.modulation = ModulationSource::shared;
  finish_denoiser(config, spec, std::move(stack), std::move(denoiser));
}

constexpr NameRule kJoint[] = {
    {"joint_layers.modulation.%", "transformer_blocks.{}.norm1.linear.%"},
    {"joint_layers.text.modulation.%", "transformer_blocks.{}.norm1_context.linear.%"},
    {"joint_layers.attention.query.%", "transformer_blocks.{}.attn.to_q.%"},
    {"joint_layers.attention.key.%", "transformer_blocks.{}.attn.to_k.%"},
    {"joint_layers.attention.value.%", "transformer_blocks.{}.attn.to_v.%"},
    {"joint_layers.attention.query_norm.%", "transformer_blocks.{}.attn.norm_q.%"},
    {"joint_layers.attention.key_norm.%", "transformer_blocks.{}.attn.norm_k.%"},
    {"joint_layers.attention.output.%", "transformer_blocks.{}.attn.to_out.0.%"},
    {"joint_layers.text.attention.query.%", "transformer_blocks.{}.attn.add_q_proj.%"},
    {"joint_layers.text.attention.key.%", "transformer_blocks.{}.attn.add_k_proj.%"},
    {"joint_layers.text.attention.value.%", "transformer_blocks.{}.attn.add_v_proj.%"},
    {"joint_layers.text.attention.query_norm.%", "transformer_blocks.{}.attn.norm_added_q.%"},
    {"joint_layers.text.attention.key_norm.%", "transformer_blocks.{}.attn.norm_added_k.%"},
    {"joint_layers.text.attention.output.%", "transformer_blocks.{}.attn.to_add_out.%"},
    {"joint_layers.second.attention.query.%", "transformer_blocks.{}.attn2.to_q.%"},
    {"joint_layers.second.attention.key.%", "transformer_blocks.{}.attn2.to_k.%"},
    {"joint_layers.second.attention.value.%", "transformer_blocks.{}.attn2.to_v.%"},
    {"joint_layers.second.attention.query_norm.%", "transformer_blocks.{}.attn2.norm_q.%"},
    {"joint_layers.second.attention.key_norm.%", "transformer_blocks.{}.attn2.norm_k.%"},
    {"joint_layers.second.attention.output.%", "transformer_blocks.{}.attn2.to_out.0.%"},
    {"joint_layers.mlp.up.%", "transformer_blocks.{}.ff.net.0.proj.%"},
    {"joint_layers.mlp.down.%", "transformer_blocks.{}.ff.net.2.%"},
    {"joint_layers.text.mlp.up.%", "transformer_blocks.{}.ff_context.net.0.proj.%"},
    {"joint_layers.text.mlp.down.%", "transformer_blocks.{}.ff_context.net.2.%"},
    {"conditioning.timestep.first.%", "time_text_embed.timestep_embedder.linear_1.%"},
    {"conditioning.timestep.second.%", "time_text_embed.timestep_embedder.linear_2.%"},
    {"conditioning.guidance.first.%", "time_text_embed.guidance_embedder.linear_1.%"},
    {"conditioning.guidance.second.%", "time_text_embed.guidance_embedder.linear_2.%"},
    {"conditioning.pooled_text.first.%", "time_text_embed.text_embedder.linear_1.%"},
    {"conditioning.pooled_text.second.%", "time_text_embed.text_embedder.linear_2.%"},
    {"text.projection.%", "context_embedder.%"},
    {"output.modulation.%", "norm_out.linear.%"},
    {"output.projection.%", "proj_out.%"},
};

constexpr NameRule kFlux[] = {
    {"embeddings.patch_embeddings.%", "x_embedder.%"},
    {"single_layers.modulation.%", "single_transformer_blocks.{}.norm.linear.%"},
    {"single_layers.attention.query.%", "single_transformer_blocks.{}.attn.to_q.%"},
    {"single_layers.attention.key.%", "single_transformer_blocks.{}.attn.to_k.%"},
    {"single_layers.attention.value.%", "single_transformer_blocks.{}.attn.to_v.%"},
    {"single_layers.attention.query_norm.%", "single_transformer_blocks.{}.attn.norm_q.%"},
    {"single_layers.attention.key_norm.%", "single_transformer_blocks.{}.attn.norm_k.%"},
    {"single_layers.mlp.up.%", "single_transformer_blocks.{}.proj_mlp.%"},
    {"single_layers.mlp.down.%", "single_transformer_blocks.{}.proj_out.%"},
};

constexpr NameRule kSd3[] = {
    {"embeddings.patch_embeddings.%", "pos_embed.proj.%"},
    {"embeddings.position_embeddings.weight", "pos_embed.pos_embed"},
};

constexpr NameRule kPixart[] = {
    {"embeddings.patch_embeddings.%", "pos_embed.proj.%"},
    {"conditioning.timestep.first.%", "adaln_single.emb.timestep_embedder.linear_1.%"},
    {"conditioning.timestep.second.%", "adaln_single.emb.timestep_embedder.linear_2.%"},
    {"conditioning.resolution.first.%", "adaln_single.emb.resolution_embedder.linear_1.%"},
    {"conditioning.resolution.second.%", "adaln_single.emb.resolution_embedder.linear_2.%"},
    {"conditioning.aspect_ratio.first.%", "adaln_single.emb.aspect_ratio_embedder.linear_1.%"},
    {"conditioning.aspect_ratio.second.%", "adaln_single.emb.aspect_ratio_embedder.linear_2.%"},
    {"modulation.projection.%", "adaln_single.linear.%"},
    {"text.projection.first.%", "caption_projection.linear_1.%"},
    {"text.projection.second.%", "caption_projection.linear_2.%"},
    {"layers.modulation.table", "transformer_blocks.{}.scale_shift_table"},
    {"layers.attention.query.%", "transformer_blocks.{}.attn1.to_q.%"},
    {"layers.attention.key.%", "transformer_blocks.{}.attn1.to_k.%"},
    {"layers.attention.value.%", "transformer_blocks.{}.attn1.to_v.%"},
    {"layers.attention.output.%", "transformer_blocks.{}.attn1.to_out.0.%"},
    {"layers.cross_attention.query.%", "transformer_blocks.{}.attn2.to_q.%"},
    {"layers.cross_attention.key.%", "transformer_blocks.{}.attn2.to_k.%"},
    {"layers.cross_attention.value.%", "transformer_blocks.{}.attn2.to_v.%"},
    {"layers.cross_attention.output.%", "transformer_blocks.{}.attn2.to_out.0.%"},
    {"layers.mlp.up.%", "transformer_blocks.{}.ff.net.0.proj.%"},
    {"layers.mlp.down.%", "transformer_blocks.{}.ff.net.2.%"},
    {"output.modulation.table", "scale_shift_table"},
    {"output.projection.%", "proj_out.%"},
};

constexpr NameRule kWan[] = {
    {"embeddings.patch_embeddings.%", "patch_embedding.%"},
    {"conditioning.timestep.first.%", "condition_embedder.time_embedder.linear_1.%"},
    {"conditioning.timestep.second.%", "condition_embedder.time_embedder.linear_2.%"},
    {"modulation.projection.%", "condition_embedder.time_proj.%"},
    {"text.projection.first.%", "condition_embedder.text_embedder.linear_1.%"},
    {"text.projection.second.%", "condition_embedder.text_embedder.linear_2.%"},
    {"layers.modulation.table", "blocks.{}.scale_shift_table"},
    {"layers.attention.query.%", "blocks.{}.attn1.to_q.%"},
    {"layers.attention.key.%", "blocks.{}.attn1.to_k.%"},
    {"layers.attention.value.%", "blocks.{}.attn1.to_v.%"},
    {"layers.attention.query_norm.%", "blocks.{}.attn1.norm_q.%"},
    {"layers.attention.key_norm.%", "blocks.{}.attn1.norm_k.%"},
    {"layers.attention.output.%", "blocks.{}.attn1.to_out.0.%"},
    {"layers.cross_attention_norm.%", "blocks.{}.norm2.%"},
    {"layers.cross_attention.query.%", "blocks.{}.attn2.to_q.%"},
    {"layers.cross_attention.key.%", "blocks.{}.attn2.to_k.%"},
    {"layers.cross_attention.value.%", "blocks.{}.attn2.to_v.%"},
    {"layers.cross_attention.query_norm.%", "blocks.{}.attn2.norm_q.%"},
    {"layers.cross_attention.key_norm.%", "blocks.{}.attn2.norm_k.%"},
    {"layers.cross_attention.output.%", "blocks.{}.attn2.to_out.0.%"},
    {"layers.image.cross_attention.key.%", "blocks.{}.attn2.add_k_proj.%"},
    {"layers.image.cross_attention.value.%", "blocks.{}.attn2.add_v_proj.%"},
    {"layers.image.cross_attention.key_norm.%", "blocks.{}.attn2.norm_added_k.%"},
    {"reference_image.position_embeddings.weight", "condition_embedder.image_embedder.pos_embed"},
    {"reference_image.first_norm.%", "condition_embedder.image_embedder.norm1.%"},
    {"reference_image.projection.first.%", "condition_embedder.image_embedder.ff.net.0.proj.%"},
    {"reference_image.projection.second.%", "condition_embedder.image_embedder.ff.net.2.%"},
    {"reference_image.second_norm.%", "condition_embedder.image_embedder.norm2.%"},
    {"layers.mlp.up.%", "blocks.{}.ffn.net.0.proj.%"},
    {"layers.mlp.down.%", "blocks.{}.ffn.net.2.%"},
    {"output.modulation.table", "scale_shift_table"},
    {"output.projection.%", "proj_out.%"},
};

constexpr None kNoDiffusionGguf("GGUF files of diffusion models state no sizes");

}  // namespace

std::vector<Family> diffusion_families() {
  return {{.model_types = {"FluxTransformer2DModel"},
           .classes = one_class("FluxTransformer2DModel"),
           .reader = read_flux,
           .names = NameTable{{kFlux, kJoint}, {}, {}},
           .gguf = kNoDiffusionGguf},
          {.model_types = {"SD3Transformer2DModel"},
           .classes = one_class("SD3Transformer2DModel"),
           .reader = read_sd3,
           .names = NameTable{{kSd3, kJoint}, {}, {}},
           .gguf = kNoDiffusionGguf},
          {.model_types = {"PixArtTransformer2DModel", "Transformer2DModel"},
           .classes = one_class("PixArtTransformer2DModel"),
           .reader = read_pixart,
           .names = NameTable{{kPixart}, {}, {}},
           .gguf = kNoDiffusionGguf},
          {.model_types = {"WanTransformer3DModel"},
           .classes = one_class("WanTransformer3DModel"),
           .reader = read_wan,
           .names = NameTable{{kWan}, {}, {}},
           .gguf = kNoDiffusionGguf}};
}

}  // namespace headroom::detail
