// Stored names of Gemma 3n's audio tower and its embedders (transformers, models/gemma3n).
#include "tower_names.h"

namespace headroom::detail {
namespace {

// The second half of the rows of linear_start is the gate.
// The tower of images is counted as one: its tensors are extra ones.
constexpr NameRule kGemma3nTowers[] = {
    {"vision_tower.weights", "vision_tower.timm_model"},
    {"audio_tower.embeddings.conv1.weight",
     "audio_tower.subsample_conv_projection.conv_0.conv.weight"},
    {"audio_tower.embeddings.conv1_norm.weight",
     "audio_tower.subsample_conv_projection.conv_0.norm.weight"},
    {"audio_tower.embeddings.conv2.weight",
     "audio_tower.subsample_conv_projection.conv_1.conv.weight"},
    {"audio_tower.embeddings.conv2_norm.weight",
     "audio_tower.subsample_conv_projection.conv_1.norm.weight"},
    {"audio_tower.embeddings.input.weight",
     "audio_tower.subsample_conv_projection.input_proj_linear.weight"},
    {"audio_tower.encoder.layers.first_mlp_norm.weight",
     "audio_tower.conformer.{}.ffw_layer_start.pre_layer_norm.weight"},
    {"audio_tower.encoder.layers.first_mlp_output_norm.weight",
     "audio_tower.conformer.{}.ffw_layer_start.post_layer_norm.weight"},
    {"audio_tower.encoder.layers.first_mlp.up.weight",
     "audio_tower.conformer.{}.ffw_layer_start.ffw_layer_1.weight"},
    {"audio_tower.encoder.layers.first_mlp.down.weight",
     "audio_tower.conformer.{}.ffw_layer_start.ffw_layer_2.weight"},
    {"audio_tower.encoder.layers.second_mlp_norm.weight",
     "audio_tower.conformer.{}.ffw_layer_end.pre_layer_norm.weight"},
    {"audio_tower.encoder.layers.second_mlp_output_norm.weight",
     "audio_tower.conformer.{}.ffw_layer_end.post_layer_norm.weight"},
    {"audio_tower.encoder.layers.second_mlp.up.weight",
     "audio_tower.conformer.{}.ffw_layer_end.ffw_layer_1.weight"},
    {"audio_tower.encoder.layers.second_mlp.down.weight",
     "audio_tower.conformer.{}.ffw_layer_end.ffw_layer_2.weight"},
    {"audio_tower.encoder.layers.attention_norm.weight",
     "audio_tower.conformer.{}.attention.pre_attn_norm.weight"},
    {"audio_tower.encoder.layers.attention_output_norm.weight",
     "audio_tower.conformer.{}.attention.post_norm.weight"},
    {"audio_tower.encoder.layers.attention.query.weight",
     "audio_tower.conformer.{}.attention.attn.q_proj.weight"},
    {"audio_tower.encoder.layers.attention.key.weight",
     "audio_tower.conformer.{}.attention.attn.k_proj.weight"},
    {"audio_tower.encoder.layers.attention.value.weight",
     "audio_tower.conformer.{}.attention.attn.v_proj.weight"},
    {"audio_tower.encoder.layers.attention.output.weight",
     "audio_tower.conformer.{}.attention.post.weight"},
    {"audio_tower.encoder.layers.attention.position_key.weight",
     "audio_tower.conformer.{}.attention.attn.relative_position_embedding.pos_proj.weight"},
    {"audio_tower.encoder.layers.attention.scale",
     "audio_tower.conformer.{}.attention.attn.per_dim_scale"},
    {"audio_tower.encoder.layers.convolution_norm.weight",
     "audio_tower.conformer.{}.lconv1d.pre_layer_norm.weight"},
    {"audio_tower.encoder.layers.convolution.inner_norm.weight",
     "audio_tower.conformer.{}.lconv1d.conv_norm.weight"},
    {"audio_tower.encoder.layers.convolution.gate.weight",
     "audio_tower.conformer.{}.lconv1d.linear_start.weight", part(1)},
    {"audio_tower.encoder.layers.convolution.up.weight",
     "audio_tower.conformer.{}.lconv1d.linear_start.weight", part(0)},
    {"audio_tower.encoder.layers.convolution.weight",
     "audio_tower.conformer.{}.lconv1d.depthwise_conv1d.weight"},
    {"audio_tower.encoder.layers.convolution.out.weight",
     "audio_tower.conformer.{}.lconv1d.linear_end.weight"},
    {"audio_tower.encoder.layers.output_norm.weight", "audio_tower.conformer.{}.norm.weight"},
    {"audio_projector.norm.%", "embed_audio.soft_embedding_norm.%"},
    {"audio_projector.linear.%", "embed_audio.embedding_projection.%"},
    {"projector.audio.table.%", "embed_audio.embedding.%"},
    {"projector.audio.hard_norm.%", "embed_audio.hard_embedding_norm.%"},
    {"projector.image.table.%", "embed_vision.embedding.%"},
    {"projector.image.hard_norm.%", "embed_vision.hard_embedding_norm.%"},
    {"projector.image.norm.%", "embed_vision.soft_embedding_norm.%"},
    {"projector.image.weight", "embed_vision.embedding_projection.weight"},
};

}  // namespace

NameTable wrapped_gemma3n_names() {
  NameTable names{{kGemma3nTowers}, {"model."}, {}};
  names.extras.push_back({"vision_tower.", ExtraKind::vision_tower, NamePart::beginning});
  return names;
}

}  // namespace headroom::detail
