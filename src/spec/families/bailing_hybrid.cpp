// Ling 3 (BailingHybrid, as published BailingMoeV3): Kimi delta attention with a bounded decay, and
// in the last layer of every group latent attention with one output gate per head; experts as in
// DeepSeek V3 (arXiv 2510.26692; transformers, models/bailing_hybrid). Ling 2.5 has its type.
#include <algorithm>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "../kimi_delta.h"
#include "../state_space.h"
#include "bailing.h"

namespace headroom::detail {
namespace {

DecoderDefaults ling_defaults() {
  DecoderDefaults defaults = deepseek_defaults(262144);
  defaults.head_size = HeadSizeRule::own;
  defaults.rope.theta = 6000000;
  return defaults;
}

/// Layers with delta attention have as many heads as the others, of `head_dim`, unless the keys
/// that transformers writes say otherwise.
void read_ling_delta_layers(ConfigReader& config, StackSpec& stack, std::int64_t head_dim) {
  KimiDeltaSizes sizes;
  sizes.num_heads = config.size_or({"linear_num_heads"}, stack.self_attention.num_attention_heads);
  sizes.head_dim = head_dim;
  const std::int64_t kernel = config.size_or({"short_conv_kernel_size"}, 4);
  sizes.conv_kernel_dim = config.size_or({"linear_conv_kernel_dim"}, kernel);
  GatedDeltaSpec delta = kimi_delta(sizes);
  const double bound = config.number_or({"kda_lower_bound"}, -5);
  if (config.flag_or({"kda_safe_gate"}, true)) delta.decay_bound = bound;
  const std::int64_t group = config.size_or({"layer_group_size"}, 6);
  const std::vector<bool> full =
      read_full_attention_layers(config, stack.num_layers, {"linear_attention"},
                                 [group](std::int64_t layer) { return (layer + 1) % group == 0; });
  spread_kimi_delta(stack, full, delta);
}

/// Width of a delta layer's heads. In a config that transformers wrote, head_dim is that of the
/// rotated part of the others.
std::int64_t read_delta_head_dim(ConfigReader& config) {
  if (!config.has("linear_head_dim")) return config.size_or({"head_dim"}, 128);
  config.ignore({"head_dim"});
  return config.size({"linear_head_dim"});
}

ExpertsSpec read_ling_experts(ConfigReader& config) {
  ExpertsSpec experts;
  experts.num_experts = config.size_or_of_class({"num_experts", "num_local_experts"}, 512);
  experts.num_experts_per_tok =
      config.size_or_of_class({"num_experts_per_tok", "num_experts_per_token"}, 8);
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 768);
  experts.shared_intermediate_size = product(
      config, "num_shared_experts", config.count_or({"num_shared_experts", "n_shared_experts"}, 1),
      experts.intermediate_size);
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, 2.5);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.group_score = GroupScore::two_best;
  experts.normalise = config.flag_or({"norm_topk_prob", "moe_renormalize"}, true);
  experts.num_groups = config.size_or({"n_group", "num_expert_group"}, 8);
  experts.chosen_groups = config.size_or({"topk_group"}, 4);
  require_groups(config, experts);
  return experts;
}

/// Keys of published configs for which the class has one choice only.
void expect_ling_choices(ConfigReader& config, const ExpertsSpec& experts) {
  for (const char* const key : {"use_kda_lora", "use_mla_nope", "use_nGPT", "up_proj_norm",
                                "value_norm", "scale_router_input", "use_bias", "use_qkv_bias"}) {
    config.expect_flag(key, false);
  }
  for (const char* const key : {"no_kda_lora", "use_qk_norm", "moe_router_enable_expert_bias"}) {
    config.expect_flag(key, true);
  }
  config.expect_text("gated_attention_proj_granularity_type", "head_wise");
  config.expect_text("scoring_func", "sigmoid");
  config.expect_text("topk_method", "noaux_tc");
  config.expect_number("group_norm_size", 1);
  config.expect_number("num_kv_heads_for_linear_attn", 0);
  config.expect_number("moe_shared_expert_intermediate_size",
                       static_cast<double>(experts.intermediate_size));
  // Of MTP layers, of training, of a convolution that always has SiLU, and unused ones.
  config.ignore({"mtp_use_kda", "router_dtype", "linear_silu", "max_window_layers", "rotary_dim",
                 "embedding_dropout", "output_dropout"});
}

