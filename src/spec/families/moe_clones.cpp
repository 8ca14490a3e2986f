// Decoders with the experts of DeepSeek V3 and other attention, or the reverse: Solar Open, Hy3,
// K-EXAONE, Mistral 4 and Sarvam; Mellum 2, with Qwen3's experts and windows.
#include <fmt/format.h>

#include <algorithm>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "../gguf/latent_form.h"
#include "exaone.h"

namespace headroom::detail {
namespace {

/// Solar Open: GLM-4.5 without dense layers and without norms of queries and keys (Upstage).
void read_solar_open(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.intermediate_size = 0;  // every layer has experts
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 1e6;
  defaults.bias = BiasRule::key_for_query_key_value;
  read_decoder(config, spec, defaults);
  ExpertsSpec experts =
      read_shared_and_routed_experts(config, {{"n_routed_experts"}, 128, 8}, {1280, 1, 1});
  balance_experts(config, experts, {});
  spec.decoder->ffn.experts = experts;
  config.ignore({"first_k_dense_replace", "use_qk_norm", "num_nextn_predict_layers"});
}

/// Sarvam-30B: GLM-4.5 with RoPE on whole heads and norms of queries and keys (Sarvam AI). Its
/// first configs say num_experts and use_qkv_bias.
void read_sarvam_moe(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 4;
  defaults.head_dim = 64;
  defaults.max_position_embeddings = 131072;
  defaults.rope.theta = 8e6;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.qkv_bias = config.flag_or({"attention_bias", "use_qkv_bias"}, false);
  const bool normed = config.flag_or({"use_qk_norm"}, true);
  if (normed) stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  ExpertsSpec experts = read_shared_and_routed_experts(
      config, {{"n_routed_experts", "num_experts", "num_local_experts"}, 128, 6}, {1024, 1, 2.5});
  balance_experts(config, experts, {});
  spread_experts(config, stack, experts, 1);
  config.ignore({"num_nextn_predict_layers", "num_mtp_layers"});
}

/// Sarvam-105B: DeepSeek V3 with its queries uncompressed (Sarvam AI).
void read_sarvam_mla(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, deepseek_defaults(4096));
  read_latent_attention(config, spec, {0, 128, 128});
  const ExpertsSpec experts = read_balanced_experts(
      config, {{"n_routed_experts", "num_experts", "num_local_experts"}, 128, 8}, {2048, 2.5});
  spread_experts(config, *spec.decoder, experts, 1);
  // A derived size, and modules for training.
  config.ignore({"q_head_dim", "num_nextn_predict_layers", "num_mtp_layers"});
}

/// Mellum 2: Qwen3-MoE with windows in some layers, which have a RoPE of their own (JetBrains).
void read_mellum(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 4;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 131072;
  defaults.rope.theta = 500000;
  defaults.rope.by_layer_type = true;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  const std::int64_t head_dim = stack.self_attention.head_dim;
  spec.position.rope =
      read_rope_of(config, "full_attention", spec.position, head_dim, spec.position.rope);
  const RopeSpec local = read_rope_of(config, "sliding_attention", spec.position, head_dim, {});
  const WindowSpec window = read_window(config, 1024);
  std::vector<bool> full =
      read_windowed_layers(config, stack.num_layers, [](std::int64_t /*layer*/) { return false; });
  full.flip();
  vary_layers(stack, full, [&](LayerVariant& variant) {
    variant.self_attention.window = window;
    variant.self_attention.rope = local;
  });
  ExpertsSpec experts = read_experts(config, {{"num_experts", "num_local_experts"}, 64, 8});
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 896);
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  spread_experts(config, stack, experts, 0);
  config.ignore(
      {"num_nextn_predict_layers", "num_mtp_layers", "mtp_layer_types", "mtp_mlp_layer_types"});
}

/// All layers have experts; those with windows have RoPE without scaling (llama.cpp,
/// src/models/mellum.cpp).
void finish_mellum(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_windows(metadata, config);
  ConfigDraft ropes = config.add_object("rope_parameters");
  ConfigDraft local = ropes.add_object("sliding_attention");
  local.set_text("rope_type", "default");
  local.copy(metadata, "rope.freq_base", "rope_theta");
  local.copy(metadata, "rope.freq_base_swa", "rope_theta");
  ConfigDraft full = ropes.add_object("full_attention");
  full.set_text("rope_type", metadata.text("rope.scaling.type").value_or("default"));
  for (const auto& [from, to] :
       {GgufKey{"rope.freq_base", "rope_theta"}, GgufKey{"rope.scaling.factor", "factor"},
        GgufKey{"rope.scaling.original_context_length", "original_max_position_embeddings"},
        GgufKey{"rope.scaling.yarn_attn_factor", "attention_factor"},
        GgufKey{"rope.scaling.yarn_beta_fast", "beta_fast"},
        GgufKey{"rope.scaling.yarn_beta_slow", "beta_slow"}}) {
    full.copy(metadata, from, to);
  }
}

