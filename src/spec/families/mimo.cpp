// MiMo: Qwen2 (arXiv 2505.07608). MiMo-V2-Flash: windowed layers with more key-value heads and
// sinks, narrower values, sigmoid routing (Xiaomi, MiMo-V2-Flash). MiMo-V2.5 and 2.6: these layers,
// with Q, K and V in one tensor.
#include <fmt/format.h>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kExpertLayers = "moe_layer_freq";
constexpr std::string_view kWindowedLayers = "hybrid_layer_pattern";

/// A list of 1 (true) and 0 for each layer.
std::vector<bool> read_marked_layers(ConfigReader& config, std::string_view key,
                                     std::int64_t num_layers) {
  const std::vector<std::int64_t> marks = config.counts(key);
  if (std::ssize(marks) != num_layers) {
    config.fail(key, "does not have one entry for each layer", "write 1 or 0 for each layer");
  }
  return {marks.begin(), marks.end()};
}

/// Configs as published, with keys for windowed layers; or as transformers 5 writes them, in which
/// these have twice the key-value heads, and sinks.
enum class ConfigForm { published, transformers };

struct LayerRopes {
  RopeSpec full;
  RopeSpec windowed;
};

LayerRopes read_ropes(ConfigReader& config, ConfigForm form, const ModelSpec& spec) {
  LayerRopes ropes{spec.position.rope, spec.position.rope};
  switch (form) {
    case ConfigForm::published:
      ropes.windowed.theta = config.number_or({"swa_rope_theta"}, ropes.full.theta);
      break;
    case ConfigForm::transformers: {
      const std::int64_t head_dim = spec.decoder->self_attention.head_dim;
      RopeSpec absent;
      absent.rotary_dim = static_cast<std::int64_t>(static_cast<double>(head_dim) * 0.334);
      ropes.windowed = read_rope_of(config, "sliding_attention", spec.position, head_dim, absent);
      absent.theta = 5e6;
      ropes.full = read_rope_of(config, "full_attention", spec.position, head_dim, absent);
      break;
    }
  }
  return ropes;
}

/// The windowed layers' own sizes.
AttentionSpec read_windowed_attention(ConfigReader& config, ConfigForm form,
                                      AttentionSpec attention, const RopeSpec& rope) {
  const bool published = form == ConfigForm::published;
  attention.num_attention_heads =
      config.size_or({"swa_num_attention_heads"}, attention.num_attention_heads);
  attention.num_key_value_heads = config.size_or(
      {"swa_num_key_value_heads"}, attention.num_key_value_heads * (published ? 1 : 2));
  attention.head_dim = config.size_or({"swa_head_dim"}, attention.head_dim);
  attention.value_head_dim = config.size_or({"swa_v_head_dim"}, attention.value_head_dim);
  attention.sinks = config.flag_or({"add_swa_attention_sink_bias"}, !published);
  attention.window = {WindowKind::sliding,
                      published ? config.size({"sliding_window", "sliding_window_size"})
                                : config.size_or({"sliding_window"}, 129)};
  attention.rope = rope;
  return attention;
}

/// In the class's own schedule, the first layer and every sixth attend to all keys.
std::vector<bool> read_full_layers(ConfigReader& config, ConfigForm form, std::int64_t num_layers) {
  if (form == ConfigForm::published) {
    std::vector<bool> full = read_marked_layers(config, kWindowedLayers, num_layers);
    full.flip();
    return full;
  }
  if (!config.has("layer_types")) {
    config.note_of_class("layer_types", "(full_attention in the first layer and every sixth)");
  }
  return read_full_attention_layers(
      config, num_layers, {"sliding_attention"},
      [](std::int64_t layer) { return layer == 0 || (layer + 1) % 6 == 0; });
}

ExpertsSpec read_mimo_experts(ConfigReader& config) {
  ExpertsSpec experts = read_experts(config, {{"n_routed_experts"}, 0, 0});
  experts.intermediate_size = config.size({"moe_intermediate_size"});
  experts.shared_intermediate_size =
      product(config, "n_shared_experts", config.count_or({"n_shared_experts"}, 0),
              experts.intermediate_size);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, 1);
  config.expect_text("scoring_func", "sigmoid");
  config.expect_text("topk_method", "noaux_tc");
  experts.group_score = GroupScore::two_best;
  read_groups(config, experts, GroupLimit::groups, {});
  return experts;
}

