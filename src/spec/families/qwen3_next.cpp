// Qwen3-Next and Qwen3.5: three of four layers use gated DeltaNet, every fourth gated attention
// (Qwen, Qwen3-Next-80B-A3B; arXiv 2412.06464). A dense FFN, or routed experts with a shared one.
// Lara Mini: gated DeltaNet beside windows with RoPE and full attention without (Translated).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "../decoder.h"
#include "../family.h"
#include "../state_space.h"

namespace headroom::detail {
namespace {

/// Heads that a config may omit.
struct DeltaHeads {
  std::int64_t keys = 16;
  std::int64_t values = 32;
};

GatedDeltaSpec read_gated_delta(ConfigReader& config, DeltaHeads absent = {}) {
  GatedDeltaSpec spec;
  spec.num_key_heads = config.size_or({"linear_num_key_heads"}, absent.keys);
  spec.num_value_heads = config.size_or({"linear_num_value_heads"}, absent.values);
  spec.key_head_dim = config.size_or({"linear_key_head_dim"}, 128);
  spec.value_head_dim = config.size_or({"linear_value_head_dim"}, 128);
  spec.conv_kernel_dim = config.size_or({"linear_conv_kernel_dim"}, 4);
  spec.state_value_bytes = config.choice_or<std::int64_t>(
      {"mamba_ssm_dtype"}, {{"float32", 4}, {"bfloat16", 2}, {"float16", 2}}, 0);
  if (spec.num_value_heads % spec.num_key_heads != 0) {
    config.fail("linear_num_value_heads", "is not a multiple of linear_num_key_heads",
                "use a multiple of linear_num_key_heads");
  }
  return spec;
}

/// The layers with full attention.
std::vector<bool> read_full_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::int64_t interval = config.size_or({"full_attention_interval"}, 4);
  return read_full_attention_layers(
      config, num_layers, {"linear_attention"},
      [&](std::int64_t layer) { return (layer + 1) % interval == 0; });
}

DecoderDefaults hybrid_defaults(std::int64_t kv_heads) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.num_key_value_heads = kv_heads;
  defaults.head_dim = 256;
  defaults.norm = {NormKind::rms_norm, false, 1e-6, NormWeight::one_plus};
  defaults.rope.partial_rotary_factor = 0.25;
  return defaults;
}

/// Routed experts with a gated shared one; the number of experts and of experts per token.
ExpertsSpec read_hybrid_experts(ConfigReader& config, const ExpertKeys& keys) {
  ExpertsSpec experts = read_experts(config, keys);
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 512);
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  experts.shared_intermediate_size = config.size_or({"shared_expert_intermediate_size"}, 512);
  experts.shared_gate = true;
  return experts;
}

/// Gated attention in the full layers, gated DeltaNet in the others; the FFN is already read.
void read_hybrid_layers(ConfigReader& config, ModelSpec& spec) {
  StackSpec& stack = *spec.decoder;
  require_silu_to_run(spec);
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  stack.self_attention.output_gate = ContextGate::sigmoid;
  const GatedDeltaSpec delta = read_gated_delta(config);
  vary_layers(stack, read_full_layers(config, stack.num_layers), [&](LayerVariant& variant) {
    variant.self_attention.kind = AttentionKind::gated_delta;
    variant.self_attention.gated_delta = delta;
    variant.self_attention.output_gate = ContextGate::none;
    variant.self_attention.query_key_norm.reset();
  });
}

void read_qwen3_next(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, hybrid_defaults(2));
  read_hybrid_layers(config, spec);
  spread_qwen_experts(config, *spec.decoder,
                      read_hybrid_experts(config, {{"num_experts", "num_local_experts"}, 512, 10}));
}

