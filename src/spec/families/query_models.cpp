// Multimodal models with trained queries, or with towers that are counted: BLIP-2, Granite Speech,
// Aria, Molmo 2, Ovis 2 and Phi-4 multimodal; and the text models of Aria (arXiv 2410.05993) and
// Molmo 2, which are Llama with experts and Qwen3 with further embeddings (transformers,
// models/aria and models/molmo2).
#include "../decoder.h"
#include "../family.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

void read_aria_text(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, {});
  ExpertsSpec experts;
  experts.num_experts = config.size_or_of_class({"moe_num_experts"}, 8);
  experts.num_experts_per_tok = config.size_or_of_class({"moe_topk"}, 2);
  experts.intermediate_size = spec.decoder->ffn.intermediate_size;
  experts.shared_intermediate_size =
      product(config, "moe_num_shared_experts", config.size_or({"moe_num_shared_experts"}, 2),
              experts.intermediate_size);
  experts.scoring = RouterScoring::softmax_of_chosen;
  experts.activation = ActivationKind::silu;  // hidden_act is that of the shared experts
  spec.decoder->ffn.experts = experts;
  config.expect_flag("mlp_bias", false);  // of the shared experts alone
  config.ignore({"pretraining_tp"});
}

void read_molmo2_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 36864;
  defaults.bias = BiasRule::key_for_query_key_value;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  const std::int64_t further = config.count_or({"additional_vocab_size"}, 128);
  if (further > 0) {
    spec.counted_only.push_back({"embeddings.further_embeddings.weight",
                                 {further, spec.hidden_size},
                                 WeightRole::embedding,
                                 1,
                                 ModelPart::text,
                                 CountedUse::loaded});
  }
  config.expect_text("qk_norm_type", "qwen3");
  config.expect_flag("norm_after", false);
  config.ignore({"rope_scaling_layers", "qkv_bias", "use_qk_norm"});
}

// Sizes of Phi4MultimodalConfig, where they differ from those of Phi3Config.
constexpr std::string_view kPhi4Sizes = R"({"vocab_size": 200064, "num_key_value_heads": 8,
    "max_position_embeddings": 131072})";

constexpr NameRule kAria[] = {
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.router.%"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.mlp.experts.fc1.%",
     stacked_experts(transposed(part(0)))},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.mlp.experts.fc1.%",
     stacked_experts(transposed(part(1)))},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.mlp.experts.fc2.%",
     stacked_experts(transposed())},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_experts.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_experts.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_experts.down_proj.%"},
};

constexpr NameRule kMolmo2[] = {
    {"embeddings.word_embeddings.weight", "transformer.wte.embedding"},
    {"embeddings.further_embeddings.weight", "transformer.wte.new_embedding"},
    {"decoder.layers.attention_norm.%", "transformer.blocks.{}.attn_norm.%"},
    {"decoder.layers.attention.query.%", "transformer.blocks.{}.self_attn.att_proj.%", part(0)},
    {"decoder.layers.attention.key.%", "transformer.blocks.{}.self_attn.att_proj.%", part(1)},
    {"decoder.layers.attention.value.%", "transformer.blocks.{}.self_attn.att_proj.%", part(2)},
    {"decoder.layers.attention.query_norm.%", "transformer.blocks.{}.self_attn.q_norm.%"},
    {"decoder.layers.attention.key_norm.%", "transformer.blocks.{}.self_attn.k_norm.%"},
    {"decoder.layers.attention.output.%", "transformer.blocks.{}.self_attn.attn_out.%"},
    {"decoder.layers.mlp_norm.%", "transformer.blocks.{}.ff_norm.%"},
    {"decoder.layers.mlp.up.%", "transformer.blocks.{}.mlp.ff_proj.%", part(0)},
    {"decoder.layers.mlp.gate.%", "transformer.blocks.{}.mlp.ff_proj.%", part(1)},
    {"decoder.layers.mlp.down.%", "transformer.blocks.{}.mlp.ff_out.%"},
    {"decoder.final_norm.%", "transformer.ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
};

/// Models of text around towers with learned queries or poolers.
std::vector<Family> query_wrapper_families() {
  return {wrapper_family({.model_types = {"blip-2"},
                          .classes = {"Blip2ForConditionalGeneration"},
                          .bare_classes = {"Blip2Model"},
                          .text_type = "opt",
                          .count_towers = read_blip2_towers,
                          .tying = HeadTying::text,
                          .names = wrapped_blip2_names()}),
          wrapper_family({.model_types = {"granite_speech"},
                          .classes = {"GraniteSpeechForConditionalGeneration"},
                          .bare_classes = {"GraniteSpeechModel"},
                          .text_type = "granite",
                          .count_towers = count_granite_speech_tower,
                          .tying = HeadTying::whole_else_tied}),
          wrapper_family({.model_types = {"granite_speech_plus"},
                          .classes = {"GraniteSpeechPlusForConditionalGeneration"},
                          .bare_classes = {"GraniteSpeechPlusModel"},
                          .text_type = "granite",
                          .count_towers = count_granite_speech_plus_tower,
                          .tying = HeadTying::whole_else_tied}),
          wrapper_family({.model_types = {"aria"},
                          .classes = {"AriaForConditionalGeneration"},
                          .bare_classes = {"AriaModel"},
                          .text_type = "aria_text",
                          .count_towers = read_aria_tower,
                          .tying = HeadTying::whole,
                          .names = wrapped_aria_names()}),
          wrapper_family({.model_types = {"molmo2"},
                          .classes = {"Molmo2ForConditionalGeneration"},
                          .bare_classes = {"Molmo2Model"},
                          .text_type = "molmo2_text",
                          .count_towers = count_molmo2_tower,
                          .tying = HeadTying::never}),
          wrapper_family({.model_types = {"ovis2"},
                          .classes = {"Ovis2ForConditionalGeneration"},
                          .bare_classes = {"Ovis2Model"},
                          .text_type = "qwen2",
                          .count_towers = count_ovis2_tower,
                          .tying = HeadTying::whole_else_tied}),
          wrapper_family({.model_types = {"phi4_multimodal"},
                          .classes = {"Phi4MultimodalForCausalLM"},
                          .bare_classes = {"Phi4MultimodalModel"},
                          .text_type = "phi3",
                          .count_towers = read_phi4_multimodal_towers,
                          .tying = HeadTying::whole,
                          .text_defaults = kPhi4Sizes,
                          .names = wrapped_phi4_names()})};
}

}  // namespace

std::vector<Family> query_models_families() {
  std::vector<Family> families = query_wrapper_families();
  families.push_back({.model_types = {"aria_text"},
                      .classes = llama_classes("AriaText"),
                      .reader = read_aria_text,
                      .names = llama_names({kAria}),
                      .gguf = None("llama.cpp does not support this architecture")});
  families.push_back({.model_types = {"molmo2_text"},
                      .classes = llama_classes("Molmo2Text"),
                      .reader = read_molmo2_text,
                      .names = NameTable{{kMolmo2}, {"model."}, {}},
                      .gguf = None("llama.cpp does not support this architecture")});
  return families;
}

}  // namespace headroom::detail
