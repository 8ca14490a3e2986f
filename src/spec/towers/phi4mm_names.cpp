// Stored names of Phi-4 multimodal as Microsoft publishes it: modules with adapters keep their own
// weights as base_layer.
#include "tower_names.h"

namespace headroom::detail {
namespace {

constexpr NameRule kPhi4mmText[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.qkv_proj.base_layer.%", part(0)},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.qkv_proj.base_layer.%", part(1)},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.qkv_proj.base_layer.%", part(2)},
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.o_proj.base_layer.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp.gate_up_proj.base_layer.%", part(0)},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.gate_up_proj.base_layer.%", part(1)},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.down_proj.base_layer.%"},
};

constexpr NameRule kPhi4mmAdapters[] = {
    {"adapter.images.layers.attention.qkv.lora_A.%",
     "layers.{}.self_attn.qkv_proj.lora_A.vision.%"},
    {"adapter.images.layers.attention.qkv.lora_B.%",
     "layers.{}.self_attn.qkv_proj.lora_B.vision.%"},
    {"adapter.images.layers.attention.output.lora_A.%",
     "layers.{}.self_attn.o_proj.lora_A.vision.%"},
    {"adapter.images.layers.attention.output.lora_B.%",
     "layers.{}.self_attn.o_proj.lora_B.vision.%"},
    {"adapter.images.layers.mlp.gate_up.lora_A.%", "layers.{}.mlp.gate_up_proj.lora_A.vision.%"},
    {"adapter.images.layers.mlp.gate_up.lora_B.%", "layers.{}.mlp.gate_up_proj.lora_B.vision.%"},
    {"adapter.images.layers.mlp.down.lora_A.%", "layers.{}.mlp.down_proj.lora_A.vision.%"},
    {"adapter.images.layers.mlp.down.lora_B.%", "layers.{}.mlp.down_proj.lora_B.vision.%"},
    {"adapter.speech.layers.attention.qkv.lora_A.%",
     "layers.{}.self_attn.qkv_proj.lora_A.speech.%"},
    {"adapter.speech.layers.attention.qkv.lora_B.%",
     "layers.{}.self_attn.qkv_proj.lora_B.speech.%"},
    {"adapter.speech.layers.attention.output.lora_A.%",
     "layers.{}.self_attn.o_proj.lora_A.speech.%"},
    {"adapter.speech.layers.attention.output.lora_B.%",
     "layers.{}.self_attn.o_proj.lora_B.speech.%"},
    {"adapter.speech.layers.mlp.gate_up.lora_A.%", "layers.{}.mlp.gate_up_proj.lora_A.speech.%"},
    {"adapter.speech.layers.mlp.gate_up.lora_B.%", "layers.{}.mlp.gate_up_proj.lora_B.speech.%"},
    {"adapter.speech.layers.mlp.down.lora_A.%", "layers.{}.mlp.down_proj.lora_A.speech.%"},
    {"adapter.speech.layers.mlp.down.lora_B.%", "layers.{}.mlp.down_proj.lora_B.speech.%"},
};

constexpr NameRule kPhi4mmTowers[] = {
    {"projector.up.%", "img_projection.0.%"},
    {"projector.down.%", "img_projection.2.%"},
    {"projector.end_of_row", "sub_GN"},
    {"projector.end_of_tiles", "glb_GN"},
    {"audio_tower.layers.first_mlp.gate_up.%",
     "encoder.encoders.{}.feed_forward_in.net.0.linear.%"},
    {"audio_tower.layers.first_mlp.down.%", "encoder.encoders.{}.feed_forward_in.net.2.%"},
    {"audio_tower.layers.attention.query.%", "encoder.encoders.{}.self_attn.linear_q.%"},
    {"audio_tower.layers.attention.key.%", "encoder.encoders.{}.self_attn.linear_k.%"},
    {"audio_tower.layers.attention.value.%", "encoder.encoders.{}.self_attn.linear_v.%"},
    {"audio_tower.layers.attention.output.%", "encoder.encoders.{}.self_attn.linear_out.%"},
    {"audio_tower.layers.second_mlp.gate_up.%",
     "encoder.encoders.{}.feed_forward_out.net.0.linear.%"},
    {"audio_tower.layers.second_mlp.down.%", "encoder.encoders.{}.feed_forward_out.net.2.%"},
    {"projector.speech.up.%", "audio_projection.speech.0.%"},
    {"projector.speech.down.%", "audio_projection.speech.2.%"},
    {"projector.speech_beside_images.up.%", "audio_projection.vision.0.%"},
    {"projector.speech_beside_images.down.%", "audio_projection.vision.2.%"},
};

}  // namespace

std::span<const NameRule> phi4mm_text_rules() { return kPhi4mmText; }

NameTable phi4mm_names() {
  NameTable names = wrapped_phi4_names();
  names.rules.insert(names.rules.begin(), {kPhi4mmAdapters, kPhi4mmTowers});
  // A text uses neither adapter.
  for (const std::string_view ending : {"lora_A.vision.weight", "lora_B.vision.weight",
                                        "lora_A.speech.weight", "lora_B.speech.weight"}) {
    names.extras.push_back({ending, ExtraKind::vision_tower});
  }
  return names;
}

}  // namespace headroom::detail