/// Keys of Qwen3.5 that the class does not read, and its modules for multi-token prediction.
void ignore_qwen3_5_keys(ConfigReader& config) {
  config.expect_flag("attn_output_gate", true);
  // The activation of a delta layer's gate; the class has SiLU, also called swish.
  (void)config.choice_or<bool>({"output_gate_type"}, {{"swish", true}, {"silu", true}}, true);
  config.expect_empty("mlp_only_layers");
  config.ignore({"mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"});
}

void read_qwen3_5(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, hybrid_defaults(4));
  ignore_qwen3_5_keys(config);
  read_hybrid_layers(config, spec);
}

void read_qwen3_5_moe(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = hybrid_defaults(2);
  defaults.intermediate_size = 0;  // every layer has experts
  read_decoder(config, spec, defaults);
  spec.decoder->ffn.experts =
      read_hybrid_experts(config, {{"num_experts", "num_local_experts"}, 256, 8});
  ignore_qwen3_5_keys(config);
  read_hybrid_layers(config, spec);
}

enum class LaraLayer { delta, windowed, full };

/// Without layer_types, the released pattern of five layers.
std::vector<LaraLayer> read_lara_layers(ConfigReader& config, std::int64_t num_layers) {
  constexpr LaraLayer kPattern[] = {LaraLayer::delta, LaraLayer::windowed, LaraLayer::delta,
                                    LaraLayer::full, LaraLayer::windowed};
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty())
    config.require_one_per_layer("layer_types", types.size(), num_layers,
                                 "name each of num_hidden_layers");
  std::vector<LaraLayer> layers;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    if (types.empty()) {
      layers.push_back(kPattern[static_cast<std::size_t>(layer) % std::size(kPattern)]);
      continue;
    }
    const std::string& type = types[static_cast<std::size_t>(layer)];
    if (type == "linear_attention") {
      layers.push_back(LaraLayer::delta);
    } else if (type == "sliding_attention") {
      layers.push_back(LaraLayer::windowed);
    } else if (type == "full_attention") {
      layers.push_back(LaraLayer::full);
    } else {
      config.fail("layer_types", fmt::format("\"{}\" is unknown", type),
                  "use linear_attention, sliding_attention or full_attention");
    }
  }
  return layers;
}

void read_lara_mini(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 131072;
  defaults.num_key_value_heads = 4;
  defaults.head_dim = 128;
  defaults.norm_eps = 1e-6;
  defaults.intermediate_size = 0;  // every layer has experts
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  require_silu_to_run(spec);
  ExpertsSpec experts = read_hybrid_experts(config, {{"num_experts", "num_local_experts"}, 128, 4});
  experts.shared_gate = false;
  stack.ffn.experts = experts;
  const GatedDeltaSpec delta = read_gated_delta(config, {8, 16});
  const WindowSpec window = read_window(config, 512);
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  const std::vector<LaraLayer> layers = read_lara_layers(config, stack.num_layers);
  const auto others = [&](LaraLayer kind) {
    std::vector<bool> unchanged;
    unchanged.reserve(layers.size());
    for (const LaraLayer layer : layers) unchanged.push_back(layer != kind);
    return unchanged;
  };
  vary_layers(stack, others(LaraLayer::windowed),
              [&](LayerVariant& variant) { variant.self_attention.window = window; });
  vary_layers(stack, others(LaraLayer::full),
              [](LayerVariant& variant) { variant.self_attention.rotary = false; });
  vary_layers(stack, others(LaraLayer::delta), [&](LayerVariant& variant) {
    variant.self_attention.kind = AttentionKind::gated_delta;
    variant.self_attention.gated_delta = delta;
    variant.self_attention.query_key_norm.reset();
  });
}

// A query and its gate are stored head by head.
constexpr NameRule kQwenHybrid[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_proj.%",
     part(0, Stacking::per_query_head)},
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.q_proj.%",
     part(1, Stacking::per_query_head)},
    {"decoder.layers.delta.convolution.%", "layers.{}.linear_attn.conv1d.%"},
    {"decoder.layers.delta.dt_bias", "layers.{}.linear_attn.dt_bias"},
    {"decoder.layers.delta.a_log", "layers.{}.linear_attn.A_log"},
    {"decoder.layers.delta.context_norm.%", "layers.{}.linear_attn.norm.%"},
    {"decoder.layers.delta.output.%", "layers.{}.linear_attn.out_proj.%"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_expert.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_expert.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_expert.down_proj.%"},
    {"decoder.layers.mlp.shared_expert_gate.%", "layers.{}.mlp.shared_expert_gate.%"},
};

