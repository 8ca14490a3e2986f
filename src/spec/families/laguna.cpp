// Laguna: windowed layers with more heads and a RoPE of their own, norms on query and key heads,
// gated attention, sigmoid routing beside a shared expert (Poolside; transformers, models/laguna).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kHeads = "num_attention_heads_per_layer";
constexpr std::string_view kFfnTypes = "mlp_layer_types";

/// RoPE of the full layers is the model's; that of the windowed ones differs.
void read_laguna_windows(ConfigReader& config, ModelSpec& spec) {
  StackSpec& stack = *spec.decoder;
  const std::int64_t head_dim = stack.self_attention.head_dim;
  RopeSpec full = spec.position.rope;
  full.theta = 500000;
  full.rotary_dim = head_dim / 2;
  spec.position.rope = read_rope_of(config, "full_attention", spec.position, head_dim, full);
  const RopeSpec local =
      read_rope_of(config, "sliding_attention", spec.position, head_dim, RopeSpec{});
  const WindowSpec window = read_window(config, 512);
  const std::vector<bool> windowed =
      read_windowed_layers(config, stack.num_layers, [](std::int64_t) { return false; });
  std::vector<bool> is_full = windowed;
  is_full.flip();
  vary_layers(stack, is_full, [&](LayerVariant& variant) {
    variant.self_attention.window = window;
    variant.self_attention.rope = local;
  });
}

/// Query heads of each layer.
std::vector<std::int64_t> read_heads_by_layer(ConfigReader& config, const StackSpec& stack) {
  const AttentionSpec& attention = stack.self_attention;
  std::vector<std::int64_t> heads = config.counts(kHeads);
  if (heads.empty()) {
    heads.assign(static_cast<std::size_t>(stack.num_layers), attention.num_attention_heads);
  }
  config.require_one_per_layer(kHeads, heads.size(), stack.num_layers,
                               "write one number of heads for each of num_hidden_layers");
  for (const std::int64_t count : heads) {
    if (count > 0 && count % attention.num_key_value_heads == 0) continue;
    config.fail(kHeads,
                fmt::format("{} key-value heads do not divide {} query heads",
                            attention.num_key_value_heads, count),
                "use multiples of num_key_value_heads");
  }
  return heads;
}

void set_heads(StackSpec& stack, const std::vector<std::int64_t>& heads) {
  const std::int64_t usual = stack.self_attention.num_attention_heads;
  for (const std::int64_t count : std::set<std::int64_t>(heads.begin(), heads.end())) {
    if (count == usual) continue;
    std::vector<bool> others;
    others.reserve(heads.size());
    for (const std::int64_t own : heads) others.push_back(own != count);
    vary_layers(stack, others, [count](LayerVariant& variant) {
      variant.self_attention.num_attention_heads = count;
    });
  }
}

/// The gates of attention: one number per head, or per dimension of each head.
ContextGate read_gates(ConfigReader& config) {
  if (!config.is_text("gating")) {
    config.expect_flag("gating", true);
    return ContextGate::softplus_of_head;
  }
  return config.choice_or<ContextGate>(
      {"gating"},
      {{"per-head", ContextGate::softplus_of_head}, {"per-element", ContextGate::softplus}},
      ContextGate::softplus_of_head);
}

std::vector<bool> read_sparse_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::vector<std::string> types = config.texts(kFfnTypes);
  std::vector<bool> routed(static_cast<std::size_t>(num_layers), true);
  routed.front() = false;
  if (types.empty()) return routed;
  config.require_one_per_layer(kFfnTypes, types.size(), num_layers,
                               "write \"dense\" or \"sparse\" for each of num_hidden_layers");
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    routed[layer] = types[layer] == "sparse";
    if (routed[layer] || types[layer] == "dense") continue;
    config.fail(kFfnTypes, fmt::format("\"{}\" is not supported", types[layer]),
                "use dense or sparse");
  }
  return routed;
}

ExpertsSpec read_laguna_experts(ConfigReader& config) {
  ExpertsSpec experts = read_experts(config, {{"num_experts", "num_local_experts"}, 256, 8});
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 512);
  experts.shared_intermediate_size =
      config.size_or_of_class({"shared_expert_intermediate_size"}, 512);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.correction_bias_is_parameter = true;  // registered as one, without a gradient
  experts.normalise = true;
  experts.scaling_factor = config.number_or({"moe_routed_scaling_factor"}, 1);
  config.expect_flag("moe_apply_router_weight_on_input", false);
  return experts;
}

