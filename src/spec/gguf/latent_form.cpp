#include "latent_form.h"

#include <fmt/format.h>

#include <utility>

namespace headroom::detail {
namespace {

/// LLAMA_EXPERT_GATING_FUNC_TYPE_SIGMOID in llama.cpp's src/llama-hparams.h.
constexpr std::int64_t kSigmoidGating = 2;

/// llama.cpp runs latent attention absorbed, so its files store sizes as for one KV head, and the
/// real sizes under separate keys.
void finish_latent(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const auto key = metadata.count("attention.key_length_mla");
  const auto value = metadata.count("attention.value_length_mla");
  const auto key_length = key ? key : metadata.count("attention.key_length");
  const auto value_length = value ? value : metadata.count("attention.value_length");
  const auto rotary = metadata.count("rope.dimension_count");
  if (!key_length || !rotary || *key_length < *rotary) {
    metadata.fail("attention.key_length", "does not give the size of a key head");
  }
  if (!value_length) metadata.fail("attention.value_length", "is missing");
  // An absent q_lora_rank means the class's default; null means no query latent.
  if (!config.has("q_lora_rank")) config.set_null("q_lora_rank");
  config.set_count("qk_nope_head_dim", *key_length - *rotary);
  config.set_count("v_head_dim", *value_length);
  config.set_count("num_key_value_heads", metadata.count("attention.head_count").value_or(0));
}

/// Version 3 scores experts by sigmoids.
void finish_deepseek(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_latent(metadata, config);
  if (metadata.count("expert_gating_func").value_or(0) == kSigmoidGating) {
    config.set_text("model_type", "deepseek_v3");
    config.set_texts("architectures", {"DeepseekV3ForCausalLM"});
  }
}

/// Sparse attention: the indexer, and the layers that share one.
void finish_indexed(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_latent(metadata, config);
  finish_prediction_layers(metadata, config);
  if (!metadata.has_tensor("blk.0.indexer.proj.weight")) return;
  // Older files list no types; layers that share an indexer have no tensors of one.
  const auto listed = metadata.flags_by_layer("attention.indexer.types");
  const std::int64_t layers = metadata.layers();
  std::vector<std::string> types;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool own = listed ? (*listed)[static_cast<std::size_t>(layer)]
                            : metadata.has_tensor(fmt::format("blk.{}.indexer.proj.weight", layer));
    types.emplace_back(own ? "full" : "shared");
  }
  config.set_texts("indexer_types", types);
}

/// YaRN, and the temperature of queries. The converter scales mscale_all_dim by 0.1.
void finish_mistral4(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_latent(metadata, config);
  const auto type = metadata.text("rope.scaling.type");
  if (!type || *type == "none") return;
  ConfigDraft rope = config.add_object("rope_parameters");
  rope.set_text("rope_type", *type);
  for (const auto& [from, to] :
       {GgufKey{"rope.freq_base", "rope_theta"}, GgufKey{"rope.scaling.factor", "factor"},
        GgufKey{"rope.scaling.original_context_length", "original_max_position_embeddings"},
        GgufKey{"rope.scaling.yarn_beta_fast", "beta_fast"},
        GgufKey{"rope.scaling.yarn_beta_slow", "beta_slow"},
        GgufKey{"attention.temperature_scale", "llama_4_scaling_beta"}}) {
    rope.copy(metadata, from, to);
  }
  constexpr double kWritten = 0.1;
  const double mscale = metadata.number("rope.scaling.yarn_log_multiplier").value_or(0) / kWritten;
  rope.set_number("mscale", mscale);
  rope.set_number("mscale_all_dim", mscale);
}

void finish_glm4_moe(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_prediction_layers(metadata, config);
  finish_partial_rotary(metadata, config);
  // Solar Open's files, which have this name too, state none.
  if (!config.has("first_k_dense_replace")) config.set_count("first_k_dense_replace", 0);
}

/// Keys of latent attention and of experts in groups.
std::vector<GgufKey> latent_keys() {
  return gguf_moe_keys({{"attention.q_lora_rank", "q_lora_rank"},
                        {"attention.kv_lora_rank", "kv_lora_rank"},
                        {"rope.dimension_count", "qk_rope_head_dim"},
                        {"expert_weights_scale", "routed_scaling_factor"},
                        {"expert_weights_norm", "norm_topk_prob"},
                        {"expert_group_count", "n_group"},
                        {"expert_group_used_count", "topk_group"}});
}

}  // namespace

std::vector<GgufKey> gguf_moe_keys(const std::vector<GgufKey>& own) {
  std::vector<GgufKey> keys = {{"feed_forward_length", "intermediate_size"},
                               {"leading_dense_block_count", "first_k_dense_replace"},
                               {"expert_feed_forward_length", "moe_intermediate_size"},
                               {"expert_count", "n_routed_experts"},
                               {"expert_shared_count", "n_shared_experts"}};
  keys.insert(keys.end(), own.begin(), own.end());
  return keys;
}

GgufArchitecture deepseek2_architecture() {
  return {.name = "deepseek2",
          .common = gguf_expert_keys(),
          .own = latent_keys(),
          .head_dim = GgufHeadDim::never,
          .finish = finish_deepseek};
}

GgufArchitecture indexed_architecture(std::string_view name) {
  std::vector<GgufKey> own = latent_keys();
  own.push_back({"attention.indexer.head_count", "index_n_heads"});
  own.push_back({"attention.indexer.key_length", "index_head_dim"});
  own.push_back({"attention.indexer.top_k", "index_topk"});
  return {.name = name,
          .common = gguf_expert_keys(),
          .own = std::move(own),
          .head_dim = GgufHeadDim::never,
          .finish = finish_indexed};
}

GgufArchitecture mistral4_architecture() {
  return {.name = "mistral4",
          .common = gguf_expert_keys(),
          .own = latent_keys(),
          .head_dim = GgufHeadDim::never,
          .finish = finish_mistral4};
}

GgufArchitecture glm4_moe_architecture() {
  return {.name = "glm4moe",
          .common = gguf_expert_keys(),
          .own = gguf_moe_keys({{"expert_weights_scale", "routed_scaling_factor"},
                                {"expert_weights_norm", "norm_topk_prob"},
                                {"expert_group_count", "n_group"},
                                {"expert_group_used_count", "topk_group"}}),
          .flags = {{"blk.0.attn_q.bias", "attention_bias"},
                    {"blk.0.attn_q_norm.weight", "use_qk_norm"}},
          .head_dim = GgufHeadDim::always,
          .finish = finish_glm4_moe};
}

}  // namespace headroom::detail
