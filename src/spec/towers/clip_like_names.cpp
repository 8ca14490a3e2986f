// Stored names of towers like CLIP's and Qwen's that multimodal models name in their own way.
#include "tower_names.h"

namespace headroom::detail {
namespace {

constexpr NameRule kVipLlava[] = {
    {"projector.norm.%", "multi_modal_projector.projector_layernorm.%"},
    {"projector.up.%", "multi_modal_projector.linear_1.%"},
    {"projector.down.%", "multi_modal_projector.linear_2.%"},
};

constexpr NameRule kVideoLlama3[] = {
    {"projector.up.%", "projector.readout.0.%"},
    {"projector.down.%", "projector.readout.2.%"},
};

// As published, and as transformers names its modules.
constexpr NameRule kPaddleOcr[] = {
    {"projector.norm.%", "mlp_AR.pre_norm.%"},  {"projector.up.%", "mlp_AR.linear_1.%"},
    {"projector.down.%", "mlp_AR.linear_2.%"},  {"projector.norm.%", "projector.pre_norm.%"},
    {"projector.up.%", "projector.linear_1.%"}, {"projector.down.%", "projector.linear_2.%"},
};

constexpr NameRule kKimiVl[] = {
    {"projector.norm.%", "multi_modal_projector.pre_norm.%"},
    {"projector.up.%", "multi_modal_projector.linear_1.%"},
    {"projector.down.%", "multi_modal_projector.linear_2.%"},
};

constexpr NameRule kPhi3V[] = {
    {"projector.up.%", "img_projection.0.%"},
    {"projector.down.%", "img_projection.2.%"},
    {"projector.end_of_row", "sub_GN"},
    {"projector.end_of_tiles", "glb_GN"},
};

constexpr NameRule kHeadNorms[] = {
    {"vision_tower.encoder.layers.attention.query_norm.%", "visual.blocks.{}.attn.q_norm.%"},
    {"vision_tower.encoder.layers.attention.key_norm.%", "visual.blocks.{}.attn.k_norm.%"},
};

// As published; transformers saves the weights with these names, too.
constexpr NameRule kMiniMaxM3[] = {
    {"projector.merger.up.%", "patch_merge_mlp.linear_1.%"},
    {"projector.merger.down.%", "patch_merge_mlp.linear_2.%"},
    {"projector.up.%", "multi_modal_projector.linear_1.%"},
    {"projector.down.%", "multi_modal_projector.linear_2.%"},
};

}  // namespace

NameTable wrapped_vipllava_names() { return wrapped_clip_names(kVipLlava); }

NameTable wrapped_video_llama3_names() { return wrapped_clip_names(kVideoLlama3); }

NameTable wrapped_minimax_m3_names() { return wrapped_clip_names(kMiniMaxM3); }

NameTable wrapped_paddleocr_names() {
  NameTable names = wrapped_clip_names(kPaddleOcr);
  names.optional_prefixes.push_back("visual.");
  names.optional_prefixes.push_back("model.visual.");
  return names;
}

NameTable wrapped_phi3_v_names() {
  NameTable names = wrapped_clip_names(kPhi3V);
  names.extras.push_back({"vision_embed_tokens.wte.weight", ExtraKind::tied_copy});
  for (const std::string_view prefix :
       {"model.vision_embed_tokens.", "model.vision_embed_tokens.img_processor."}) {
    names.optional_prefixes.push_back(prefix);
  }
  return names;
}

NameTable wrapped_kimi_vl_names() {
  NameTable names = wrapped_kimi_names();
  names.rules.emplace_back(kKimiVl);
  return names;
}

NameTable wrapped_glm_ocr_names() {
  NameTable names = wrapped_glm4v_names();
  names.rules.emplace_back(kHeadNorms);
  return names;
}

}  // namespace headroom::detail