void read_laguna(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 131072;
  defaults.rope.by_layer_type = true;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  stack.self_attention.output_gate = read_gates(config);
  const std::vector<std::int64_t> heads = read_heads_by_layer(config, stack);
  read_laguna_windows(config, spec);
  set_heads(stack, heads);
  set_experts(stack, read_sparse_layers(config, stack.num_layers), read_laguna_experts(config));
  if (config.number_or({"moe_router_logit_softcapping"}, 0) != 0) {
    spec.not_run = "its soft cap of the router's logits has no kernel yet";
  }
}

constexpr NameRule kLaguna[] = {
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.g_proj.%"},
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.experts.e_score_correction_bias"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_expert.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_expert.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_expert.down_proj.%"},
};

/// Without head counts, of which each layer has its own.
constexpr GgufKey kLagunaKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.sliding_window", "sliding_window"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"},
    {"expert_weights_scale", "moe_routed_scaling_factor"},
};

/// RoPE of one kind of layer.
ConfigDraft add_laguna_rope(const GgufMetadataReader& metadata, ConfigDraft& ropes,
                            std::string_view layer_type, const std::string& suffix) {
  ConfigDraft rope = ropes.add_object(layer_type);
  rope.set_text("rope_type", "default");
  rope.copy(metadata, "rope.freq_base", "rope_theta");
  rope.copy(metadata, "rope.freq_base" + suffix, "rope_theta");
  const std::int64_t head_dim = metadata.count("attention.key_length").value_or(0);
  const auto rotary = metadata.count("rope.dimension_count" + suffix).value_or(head_dim);
  if (head_dim <= 0 || rotary > head_dim) {
    metadata.fail("rope.dimension_count" + suffix, "exceeds the head size");
  }
  rope.set_number("partial_rotary_factor",
                  static_cast<double>(rotary) / static_cast<double>(head_dim));
  return rope;
}

void add_laguna_ropes(const GgufMetadataReader& metadata, ConfigDraft& config) {
  ConfigDraft ropes = config.add_object("rope_parameters");
  static_cast<void>(add_laguna_rope(metadata, ropes, "sliding_attention", "_swa"));
  ConfigDraft full = add_laguna_rope(metadata, ropes, "full_attention", "");
  const auto type = metadata.text("rope.scaling.type");
  if (!type || *type == "none") return;
  full.set_text("rope_type", *type);
  for (const auto& [from, to] :
       {GgufKey{"rope.scaling.factor", "factor"},
        GgufKey{"rope.scaling.original_context_length", "original_max_position_embeddings"},
        GgufKey{"rope.scaling.yarn_attn_factor", "attention_factor"},
        GgufKey{"rope.scaling.yarn_beta_fast", "beta_fast"},
        GgufKey{"rope.scaling.yarn_beta_slow", "beta_slow"}}) {
    full.copy(metadata, from, to);
  }
}

/// Files list no kinds of layers: without a window all have full attention, else every fourth from
/// the first on (llama.cpp, src/models/laguna.cpp).
void finish_laguna(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::vector<std::int64_t> heads = metadata.counts_by_layer("attention.head_count");
  const std::int64_t dense = metadata.count("leading_dense_block_count").value_or(0);
  const bool windowed = metadata.count("attention.sliding_window").value_or(0) > 0;
  const auto listed = metadata.flags_by_layer("attention.sliding_window_pattern");
  std::vector<std::string> attentions;
  std::vector<std::string> networks;
  for (std::int64_t layer = 0; layer < metadata.layers(); ++layer) {
    const auto index = static_cast<std::size_t>(layer);
    const bool has_window = windowed && (listed ? (*listed)[index] : layer % 4 != 0);
    attentions.emplace_back(has_window ? "sliding_attention" : "full_attention");
    networks.emplace_back(layer < dense ? "dense" : "sparse");
  }
  if (heads.empty()) metadata.fail("block_count", "is missing");
  config.set_count("num_attention_heads", heads.front());
  config.set_counts("num_attention_heads_per_layer", heads);
  config.set_texts("layer_types", attentions);
  config.set_texts("mlp_layer_types", networks);
  const bool of_head = metadata.rows("blk.0.attn_gate.weight") == heads.front();
  config.set_text("gating", of_head ? "per-head" : "per-element");
  add_laguna_ropes(metadata, config);
}

}  // namespace

std::vector<Family> laguna_families() {
  return {
      {.model_types = {"laguna"},
       .classes = llama_classes("Laguna"),
       .reader = read_laguna,
       .names = llama_names(
           {kLaguna, shared_expert_rules(), routed_expert_rules(), query_key_norm_rules()}),
       .gguf = GgufForm(GgufConversion::none, {{.name = "laguna",
                                                .common = kLagunaKeys,
                                                .flags = {{"blk.0.attn_q.bias", "attention_bias"}},
                                                .head_dim = GgufHeadDim::never,
                                                .finish = finish_laguna}})}};
}

}  // namespace headroom::detail