/// Hy3: norms of query and key heads, and experts chosen by biased sigmoid scores (Tencent, Hy3).
void read_hy_v3(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 11158840;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  ExpertsSpec experts = read_shared_and_routed_experts(
      config, {{"num_experts", "num_local_experts"}, 192, 8}, {1536, 1, 1});
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.normalise = true;
  experts.scaling_factor = config.number_or({"router_scaling_factor"}, 2.826);
  spread_experts(config, stack, experts, 1);
  config.expect_flag("mlp_bias", false);  // of dense networks and of shared experts
  config.ignore({"enable_moe_fp32_combine", "num_nextn_predict_layers"});
}

/// `is_moe_layer`, of LG's own files, repeats `first_k_dense_replace`, which the class reads.
void expect_same_expert_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::vector<bool> listed = config.flags("is_moe_layer");
  if (listed.empty() || config.has("mlp_layer_types")) return;
  const std::int64_t dense = config.count_or({"first_k_dense_replace"}, 1);
  const bool is_same = std::ssize(listed) == num_layers &&
                       std::ranges::count(listed, true) == num_layers - dense &&
                       std::ranges::is_sorted(listed);
  if (is_same) return;
  config.fail("is_moe_layer", "differs from first_k_dense_replace, which the class reads",
              "list mlp_layer_types");
}

/// K-EXAONE: EXAONE 4's attention, with norms before each part (LG AI Research, K-EXAONE).
void read_exaone_moe(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm_eps = 1e-5;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  const WindowSpec window = read_window(config, 4096);
  if (window.kind != WindowKind::none) {
    const bool listed = config.has("layer_types");
    const std::int64_t period = listed ? stack.num_layers : read_exaone_period(config);
    const auto rule = [&](std::int64_t layer) { return (layer + 1) % period != 0; };
    const std::vector<bool> windowed = read_windowed_layers(config, stack.num_layers, rule);
    vary_layers(stack, windowed,
                [](LayerVariant& variant) { variant.self_attention.rotary = false; });
    set_windows(stack, windowed, window);
  }
  config.ignore({"sliding_window_pattern", "layer_types"});
  const ExpertsSpec experts =
      read_balanced_experts(config, {{"num_experts", "num_local_experts"}, 64, 8}, {1024, 2.5});
  spread_experts(config, stack, experts, 1);
  expect_same_expert_layers(config, stack.num_layers);
  config.ignore({"num_nextn_predict_layers"});  // layers for drafting tokens, left out
}

/// Mistral 4: latent attention with Ministral 3's temperature, and experts in groups by a softmax
/// (Mistral, Mistral Small 4).
void read_mistral4(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek_defaults(1048576);
  defaults.intermediate_size = 12288;
  read_decoder(config, spec, defaults);
  read_latent_attention(config, spec, {1024, 64, 128});
  spec.decoder->self_attention.temperature = query_scaling(config, spec.position.rope);
  ExpertsSpec experts = read_shared_and_routed_experts(
      config, {{"n_routed_experts", "num_local_experts"}, 128, 4}, {2048, 1, 1});
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  experts.group_score = GroupScore::two_best;
  read_groups(config, experts, GroupLimit::groups, {});
  spread_experts(config, *spec.decoder, experts, 0);
}

constexpr NameRule kMoreExperts[] = {
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.e_score_correction_bias"},
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.expert_bias"},
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.router.gate.%"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_mlp.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_mlp.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_mlp.down_proj.%"},
};

/// The layers without routers are dense; files do not count them.
void finish_hy_v3(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_prediction_layers(metadata, config);
  const std::int64_t layers = metadata.layers();
  std::vector<std::string> networks;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool routed = metadata.has_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", layer));
    networks.emplace_back(routed ? "sparse" : "dense");
  }
  config.set_texts("mlp_layer_types", networks);
  const std::int64_t width = metadata.count("expert_feed_forward_length").value_or(0);
  const std::int64_t shared = metadata.count("expert_shared_feed_forward_length").value_or(width);
  if (width > 0) config.set_count("num_shared_experts", shared / width);
}

