// Models that read documents: GOT-OCR 2 with Qwen2, GLM-OCR with GLM-4's layers, PaddleOCR-VL with
// ERNIE 4.5's (arXiv 2409.01704, 2510.14528; transformers, models/got_ocr2, glm_ocr, paddleocr_vl).
#include "../decoder.h"
#include "../family.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

/// GLM-4 with norms before and after each part, and without biases.
void read_glm_ocr_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_size = HeadSizeRule::rounded_down;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.layout = RopeLayout::interleaved;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  spec.decoder->norm_placement = NormPlacement::sandwich;
  config.ignore({"num_nextn_predict_layers"});
}

/// ERNIE 4.5 with RoPE in three axes, which are equal for text.
void read_paddleocr_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 2;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 500000;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.qkv_bias = config.flag_or({"use_bias"}, false);
  stack.self_attention.output_bias = stack.self_attention.qkv_bias;
  stack.ffn.bias = stack.self_attention.qkv_bias;
  config.ignore({"compression_ratio",
                 "freq_allocation",
                 "max_sequence_length",
                 "rope_is_neox_style",
                 "scale_qk_coeff",
                 "sliding_window",
                 "use_3d_rope",
                 "use_rmsnorm",
                 "weight_share_add_bias",
                 "hidden_dropout_prob",
                 "attention_probs_dropout_prob",
                 "ignored_index",
                 "fuse_ln",
                 "fuse_linear",
                 "fuse_swiglu",
                 "micro_batch_size",
                 "pixel_hidden_size",
                 "vision_start_token_id",
                 "video_token_id",
                 "mm_vocab_size",
                 "image_token_id"});
}

}  // namespace

std::vector<Family> document_models_families() {
  return {
      wrapper_family({.model_types = {"got_ocr2"},
                      .classes = {"GotOcr2ForConditionalGeneration"},
                      .bare_classes = {"GotOcr2Model"},
                      .text_type = "qwen2",
                      .count_towers = count_got_ocr2_tower,
                      .tying = HeadTying::whole_else_tied}),
      wrapper_family({.model_types = {"glm_ocr"},
                      .classes = {"GlmOcrForConditionalGeneration"},
                      .bare_classes = {"GlmOcrModel"},
                      .text_type = "glm_ocr_text",
                      .count_towers = read_glm_ocr_tower,
                      .tying = HeadTying::either,
                      .names = wrapped_glm_ocr_names()}),
      {.model_types = {"glm_ocr_text"},
       .classes = llama_classes("GlmOcrText"),
       .reader = read_glm_ocr_text,
       .names = llama_names({glm_rules()}),
       .gguf = None("llama.cpp stores it under the name of GLM-4")},
      wrapper_family({.model_types = {"paddleocr_vl"},
                      .classes = {"PaddleOCRVLForConditionalGeneration"},
                      .bare_classes = {"PaddleOCRVLModel"},
                      .text_type = "paddleocr_vl_text",
                      .count_towers = read_paddleocr_vl_tower,
                      .tying = HeadTying::either_else_tied,
                      .names = wrapped_paddleocr_names()}),
      {.model_types = {"paddleocr_vl_text"},
       .classes = decoder_classes("PaddleOCRText", {.tied = true, .float32_logits = true}),
       .reader = read_paddleocr_text,
       .names = llama_names(),
       .gguf = GgufForm(GgufConversion::none, {{.name = "paddleocr",
                                                .common = gguf_rms_norm_keys(),
                                                .flags = {{"blk.0.attn_output.bias", "use_bias"}},
                                                .head_dim = GgufHeadDim::always}})}};
}

}  // namespace headroom::detail