// Projections of a gated delta layer, stored per key head: its query, key, values and gates.
constexpr NameRule kQwen3Next[] = {
    {"decoder.layers.delta.query.%", "layers.{}.linear_attn.in_proj_qkvz.%",
     part(0, Stacking::per_delta_key_head)},
    {"decoder.layers.delta.key.%", "layers.{}.linear_attn.in_proj_qkvz.%",
     part(1, Stacking::per_delta_key_head)},
    {"decoder.layers.delta.value.%", "layers.{}.linear_attn.in_proj_qkvz.%",
     part(2, Stacking::per_delta_key_head)},
    {"decoder.layers.delta.gate.%", "layers.{}.linear_attn.in_proj_qkvz.%",
     part(3, Stacking::per_delta_key_head)},
    {"decoder.layers.delta.beta.%", "layers.{}.linear_attn.in_proj_ba.%",
     part(0, Stacking::per_delta_key_head)},
    {"decoder.layers.delta.alpha.%", "layers.{}.linear_attn.in_proj_ba.%",
     part(1, Stacking::per_delta_key_head)},
};

// Qwen3.5 stores them one after the other.
constexpr NameRule kQwen3_5[] = {
    {"decoder.layers.delta.query.%", "layers.{}.linear_attn.in_proj_qkv.%", part(0)},
    {"decoder.layers.delta.key.%", "layers.{}.linear_attn.in_proj_qkv.%", part(1)},
    {"decoder.layers.delta.value.%", "layers.{}.linear_attn.in_proj_qkv.%", part(2)},
    {"decoder.layers.delta.gate.%", "layers.{}.linear_attn.in_proj_z.%"},
    {"decoder.layers.delta.beta.%", "layers.{}.linear_attn.in_proj_b.%"},
    {"decoder.layers.delta.alpha.%", "layers.{}.linear_attn.in_proj_a.%"},
};

// Lara Mini's files have all of them in one tensor.
constexpr NameRule kLaraMini[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.delta.query.%", "layers.{}.linear_attn.in_proj.%", part(0)},
    {"decoder.layers.delta.key.%", "layers.{}.linear_attn.in_proj.%", part(1)},
    {"decoder.layers.delta.value.%", "layers.{}.linear_attn.in_proj.%", part(2)},
    {"decoder.layers.delta.gate.%", "layers.{}.linear_attn.in_proj.%", part(3)},
    {"decoder.layers.delta.beta.%", "layers.{}.linear_attn.in_proj.%", part(4)},
    {"decoder.layers.delta.alpha.%", "layers.{}.linear_attn.in_proj.%", part(5)},
    {"decoder.layers.delta.context_norm.%", "layers.{}.linear_attn.out_norm.%"},
};

NameTable qwen3_5_names() {
  NameTable names =
      llama_names({kQwen3_5, kQwenHybrid, query_key_norm_rules(), routed_expert_rules()});
  names.optional_prefixes.push_back("model.language_model.");
  return names;
}