/// A file without a window is of a model without windows; the class's default has one.
void finish_exaone_moe(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_prediction_layers(metadata, config);
  if (!config.has("sliding_window")) config.set_null("sliding_window");
  const auto windowed = metadata.flags_by_layer("attention.sliding_window_pattern");
  if (!windowed) return;
  std::vector<std::string> types;
  const std::int64_t layers = metadata.layers();
  for (std::size_t layer = 0; layer < std::min(windowed->size(), static_cast<std::size_t>(layers));
       ++layer) {
    types.emplace_back((*windowed)[layer] ? "sliding_attention" : "full_attention");
  }
  config.set_texts("layer_types", types);
}

NameTable normed_names(std::vector<std::span<const NameRule>> own) {
  own.insert(own.end(), {query_key_norm_rules(), shared_expert_rules(), routed_expert_rules()});
  return llama_names(std::move(own));
}

}  // namespace

std::vector<Family> moe_clones_families() {
  constexpr std::string_view kNoGguf = "llama.cpp does not support this architecture";
  return {{.model_types = {"solar_open"},
           .classes = llama_classes("SolarOpen"),
           .reader = read_solar_open,
           .names = normed_names({}),
           .gguf = None("llama.cpp stores it under the name of GLM-4.5")},
          {.model_types = {"sarvam_moe"},
           .classes = either_of(llama_classes("SarvamMoE"), llama_classes("Glm4Moe")),
           .reader = read_sarvam_moe,
           .names = normed_names({}),
           .gguf = None("llama.cpp stores it under the name of Bailing MoE 2")},
          {.model_types = {"sarvam_mla"},
           .classes = either_of(llama_classes("SarvamMLA"), llama_classes("DeepseekV3")),
           .reader = read_sarvam_mla,
           .names = deepseek_names(),
           .gguf = None(kNoGguf)},
          {.model_types = {"mellum"},
           .classes = llama_classes("Mellum"),
           .reader = read_mellum,
           .names = normed_names({}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "mellum",
                              .common = gguf_expert_keys(),
                              .own = {{"feed_forward_length", "intermediate_size"},
                                      {"expert_count", "num_experts"},
                                      {"expert_feed_forward_length", "moe_intermediate_size"},
                                      {"attention.sliding_window", "sliding_window"}},
                              .head_dim = GgufHeadDim::always,
                              .finish = finish_mellum}})},
          {.model_types = {"hy_v3"},
           .classes = llama_classes("HYV3"),
           .reader = read_hy_v3,
           .names = normed_names({kMoreExperts}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "hy_v3",
                              .common = gguf_expert_keys(),
                              .own = {{"feed_forward_length", "intermediate_size"},
                                      {"expert_count", "num_experts"},
                                      {"expert_feed_forward_length", "moe_intermediate_size"},
                                      {"expert_weights_scale", "router_scaling_factor"}},
                              .flags = {{"blk.0.attn_q.bias", "attention_bias"}},
                              .head_dim = GgufHeadDim::always,
                              .finish = finish_hy_v3}})},
          {.model_types = {"exaone_moe"},
           .classes = llama_classes("ExaoneMoe"),
           .reader = read_exaone_moe,
           .names = normed_names({kMoreExperts}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "exaone-moe",
                              .common = gguf_expert_keys(),
                              .own = {{"feed_forward_length", "intermediate_size"},
                                      {"leading_dense_block_count", "first_k_dense_replace"},
                                      {"expert_count", "num_experts"},
                                      {"expert_shared_count", "num_shared_experts"},
                                      {"expert_feed_forward_length", "moe_intermediate_size"},
                                      {"expert_weights_scale", "routed_scaling_factor"},
                                      {"expert_weights_norm", "norm_topk_prob"},
                                      {"expert_group_count", "n_group"},
                                      {"expert_group_used_count", "topk_group"},
                                      {"attention.sliding_window", "sliding_window"}},
                              .head_dim = GgufHeadDim::always,
                              .finish = finish_exaone_moe}})},
          {.model_types = {"mistral4"},
           .classes = llama_classes("Mistral4"),
           .reader = read_mistral4,
           .names = deepseek_names(),
           .gguf = GgufForm(GgufConversion::unknown, {mistral4_architecture()})}};
}

}  // namespace headroom::detail
