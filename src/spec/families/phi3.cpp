// Phi-3 and Phi-4: Llama without biases, with fused projections and LongRoPE (arXiv 2404.14219);
// Phi-3 and 3.5 Vision (modeling_phi3_v.py of Phi-3-vision-128k-instruct); Phi-4 multimodal as
// Microsoft publishes it (modeling_phi4mm.py of Phi-4-multimodal-instruct).
#include "../decoder.h"
#include "../family.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"

namespace headroom::detail {
namespace {

void read_phi3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 4096;
  defaults.norm_eps = 1e-5;
  defaults.rope.original_max_position_embeddings = 4096;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  spec.decoder->self_attention.window = read_window(config, 0);
  const double dropout = config.probability_or({"resid_pdrop"}, 0);
  spec.decoder->dropout.attention_output = dropout;
  spec.decoder->dropout.ffn_output = dropout;
  // The class ignores these: it has no embedding dropout and no biases.
  config.ignore({"embd_pdrop", "attention_bias", "mlp_bias", "lm_head_bias"});
}

void read_phi3_v(ConfigReader& config, ModelSpec& spec) {
  read_phi3(config, spec);
  read_phi3_v_tower(config, spec);
}

void read_phi4mm(ConfigReader& config, ModelSpec& spec) {
  read_phi3(config, spec);
  read_phi4mm_towers(config, spec);
  config.ignore({"full_attn_mod", "interpolate_factor"});  // of training code
}

void read_phimoe(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  defaults.norm = {NormKind::layer_norm, true};
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 1e6;
  const double jitter = config.number_or({"router_jitter_noise"}, 0.01);
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  if (spec.head.language_model) {
    spec.head.language_model->bias = config.flag_or({"lm_head_bias"}, false);
  }
  stack.self_attention.window = read_window(config, 0);
  ExpertsSpec experts = read_experts(config, {{"num_local_experts", "num_experts"}, 16, 2});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.scoring = RouterScoring::sparse_mixer;
  config.expect_number("num_experts_per_tok", 2);  // the only number that SparseMixer has
  experts.jitter_eps = jitter;
  stack.ffn.experts = experts;
  config.ignore({"input_jitter_noise", "hidden_dropout", "lm_head_bias"});
}

constexpr NameRule kPhi3[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.qkv_proj.%", part(0)},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.qkv_proj.%", part(1)},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.qkv_proj.%", part(2)},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp.gate_up_proj.%", part(0)},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.gate_up_proj.%", part(1)},
};

/// Names of the text model, `own` first, then those of its towers, which stand among the
/// embeddings.
NameTable with_phi3_text(NameTable names, std::span<const NameRule> own = {}) {
  const NameTable text = llama_names({own, kPhi3});
  names.rules.insert(names.rules.begin(), text.rules.begin(), text.rules.end());
  names.optional_prefixes.insert(names.optional_prefixes.end(), text.optional_prefixes.begin(),
                                 text.optional_prefixes.end());
  names.extras.insert(names.extras.end(), text.extras.begin(), text.extras.end());
  return names;
}

HeadSpec phi3_multimodal_head(ConfigReader& config) {
  return language_model_head(language_model_of(config, {}));
}

}  // namespace

std::vector<Family> phi3_families() {
  return {
      {.model_types = {"phi3"},
       .classes = llama_classes("Phi3"),
       .reader = read_phi3,
       .names = llama_names({kPhi3}),
       .gguf =
           GgufForm(GgufConversion::none, {{.name = "phi3",
                                            .common = gguf_rms_norm_keys(),
                                            .own = {{"attention.sliding_window", "sliding_window"}},
                                            .head_dim = GgufHeadDim::never,
                                            .finish = finish_partial_rotary}})},
      {.model_types = {"phi3_v"},
       .classes = {{{"Phi3VForCausalLM", phi3_multimodal_head}}},
       .reader = read_phi3_v,
       .names = with_phi3_text(wrapped_phi3_v_names()),
       .gguf = None("GGUF stores the towers in a separate file")},
      {.model_types = {"phi4mm"},
       .classes = {{{"Phi4MMForCausalLM", phi3_multimodal_head}}},
       .reader = read_phi4mm,
       .names = with_phi3_text(phi4mm_names(), phi4mm_text_rules()),
       .gguf = None("GGUF stores the towers in a separate file")},
      {.model_types = {"phimoe"},
       .classes = either_of(llama_classes("PhiMoE"), llama_classes("Phimoe")),
       .reader = read_phimoe,
       .names = llama_names({mixtral_expert_rules(), query_key_norm_rules()}),
       .gguf = GgufForm(
           GgufConversion::none,
           {{.name = "phimoe",
             .common = gguf_expert_keys(),
             .own = {{"feed_forward_length", "intermediate_size"},
                     {"expert_count", "num_local_experts"},
                     {"attention.sliding_window", "sliding_window"}},
             .flags = {{"blk.0.attn_q.bias", "attention_bias"}, {"output.bias", "lm_head_bias"}},
             .head_dim = GgufHeadDim::never}})}};
}

}  // namespace headroom::detail
