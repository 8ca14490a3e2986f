// Image encoders that several multimodal families run as their tower.
#pragma once

#include "tower_weights.h"

namespace headroom::detail {

/// SigLIP (arXiv 2303.15343). Its pooling head, unless vision_use_head is false, is loaded with it,
/// and no multimodal family reads its output.
[[nodiscard]] TowerSpec read_siglip(ConfigReader& vision, ModelSpec& spec);
/// CLIP (arXiv 2103.00020): a class token, a norm before the layers, and one after them that only
/// the class token passes.
[[nodiscard]] TowerSpec read_clip(ConfigReader& vision, ModelSpec& spec);
/// SigLIP and CLIP with the output that is compared with texts: one vector per image.
[[nodiscard]] TowerSpec read_pooled_siglip(ConfigReader& vision);
[[nodiscard]] TowerSpec read_pooled_clip(ConfigReader& vision);
/// SigLIP 2 for images of any shape (arXiv 2502.14786, section 2.4.2): the preprocessor cuts their
/// patches, and the table of positions is resized to each.
[[nodiscard]] TowerSpec read_pooled_siglip2(ConfigReader& vision);
/// SigLIP 2 likewise, with the patches of its last layer as output (LFM2-VL).
[[nodiscard]] TowerSpec read_siglip2(ConfigReader& vision, ModelSpec& spec);
/// Pixtral (arXiv 2410.07073): RMSNorm, SwiGLU, 2-D RoPE in place of position embeddings.
[[nodiscard]] TowerSpec read_pixtral(ConfigReader& vision, ModelSpec& spec);
/// SigLIP with the default sizes of Phi-4 multimodal, whose pooling head is loaded with it.
[[nodiscard]] TowerSpec read_phi4_vision(ConfigReader& vision, ModelSpec& spec);
/// Idefics3: SigLIP without a pooling head.
[[nodiscard]] TowerSpec read_idefics3_vision(ConfigReader& vision, ModelSpec& spec);
/// BLIP-2's: a class token, and a norm after the last layer.
[[nodiscard]] TowerSpec read_blip2_vision(ConfigReader& vision);
/// InternViT in the layout of transformers: a class token, layer scale.
[[nodiscard]] TowerSpec read_internvl_vision(ConfigReader& vision, ModelSpec& spec);
/// InternViT as OpenGVLab publishes it (modeling_intern_vit.py of InternVL): other keys, without a
/// norm after the last layer.
[[nodiscard]] TowerSpec read_intern_vit(ConfigReader& vision, ModelSpec& spec);

}  // namespace headroom::detail