void read_mimo_layers(ConfigReader& config, ConfigForm form, ModelSpec& spec) {
  StackSpec& stack = *spec.decoder;
  const LayerRopes ropes = read_ropes(config, form, spec);
  spec.position.rope = ropes.full;
  AttentionSpec& full = stack.self_attention;
  full.value_head_dim = config.size_or({"v_head_dim"}, full.head_dim);
  full.sinks = config.flag_or({"add_full_attention_sink_bias"}, false);
  const bool unscaled = form == ConfigForm::published || config.is_null("attention_value_scale");
  full.value_multiplier = config.number_or({"attention_value_scale"}, unscaled ? 1 : 0.707);
  const AttentionSpec windowed = read_windowed_attention(config, form, full, ropes.windowed);
  const std::vector<bool> is_full = read_full_layers(config, form, stack.num_layers);
  vary_layers(stack, is_full, [&](LayerVariant& variant) { variant.self_attention = windowed; });
}

void read_mimo_v2_text(ConfigReader& config, ConfigForm form, ModelSpec& spec) {
  const bool published = form == ConfigForm::published;
  DecoderDefaults defaults;
  defaults.norm_eps = config.number_or({"layernorm_epsilon"}, 1e-5);
  defaults.bias = BiasRule::key_for_query_key_value;
  defaults.rope.by_layer_type = !published;
  if (!published) {
    defaults.num_key_value_heads = 4;
    defaults.head_dim = 192;
  }
  read_decoder(config, spec, defaults);
  read_mimo_layers(config, form, spec);
  const ExpertsSpec experts = read_mimo_experts(config);
  StackSpec& stack = *spec.decoder;
  if (published) {
    set_experts(stack, read_marked_layers(config, kExpertLayers, stack.num_layers), experts);
  } else {
    if (!config.has("mlp_layer_types")) config.note_of_class("first_k_dense_replace", "1");
    spread_experts(config, stack, experts, 1);
    config.ignore({kExpertLayers, kWindowedLayers, "swa_rope_theta", "sliding_window_size"});
  }
  // A name of the window in other engines; layers for drafting tokens.
  config.ignore({"attention_chunk_size", "num_nextn_predict_layers"});
}

void read_mimo_v2_flash(ConfigReader& config, ModelSpec& spec) {
  // Saved again by transformers 5, a published config keeps its keys beside those of the class.
  const bool published =
      (config.has(kWindowedLayers) || config.has(kExpertLayers)) && !config.has("layer_types");
  read_mimo_v2_text(config, published ? ConfigForm::published : ConfigForm::transformers, spec);
}

/// Files divide the rows of Q, K and V by the key-value heads of the layers without a window.
void require_equal_shares(ConfigReader& config, const StackSpec& stack) {
  const std::int64_t shares = stack.self_attention.num_key_value_heads;
  for (const LayerVariant& variant : stack.variants) {
    const AttentionSpec& attention = variant.self_attention;
    if (attention.num_attention_heads % shares == 0 &&
        attention.num_key_value_heads % shares == 0) {
      continue;
    }
    config.fail("swa_num_key_value_heads",
                fmt::format("{} heads do not divide those of windowed "
                            "layers",
                            shares),
                "use multiples of num_key_value_heads");
  }
}

/// MiMo-V2.5 and 2.6; Pro is the text model alone.
void read_mimo_v2(ConfigReader& config, ModelSpec& spec) {
  if (!config.has(kWindowedLayers)) {
    config.fail(kWindowedLayers, "is missing", "write 1 (windowed) or 0 for each layer");
  }
  if (!config.has(kExpertLayers)) {
    config.fail(kExpertLayers, "is missing", "write 1 (experts) or 0 for each layer");
  }
  config.ignore({"layer_types"});  // repeats hybrid_layer_pattern
  read_mimo_v2_text(config, ConfigForm::published, spec);
  (void)config.choice_or<bool>({"attention_projection_layout"},
                               {{"fused_qkv", true}, {"split", false}}, false);
  require_equal_shares(config, *spec.decoder);
  config.expect_number("hybrid_block_size", 0);
  config.ignore({"moe_router_dtype"});
  count_mimo_towers(config, spec);
}

