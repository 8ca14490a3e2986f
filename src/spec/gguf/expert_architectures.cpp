// Architectures with routed experts.
#include <array>

#include "gguf_architectures.h"

namespace headroom::detail {
namespace {

using nlohmann::json;

constexpr GgufKey kExpertDecoder[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
    {"expert_used_count", "num_experts_per_tok"},
};
constexpr GgufKey kMixtral[] = {{"feed_forward_length", "intermediate_size"},
                                {"expert_count", "num_local_experts"}};
constexpr GgufKey kQwen2Moe[] = {
    {"feed_forward_length", "intermediate_size"},
    {"expert_count", "num_experts"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};
constexpr GgufKey kQwen3Moe[] = {{"feed_forward_length", "intermediate_size"},
                                 {"expert_count", "num_experts"},
                                 {"expert_feed_forward_length", "moe_intermediate_size"}};
constexpr GgufKey kGptOss[] = {{"expert_feed_forward_length", "intermediate_size"},
                               {"expert_count", "num_local_experts"},
                               {"attention.sliding_window", "sliding_window"}};
constexpr GgufKey kGraniteMoe[] = {{"feed_forward_length", "intermediate_size"},
                                   {"expert_count", "num_local_experts"},
                                   {"logit_scale", "logits_scaling"},
                                   {"embedding_scale", "embedding_multiplier"},
                                   {"residual_scale", "residual_multiplier"},
                                   {"attention.scale", "attention_multiplier"}};
constexpr GgufKey kDeepseek[] = {{"feed_forward_length", "intermediate_size"},
                                 {"attention.q_lora_rank", "q_lora_rank"},
                                 {"attention.kv_lora_rank", "kv_lora_rank"},
                                 {"rope.dimension_count", "qk_rope_head_dim"},
                                 {"leading_dense_block_count", "first_k_dense_replace"},
                                 {"expert_feed_forward_length", "moe_intermediate_size"},
                                 {"expert_count", "n_routed_experts"},
                                 {"expert_shared_count", "n_shared_experts"},
                                 {"expert_weights_scale", "routed_scaling_factor"},
                                 {"expert_weights_norm", "norm_topk_prob"},
                                 {"expert_group_count", "n_group"},
                                 {"expert_group_used_count", "topk_group"}};

constexpr GgufFlag kExpertAttentionBias[] = {{"blk.0.attn_q.bias", "attention_bias"}};
constexpr GgufConstant kNormalised[] = {{"norm_topk_prob", "true"}};

/// LLAMA_EXPERT_GATING_FUNC_TYPE_SIGMOID in llama.cpp's src/llama-hparams.h.
constexpr std::int64_t kSigmoidGating = 2;

/// Files since latent attention is run absorbed say sizes as of one key-value head, and the real
/// ones under keys of their own; version 3 scores experts by sigmoids.
void finish_deepseek(const GgufMetadataReader& metadata, json& config) {
  const auto key = metadata.count("attention.key_length_mla");
  const auto value = metadata.count("attention.value_length_mla");
  const auto key_length = key ? key : metadata.count("attention.key_length");
  const auto value_length = value ? value : metadata.count("attention.value_length");
  const auto rotary = metadata.count("rope.dimension_count");
  if (!key_length || !rotary || *key_length < *rotary) {
    metadata.fail("attention.key_length", "does not tell how wide a key head is");
  }
  if (!value_length) metadata.fail("attention.value_length", "is missing");
  // Without the key the class has a default of its own; only null is none.
  if (!config.contains("q_lora_rank")) config["q_lora_rank"] = nullptr;
  config["qk_nope_head_dim"] = *key_length - *rotary;
  config["v_head_dim"] = *value_length;
  config["num_key_value_heads"] = metadata.count("attention.head_count").value_or(0);
  if (metadata.count("expert_gating_func").value_or(0) == kSigmoidGating) {
    config["model_type"] = "deepseek_v3";
    config["architectures"] = {"DeepseekV3ForCausalLM"};
  }
}

constexpr std::array kExperts{
    GgufArchitecture{.name = "llama",
                     .needs = "expert_count",
                     .model_type = "mixtral",
                     .architecture = "MixtralForCausalLM",
                     .common = kExpertDecoder,
                     .own = kMixtral},
    GgufArchitecture{.name = "qwen2moe",
                     .model_type = "qwen2_moe",
                     .architecture = "Qwen2MoeForCausalLM",
                     .common = kExpertDecoder,
                     .own = kQwen2Moe},
    GgufArchitecture{.name = "qwen3moe",
                     .model_type = "qwen3_moe",
                     .architecture = "Qwen3MoeForCausalLM",
                     .common = kExpertDecoder,
                     .own = kQwen3Moe,
                     .flags = kExpertAttentionBias,
                     .constants = kNormalised,
                     .head_dim = GgufHeadDim::always},
    GgufArchitecture{.name = "deepseek2",
                     .model_type = "deepseek_v2",
                     .architecture = "DeepseekV2ForCausalLM",
                     .common = kExpertDecoder,
                     .own = kDeepseek,
                     .head_dim = GgufHeadDim::never,
                     .finish = finish_deepseek},
    GgufArchitecture{.name = "gpt-oss",
                     .model_type = "gpt_oss",
                     .architecture = "GptOssForCausalLM",
                     .common = kExpertDecoder,
                     .own = kGptOss,
                     .head_dim = GgufHeadDim::always,
                     .finish = finish_rope_scaling},
    GgufArchitecture{.name = "granitemoe",
                     .model_type = "granitemoe",
                     .architecture = "GraniteMoeForCausalLM",
                     .common = kExpertDecoder,
                     .own = kGraniteMoe,
                     .head_dim = GgufHeadDim::never},
};

}  // namespace

std::span<const GgufArchitecture> gguf_expert_architectures() { return kExperts; }

}  // namespace headroom::detail