constexpr NameRule kQwenHybridGguf[] = {
    {"layers.attention.query.%", "blk.{}.attn_q.%", part(0, Stacking::per_query_head)},
    {"layers.attention.gate.%", "blk.{}.attn_q.%", part(1, Stacking::per_query_head)},
    {"layers.delta.query.%", "blk.{}.attn_qkv.%", part(0)},
    {"layers.delta.key.%", "blk.{}.attn_qkv.%", part(1)},
    {"layers.delta.value.%", "blk.{}.attn_qkv.%", part(2)},
    {"layers.delta.gate.%", "blk.{}.attn_gate.%"},
    {"layers.delta.beta.%", "blk.{}.ssm_beta.%"},
    {"layers.delta.alpha.%", "blk.{}.ssm_alpha.%"},
    {"layers.delta.beta.%", "blk.{}.ssm_ba.%", part(0, Stacking::per_delta_key_head)},
    {"layers.delta.alpha.%", "blk.{}.ssm_ba.%", part(1, Stacking::per_delta_key_head)},
    {"layers.delta.convolution.%", "blk.{}.ssm_conv1d.%"},
    {"layers.delta.dt_bias", "blk.{}.ssm_dt.bias"},
    {"layers.delta.a_log", "blk.{}.ssm_a"},
    {"layers.delta.context_norm.%", "blk.{}.ssm_norm.%"},
    {"layers.delta.output.%", "blk.{}.ssm_out.%"},
};

/// GGUF keeps the sizes of gated delta layers under the keys of state spaces.
void finish_qwen_hybrid(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_prediction_layers(metadata, config);
  finish_partial_rotary(metadata, config);
  const std::int64_t heads = metadata.count("ssm.time_step_rank").value_or(0);
  const std::int64_t inner = metadata.count("ssm.inner_size").value_or(0);
  if (heads == 0 || inner % heads != 0) metadata.fail("ssm.time_step_rank", "is no head count");
  config.set_count("linear_value_head_dim", inner / heads);
}

GgufForm qwen_hybrid_gguf(GgufConversion conversion, std::string_view name) {
  return {conversion,
          {{.name = name,
            .common = gguf_rms_norm_keys(),
            .own = {{"full_attention_interval", "full_attention_interval"},
                    {"ssm.conv_kernel", "linear_conv_kernel_dim"},
                    {"ssm.state_size", "linear_key_head_dim"},
                    {"ssm.group_count", "linear_num_key_heads"},
                    {"ssm.time_step_rank", "linear_num_value_heads"},
                    {"expert_count", "num_experts"},
                    {"expert_used_count", "num_experts_per_tok"},
                    {"expert_feed_forward_length", "moe_intermediate_size"},
                    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}},
            .head_dim = GgufHeadDim::always,
            .finish = finish_qwen_hybrid}},
          {kQwenHybridGguf}};
}

}  // namespace

std::vector<Family> qwen3_next_families() {
  return {
      {.model_types = {"qwen3_next"},
       .classes = llama_classes("Qwen3Next"),
       .reader = read_qwen3_next,
       .names =
           llama_names({kQwen3Next, kQwenHybrid, query_key_norm_rules(), routed_expert_rules()}),
       .gguf = qwen_hybrid_gguf(GgufConversion::norms_plus_one, "qwen3next")},
      {.model_types = {"qwen3_5_text"},
       .classes = either_of(llama_classes("Qwen3_5"),
                            {{{"Qwen3_5TextModel", no_head},
                              {"Qwen3_5TextForSequenceClassification", last_token_classifier}}}),
       .reader = read_qwen3_5,
       .names = qwen3_5_names(),
       .gguf = qwen_hybrid_gguf(GgufConversion::tiled_value_heads, "qwen35")},
      {.model_types = {"qwen3_5_moe_text"},
       .classes = either_of(llama_classes("Qwen3_5Moe"), one_class("Qwen3_5MoeTextModel")),
       .reader = read_qwen3_5_moe,
       .names = qwen3_5_names(),
       .gguf = qwen_hybrid_gguf(GgufConversion::tiled_value_heads, "qwen35moe")},
      {.model_types = {"lara_mini"},
       .classes = decoder_classes("LaraMini", {.tied = true, .float32_logits = true}),
       .reader = read_lara_mini,
       .names = llama_names(
           {kLaraMini, kQwen3_5, kQwenHybrid, query_key_norm_rules(), routed_expert_rules()}),
       .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