void read_mimo(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.bias = BiasRule::key_for_query_key_value;
  defaults.bias_when_absent = true;
  read_decoder(config, spec, defaults);
  read_qwen_windows(config, *spec.decoder);
  config.ignore({"num_nextn_predict_layers"});  // layers for drafting tokens, left out
}

constexpr NameRule kMimo[] = {
    {"decoder.layers.attention.sinks", "layers.{}.self_attn.attention_sink_bias"},
    {"decoder.layers.attention.sinks", "layers.{}.self_attn.sinks"},
};

NameTable mimo_names() {
  NameTable names = llama_names({kMimo, shared_expert_rules(), routed_expert_rules()});
  names.extras.push_back({"model.mtp.", ExtraKind::multi_token_prediction, NamePart::beginning});
  return names;
}

/// Key-value heads of the layers without a window divide the rows: for each, its share of Q, K and
/// V.
constexpr NameRule kFusedMimo[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.qkv_proj.%",
     part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.qkv_proj.%",
     part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.qkv_proj.%",
     part(2, Stacking::per_key_value_head)},
};

NameTable mimo_v2_names() {
  NameTable names = mimo_names();
  names.rules.insert(names.rules.begin(), {kFusedMimo, mimo_tower_rules()});
  return names;
}

/// Layer by layer: windows, key-value heads, routers and sinks.
void finish_mimo2(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_prediction_layers(metadata, config);
  finish_partial_rotary(metadata, config);
  const std::int64_t layers = metadata.layers();
  std::vector<std::int64_t> windowed = metadata.counts_by_layer("attention.sliding_window_pattern");
  const std::vector<std::int64_t> heads = metadata.counts_by_layer("attention.head_count_kv");
  std::vector<std::int64_t> routed;
  const auto has = [&](std::int64_t layer, const char* tensor) {
    return metadata.has_tensor(fmt::format("blk.{}.{}.weight", layer, tensor));
  };
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto index = static_cast<std::size_t>(layer);
    const bool window = windowed[index] != 0;
    config.set_count(window ? "swa_num_key_value_heads" : "num_key_value_heads", heads[index]);
    config.set_flag(window ? "add_swa_attention_sink_bias" : "add_full_attention_sink_bias",
                    has(layer, "attn_sinks"));
    routed.push_back(has(layer, "ffn_gate_inp") ? 1 : 0);
  }
  windowed.resize(static_cast<std::size_t>(layers));
  config.set_counts(kWindowedLayers, windowed);
  config.set_counts(kExpertLayers, routed);
}

GgufForm mimo2_form() {
  return GgufForm(GgufConversion::none,
                  {{.name = "mimo2",
                    .own = {{"context_length", "max_position_embeddings"},
                            {"embedding_length", "hidden_size"},
                            {"feed_forward_length", "intermediate_size"},
                            {"attention.head_count", "num_attention_heads"},
                            {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
                            {"attention.value_length", "v_head_dim"},
                            {"attention.value_scale", "attention_value_scale"},
                            {"attention.sliding_window", "sliding_window"},
                            {"rope.freq_base", "rope_theta"},
                            {"rope.freq_base_swa", "swa_rope_theta"},
                            {"expert_count", "n_routed_experts"},
                            {"expert_used_count", "num_experts_per_tok"},
                            {"expert_feed_forward_length", "moe_intermediate_size"},
                            {"expert_group_count", "n_group"},
                            {"expert_group_used_count", "topk_group"},
                            {"expert_weights_scale", "routed_scaling_factor"}},
                    .flags = {{"blk.0.attn_q.bias", "attention_bias"}},
                    .head_dim = GgufHeadDim::always,
                    .finish = finish_mimo2}});
}

}  // namespace

std::vector<Family> mimo_families() {
  return {{.model_types = {"mimo"},
           .classes = llama_classes("MiMo"),
           .reader = read_mimo,
           .names = llama_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"mimo_v2_flash"},
           .classes = llama_classes("MiMoV2Flash"),
           .reader = read_mimo_v2_flash,
           .names = mimo_names(),
           .gguf = mimo2_form()},
          {.model_types = {"mimo_v2"},
           .classes = llama_classes("MiMoV2"),
           .reader = read_mimo_v2,
           .names = mimo_v2_names(),
           .gguf = None("llama.cpp stores it under the name of MiMo-V2-Flash")}};
}

}  // namespace headroom::detail
