// StarCoder and SantaCoder: GPT-2 with one KV head (arXiv 2305.06161).
#include "../family.h"
#include "../gpt.h"

namespace headroom::detail {
namespace {

void read_gpt_bigcode(ConfigReader& config, ModelSpec& spec) {
  read_gpt_sizes(config, spec, 1024);
  spec.position.kind = PositionKind::learned;
  StackSpec& stack = *spec.decoder;
  AttentionSpec& attention = stack.self_attention;
  attention.qkv_bias = true;
  attention.output_bias = true;
  attention.softmax = SoftmaxPrecision::float32;
  if (!config.has("activation_function")) stack.ffn.activation = ActivationKind::gelu_tanh;
  if (config.flag_or({"multi_query"}, true)) attention.num_key_value_heads = 1;
  config.expect_flag("scale_attn_weights", true);
  // Implementation and test settings of the reference code.
  config.ignore({"num_key_value_heads", "attention_softmax_in_fp32",
                 "scale_attention_softmax_in_fp32", "inference_runner", "validate_runner_input",
                 "pre_allocate_kv_cache", "max_sequence_length", "max_batch_size", "pad_key_length",
                 "n_ctx", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                 "summary_type", "summary_use_proj"});
}

constexpr NameRule kGptBigcode[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"embeddings.position_embeddings.%", "wpe.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_2.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.c_attn.%",
     part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "h.{}.attn.c_attn.%", part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "h.{}.attn.c_attn.%",
     part(2, Stacking::per_key_value_head)},
    {"decoder.layers.attention.output.%", "h.{}.attn.c_proj.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.c_fc.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.c_proj.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

constexpr NameRule kStarcoderGguf[] = {
    {"layers.attention.query.%", "blk.{}.attn_qkv.%", part(0, Stacking::per_key_value_head)},
    {"layers.attention.key.%", "blk.{}.attn_qkv.%", part(1, Stacking::per_key_value_head)},
    {"layers.attention.value.%", "blk.{}.attn_qkv.%", part(2, Stacking::per_key_value_head)},
};

}  // namespace

std::vector<Family> gpt_bigcode_families() {
  return {{.model_types = {"gpt_bigcode"},
           .classes = decoder_classes("GPTBigCode", {.tied = true}),
           .reader = read_gpt_bigcode,
           .names = gpt_names(kGptBigcode),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "starcoder",
                              .common = gguf_gpt2_keys(),
                              .constants = {{"multi_query", "true"}},
                              .tie = GgufTie::always,
                              .head_dim = GgufHeadDim::never}},
                            {kStarcoderGguf})}};
}

}  // namespace headroom::detail