/// Limits of SwiGLU by layer; 0: none.
void read_limits_of_layers(ConfigReader& config, ModelSpec& spec) {
  for (const char* const key : {"expert_swiglu_limit_list", "share_expert_swiglu_limit_list"}) {
    const std::vector<double> limits = config.numbers(key);
    const bool limited = std::ranges::any_of(limits, [](double limit) { return limit != 0; });
    if (limited) spec.not_run = "its limits of SwiGLU by layer have no kernel yet";
  }
}

void read_ling_3(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t head_dim = read_delta_head_dim(config);
  DecoderDefaults defaults = ling_defaults();
  defaults.max_position_embeddings =
      config.size_or({"model_max_length"}, defaults.max_position_embeddings);
  read_decoder(config, spec, defaults);
  read_latent_attention(config, spec, {0, 128, 128});
  StackSpec& stack = *spec.decoder;
  stack.self_attention.output_gate = ContextGate::sigmoid_of_head;
  read_ling_delta_layers(config, stack, head_dim);
  const ExpertsSpec experts = read_ling_experts(config);
  spread_experts(config, stack, experts, 2);
  expect_ling_choices(config, experts);
  read_limits_of_layers(config, spec);
  require_silu_to_run(spec);
  config.expect_text("score_function", "sigmoid");
  if (config.count_or({"num_nextn_predict_layers", "num_mtp_layers"}, 0) > 0) {
    spec.assumptions.emplace_back("the layers for multi-token prediction are left out");
  }
  config.ignore({"mtp_loss_scaling_factor"});
}

/// Configs of Ling 2.5, 2.6 and 3 have this type; their classes differ.
void read_bailing_hybrid(ConfigReader& config, ModelSpec& spec) {
  if (has_class(bailing_v2_5_classes(), spec.architecture)) {
    read_bailing_v2_5(config, spec);
  } else {
    read_ling_3(config, spec);
  }
}

constexpr NameRule kLing[] = {
    {"embeddings.word_embeddings.%", "word_embeddings.%"},
    {"decoder.layers.attention.query.%", "layers.{}.attention.q_proj.%"},
    {"decoder.layers.attention.query.%", "layers.{}.attention.q_b_proj.%"},
    {"decoder.layers.attention.query_a.%", "layers.{}.attention.q_a_proj.%"},
    {"decoder.layers.attention.query_a_norm.%", "layers.{}.attention.q_a_layernorm.%"},
    {"decoder.layers.attention.key_value_a.%", "layers.{}.attention.kv_a_proj_with_mqa.%"},
    {"decoder.layers.attention.key_value_a_norm.%", "layers.{}.attention.kv_a_layernorm.%"},
    {"decoder.layers.attention.key_value.%", "layers.{}.attention.kv_b_proj.%"},
    {"decoder.layers.attention.gate.%", "layers.{}.attention.g_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.attention.dense.%"},
    {"decoder.layers.delta.query.%", "layers.{}.attention.q_proj.%"},
    {"decoder.layers.delta.key.%", "layers.{}.attention.k_proj.%"},
    {"decoder.layers.delta.value.%", "layers.{}.attention.v_proj.%"},
    {"decoder.layers.delta.convolution.%", "layers.{}.attention.{qkv}_conv1d.%"},
    {"decoder.layers.delta.alpha.%", "layers.{}.attention.f_proj.%"},
    {"decoder.layers.delta.gate.%", "layers.{}.attention.g_proj.%"},
    {"decoder.layers.delta.beta.%", "layers.{}.attention.b_proj.%"},
    {"decoder.layers.delta.dt_bias", "layers.{}.attention.dt_bias"},
    {"decoder.layers.delta.a_log", "layers.{}.attention.A_log"},
    {"decoder.layers.delta.context_norm.%", "layers.{}.attention.o_norm.%"},
    {"decoder.layers.delta.output.%", "layers.{}.attention.dense.%"},
    {"decoder.layers.delta.output.%", "layers.{}.attention.o_proj.%"},
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.gate.expert_bias"},
};

}  // namespace

NameTable ling_names() {
  return llama_names({ling_lightning_rules(), kLing, shared_expert_rules(), routed_expert_rules()});
}

std::vector<Family> bailing_hybrid_families() {
  return {{.model_types = {"bailing_hybrid"},
           .classes = either_of(llama_classes("BailingHybrid"),
                                either_of(llama_classes("BailingMoeV3"), bailing_v2_5_classes())),
           .reader = read_bailing_hybrid,
           .names = ling_names(),
           .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
