// Ling and Ring (BailingMoE): shared and routed experts, Q, K and V in one matrix; the second
// version adds norms on query and key heads and sigmoid routing in groups (arXiv 2503.05139,
// 2510.22115; modeling_bailing_moe.py and modeling_bailing_moe_v2.py of inclusionAI).
#include "bailing.h"

#include <algorithm>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "../gguf/latent_form.h"

namespace headroom::detail {
namespace {

/// Sizes, norms, RoPE and two keys of biases; `defaults.bias_when_absent` is that of the output's.
void read_bailing_decoder(ConfigReader& config, ModelSpec& spec, DecoderDefaults defaults) {
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  AttentionSpec& attention = spec.decoder->self_attention;
  attention.qkv_bias = config.flag_or({"use_qkv_bias"}, false);
  attention.output_bias = config.flag_or({"use_bias"}, defaults.bias_when_absent);
  config.expect_flag("use_sliding_window", false);
  config.expect_flag("use_rmsnorm", true);
  // The classes have no windows, and no dropout at these places.
  config.ignore({"sliding_window", "max_window_layers", "embedding_dropout", "output_dropout"});
}

/// The class divides only where several experts share a token.
void normalise_weights(ExpertsSpec& experts, bool normalise) {
  experts.normalise = normalise && experts.num_experts_per_tok > 1;
}

void read_version_1(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 16384;
  defaults.norm_eps = 1e-5;
  defaults.num_key_value_heads = config.size({"num_key_value_heads"});  // the class's default is 0
  defaults.bias_when_absent = true;
  read_bailing_decoder(config, spec, defaults);
  ExpertsSpec experts = read_shared_and_routed_experts(
      config, {{"num_experts"}, 16, 2}, {config.size({"moe_intermediate_size"}), 0, 1});
  normalise_weights(experts, config.flag_or({"norm_topk_prob"}, true));
  spread_experts(config, *spec.decoder, experts, 0);
  if (config.flag_or({"norm_head"}, false)) {
    spec.not_run = "it normalises the columns of its head";
  }
  config.expect_flag("norm_softmax", false);
}

/// Layers for drafting tokens follow those of num_hidden_layers.
void leave_out_drafting_layers(ConfigReader& config, ModelSpec& spec) {
  if (config.count_or({"num_nextn_predict_layers"}, 0) > 0) {
    spec.assumptions.emplace_back("the layers for multi-token prediction are left out");
  }
  config.ignore({"mtp_loss_scaling_factor"});
}

}  // namespace

void read_bailing_v2(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.num_key_value_heads = 4;
  defaults.head_dim = 128;
  defaults.rope.theta = 600000;
  read_bailing_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  if (config.flag_or({"use_qk_norm"}, true)) {
    stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  }
  read_bailing_v2_experts(config, spec);
}

void read_bailing_v2_experts(ConfigReader& config, ModelSpec& spec) {
  ExpertsSpec experts =
      read_shared_and_routed_experts(config, {{"num_experts"}, 256, 8}, {512, 1, 1});
  balance_experts(config, experts, {8, 4});
  normalise_weights(experts, experts.normalise);
  spread_experts(config, *spec.decoder, experts, 1);
  leave_out_drafting_layers(config, spec);
  config.expect_text("score_function", "sigmoid");
  config.expect_flag("moe_router_enable_expert_bias", true);
  config.expect_number("moe_shared_expert_intermediate_size",
                       static_cast<double>(experts.intermediate_size));
  config.ignore({"router_dtype"});
}

namespace {

ModelClasses version_2_classes() { return llama_classes("BailingMoeV2"); }

/// Configs of both versions may have this type; their classes differ.
void read_bailing_moe(ConfigReader& config, ModelSpec& spec) {
  if (has_class(version_2_classes(), spec.architecture)) {
    read_bailing_v2(config, spec);
  } else {
    read_version_1(config, spec);
  }
}

constexpr NameRule kBailing[] = {
    {"embeddings.word_embeddings.%", "word_embeddings.%"},
    {"decoder.layers.attention.query.%", "layers.{}.attention.query_key_value.%", part(0)},
    {"decoder.layers.attention.key.%", "layers.{}.attention.query_key_value.%", part(1)},
    {"decoder.layers.attention.value.%", "layers.{}.attention.query_key_value.%", part(2)},
    {"decoder.layers.attention.output.%", "layers.{}.attention.dense.%"},
    {"decoder.layers.attention.query_norm.%", "layers.{}.attention.query_layernorm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.attention.key_layernorm.%"},
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.gate.expert_bias"},
};

}  // namespace

bool has_class(const ModelClasses& classes, std::string_view name) {
  return std::ranges::find(classes.list, name, &ModelClass::name) != classes.list.end();
}

NameTable bailing_names(std::span<const NameRule> own) {
  return llama_names({own, kBailing, shared_expert_rules(), routed_expert_rules()});
}

namespace {

constexpr GgufKey kBailingKeys[] = {
    {"feed_forward_length", "intermediate_size"},
    {"expert_count", "num_experts"},
    {"expert_shared_count", "num_shared_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"leading_dense_block_count", "first_k_dense_replace"},
    {"expert_weights_norm", "norm_topk_prob"},
};

std::vector<GgufKey> bailing_keys(std::initializer_list<GgufKey> own) {
  std::vector<GgufKey> keys(std::begin(kBailingKeys), std::end(kBailingKeys));
  keys.insert(keys.end(), own);
  return keys;
}

void finish_version_2(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_partial_rotary(metadata, config);
  finish_prediction_layers(metadata, config);
  finish_rope_scaling(metadata, config);
}

}  // namespace

std::vector<Family> bailing_families() {
  return {
      {.model_types = {"bailing_moe"},
       .classes = either_of(llama_classes("BailingMoe"), version_2_classes()),
       .reader = read_bailing_moe,
       .names = bailing_names(),
       .gguf = GgufForm(GgufConversion::interleaved_heads, {{.name = "bailingmoe",
                                                             .common = gguf_expert_keys(),
                                                             .own = bailing_keys({}),
                                                             .constants = {{"use_bias", "false"}},
                                                             .finish = finish_rope_scaling}})},
      {.model_types = {"bailing_moe_v2"},
       .classes = version_2_classes(),
       .reader = read_bailing_v2,
       .names = bailing_names(),
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "bailingmoe2",
                          .common = gguf_expert_keys(),
                          .own = bailing_keys({{"expert_weights_scale", "routed_scaling_factor"},
                                               {"expert_group_count", "n_group"},
                                               {"expert_group_used_count", "topk_group"}}),
                          .flags = {{"blk.0.attn_q_norm.weight", "use_qk_norm"}},
                          .head_dim = GgufHeadDim::always,
                          .finish = finish_version_2}})}};
}

}  // namespace headroom::detail
