// Kimi Linear: Kimi delta attention, and in every fourth layer latent attention without positions;
// experts as in DeepSeek V3 (arXiv 2510.26692; moonshotai/Kimi-Linear-48B-A3B-Instruct,
// modeling_kimi.py). Kimi K3: gates on both, experts in a narrower space, attention residuals, and
// a vision tower (arXiv 2607.24653; moonshotai/Kimi-K3, modeling_kimi_linear.py).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "../kimi_delta.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"
#include "headroom/expr.h"

namespace headroom::detail {
namespace {

void read_latent_attention_without_positions(ConfigReader& config, ModelSpec& spec) {
  config.expect_flag("mla_use_nope", true);
  LatentAttentionSpec latent;
  latent.q_lora_rank = config.count_or({"q_lora_rank"}, 0);
  latent.kv_lora_rank = config.size({"kv_lora_rank"});
  latent.qk_nope_head_dim = config.size({"qk_nope_head_dim"});
  latent.qk_rope_head_dim = config.size({"qk_rope_head_dim"});
  AttentionSpec& attention = spec.decoder->self_attention;
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.head_dim = latent.qk_nope_head_dim + latent.qk_rope_head_dim;
  attention.value_head_dim = config.size({"v_head_dim"});
  attention.latent = latent;
  attention.rotary = false;
  if (config.flag_or({"mla_use_output_gate"}, false)) attention.output_gate = ContextGate::sigmoid;
  spec.position.kind = PositionKind::none;
}

/// A config as transformers 5 writes it: layer_types, and keys of its own for the delta layers.
/// Without layer_types, every fourth layer from the fifth on has latent attention.
std::vector<bool> read_named_full_layers(ConfigReader& config, std::int64_t num_layers) {
  if (!config.has("layer_types")) {
    config.note_of_class("layer_types", "(full_attention in every fourth layer from the fifth on)");
  }
  return read_full_attention_layers(config, num_layers, {"linear_attention"},
                                    [](std::int64_t layer) { return layer > 0 && layer % 4 == 0; });
}

/// The layers with latent attention, numbered from 1 in `full_attn_layers`.
std::vector<bool> read_kimi_full_layers(ConfigReader& linear, std::int64_t num_layers) {
  const std::vector<std::int64_t> full = linear.counts("full_attn_layers");
  const std::vector<std::int64_t> delta = linear.counts("kda_layers");
  std::vector<bool> layers;
  for (std::int64_t layer = 1; layer <= num_layers; ++layer) {
    const bool is_full = std::ranges::find(full, layer) != full.end();
    if (is_full == (std::ranges::find(delta, layer) != delta.end())) {
      linear.fail("kda_layers", "does not name the layers that full_attn_layers leaves out",
                  "name every layer once, counted from 1");
    }
    layers.push_back(is_full);
  }
  return layers;
}

/// Returns true if the config is the publisher's: saved again by transformers 5, it keeps
/// linear_attn_config beside the keys of its class.
bool is_as_published(const ConfigReader& config) {
  return config.is_object("linear_attn_config") && !config.has("layer_types");
}

/// transformers 5 takes sizes from linear_attn_config, and the kinds of layers from layer_types.
std::vector<bool> read_full_layers(ConfigReader& config, std::optional<ConfigReader>& linear,
                                   std::int64_t num_layers) {
  if (linear && !config.has("layer_types")) return read_kimi_full_layers(*linear, num_layers);
  if (linear) linear->ignore({"full_attn_layers", "kda_layers"});
  if (linear) config.ignore({"linear_num_heads", "linear_head_dim", "linear_conv_kernel_dim"});
  return read_named_full_layers(config, num_layers);
}

void read_kimi_delta_layers(ConfigReader& config, StackSpec& stack) {
  auto linear = config.object("linear_attn_config");
  KimiDeltaSizes sizes;
  sizes.num_heads =
      linear ? linear->size({"num_heads"}) : config.size_or_of_class({"linear_num_heads"}, 32);
  sizes.head_dim =
      linear ? linear->size({"head_dim"}) : config.size_or_of_class({"linear_head_dim"}, 128);
  sizes.conv_kernel_dim = linear ? linear->size({"short_conv_kernel_size"})
                                 : config.size_or_of_class({"linear_conv_kernel_dim"}, 4);
  GatedDeltaSpec delta = kimi_delta(sizes);
  delta.projection_rank = sizes.head_dim;
  if (linear) {
    delta.full_rank_gate = linear->flag_or({"use_full_rank_gate"}, false);
    delta.decay_bound = linear->number_or({"gate_lower_bound"}, 0);
  }
  spread_kimi_delta(stack, read_full_layers(config, linear, stack.num_layers), delta);
  if (linear) linear->finish();
}

void read_kimi_experts(ConfigReader& config, StackSpec& stack) {
  ExpertsSpec experts;
  experts.num_experts = config.size({"num_experts"});
  experts.num_experts_per_tok = config.size({"num_experts_per_token"});
  experts.intermediate_size = config.size({"moe_intermediate_size"});
  // The publisher's class has no shared expert and no dense layer unless the config names them;
  // that of transformers has one of each.
  const bool published = is_as_published(config);
  const std::int64_t absent = published ? 0 : 1;
  const bool lists_layers = config.has("mlp_layer_types") || config.has("first_k_dense_replace");
  if (!published && !lists_layers) config.note_of_class("first_k_dense_replace", "1");
  if (!published && !config.has("num_shared_experts")) {
    config.note_of_class("num_shared_experts", "1");
  }
  experts.shared_intermediate_size =
      product(config, "num_shared_experts", config.count_or({"num_shared_experts"}, absent),
              experts.intermediate_size);
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, 1);
  experts.normalise = config.flag_or({"moe_renormalize"}, true);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  // The publisher's class registers it as one, and transformers' as a buffer.
  experts.correction_bias_is_parameter = published;
  experts.group_score = GroupScore::two_best;
  config.expect_text("moe_router_activation_func", "sigmoid");
  const bool grouped = config.flag_or({"use_grouped_topk"}, true);
  const std::int64_t groups = config.size_or({"num_expert_group"}, 1);
  const std::int64_t chosen = config.size_or({"topk_group"}, 1);
  if (grouped) {
    experts.num_groups = groups;
    experts.chosen_groups = chosen;
    require_groups(config, experts);
  }
  experts.latent_size = config.count_or({"routed_expert_hidden_size"}, 0);
  const bool normed = config.flag_or({"latent_moe_use_norm"}, false);
  if (experts.latent_size > 0 && normed) experts.latent_norm = stack.norm;
  config.expect_number("moe_layer_freq", 1);
  config.expect_text("topk_method", "noaux_tc");
  spread_experts(config, stack, experts, absent);
}

/// Kimi K3's files keep the projections around its experts and the scores of attention residuals in
/// bfloat16, although the targets of its quantization_config include them: with four bits, the sum
/// would be 0.5 % below the files' index.
void keep_unquantised(ModelSpec& spec) {
  spec.storage.rules.push_back(
      {.kinds = {ModuleKind::linear},
       .weights = {"mlp.latent.down.weight", "mlp.latent.up.weight",
                   "attention_residual.projection.weight", "mlp_residual.projection.weight",
                   "output_residual.projection.weight", "first_residual.projection.weight"}});
}

/// A cap c of c · tanh(x / c); 0: none.
double read_cap(ConfigReader& config, std::string_view key) {
  constexpr double kLeast = 0x1p-60;  // whose reciprocal is a float
  const double cap = config.number_or({key}, 0);
  if (cap == 0 || (cap >= kLeast && cap <= 1 / kLeast)) return cap;
  config.fail(key, fmt::format("is no cap of tanh: {:g}", cap), "write a positive number");
}

/// SiTU in SiLU's place: both factors have caps, that of the gate 1 where a config has none.
std::optional<TanhCaps> read_situ(ConfigReader& config) {
  if (!config.is_text("hidden_act", "situ")) return std::nullopt;
  const double gate = read_cap(config, "activation_situ_beta");
  return TanhCaps{gate == 0 ? 1 : gate, read_cap(config, "activation_situ_linear_beta")};
}

DecoderDefaults kimi_defaults(const std::optional<TanhCaps>& situ) {
  DecoderDefaults defaults;
  defaults.bias = BiasRule::none;
  defaults.head_size = HeadSizeRule::own;
  if (situ) defaults.fixed_activation = ActivationKind::silu;
  return defaults;
}

/// Kimi K3 has 8. Every sum reads all of those before it, so that a graph grows with their square.
constexpr std::int64_t kMostResidualBlocks = 128;

/// Reads the blocks of attention residuals. The class has a norm and a vector of scores in front of
/// the first attention, too, which reads the embeddings alone.
void read_attention_residuals(ConfigReader& config, ModelSpec& spec) {
  spec.decoder->residual_block = config.count_or({"attn_res_block_size"}, 0);
  if (spec.decoder->residual_block == 0) return;
  if (ceil_div(spec.decoder->num_layers, spec.decoder->residual_block) > kMostResidualBlocks) {
    config.fail("attn_res_block_size",
                fmt::format("cuts the layers into more than {} blocks", kMostResidualBlocks),
                "write a larger number");
  }
  const auto unread = [&](const std::string& name, std::vector<std::int64_t> shape,
                          WeightRole role) {
    spec.counted_only.push_back({"decoder.first_residual." + name, std::move(shape), role, 1,
                                 ModelPart::text, CountedUse::loaded});
  };
  unread("norm.weight", {spec.hidden_size}, WeightRole::norm);
  unread("projection.weight", {1, spec.hidden_size}, WeightRole::attention);
}

void read_kimi_linear(ConfigReader& config, ModelSpec& spec) {
  const std::optional<TanhCaps> situ = read_situ(config);
  DecoderDefaults defaults = kimi_defaults(situ);
  // Heads have the sizes of linear_attn_config and of the latent attention.
  config.ignore({"head_dim", "qk_head_dim", "num_nextn_predict_layers"});
  defaults.max_position_embeddings = config.size_or({"model_max_length"}, 2048);
  read_decoder(config, spec, defaults);
  spec.decoder->ffn.tanh_caps = situ;
  read_attention_residuals(config, spec);
  config.expect_flag("attention_bias", false);
  read_latent_attention_without_positions(config, spec);
  read_kimi_delta_layers(config, *spec.decoder);
  read_kimi_experts(config, *spec.decoder);
  const bool has_latent_experts = config.count_or({"routed_expert_hidden_size"}, 0) > 0;
  if (has_latent_experts || spec.decoder->residual_block > 0) keep_unquantised(spec);
}

constexpr NameRule kKimi[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_b_proj.%"},
    {"decoder.layers.attention.query_a.%", "layers.{}.self_attn.q_a_proj.%"},
    {"decoder.layers.attention.query_a_norm.%", "layers.{}.self_attn.q_a_layernorm.%"},
    {"decoder.layers.attention.key_value_a.%", "layers.{}.self_attn.kv_a_proj_with_mqa.%"},
    {"decoder.layers.attention.key_value_a_norm.%", "layers.{}.self_attn.kv_a_layernorm.%"},
    {"decoder.layers.attention.key_value.%", "layers.{}.self_attn.kv_b_proj.%"},
    {"decoder.layers.delta.query.%", "layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.delta.key.%", "layers.{}.self_attn.k_proj.%"},
    {"decoder.layers.delta.value.%", "layers.{}.self_attn.v_proj.%"},
    {"decoder.layers.delta.convolution.%", "layers.{}.self_attn.{qkv}_conv1d.%"},
    {"decoder.layers.delta.alpha_a.%", "layers.{}.self_attn.f_a_proj.%"},
    {"decoder.layers.delta.alpha_b.%", "layers.{}.self_attn.f_b_proj.%"},
    {"decoder.layers.delta.gate_a.%", "layers.{}.self_attn.g_a_proj.%"},
    {"decoder.layers.delta.gate_b.%", "layers.{}.self_attn.g_b_proj.%"},
    {"decoder.layers.delta.beta.%", "layers.{}.self_attn.b_proj.%"},
    {"decoder.layers.delta.dt_bias", "layers.{}.self_attn.dt_bias"},
    {"decoder.layers.delta.a_log", "layers.{}.self_attn.A_log"},
    {"decoder.layers.delta.context_norm.%", "layers.{}.self_attn.o_norm.%"},
    {"decoder.layers.delta.output.%", "layers.{}.self_attn.o_proj.%"},
    {"decoder.layers.mlp.router.correction_bias",
     "layers.{}.block_sparse_moe.gate.e_score_correction_bias"},
    // A dense layer, as transformers 5 saves it.
    {"decoder.layers.mlp.gate.%", "layers.{}.block_sparse_moe.gate_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.block_sparse_moe.up_proj.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.block_sparse_moe.down_proj.%"},
    {"decoder.layers.mlp.shared_expert.gate.%",
     "layers.{}.block_sparse_moe.shared_experts.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%",
     "layers.{}.block_sparse_moe.shared_experts.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%",
     "layers.{}.block_sparse_moe.shared_experts.down_proj.%"},
};

// Names that only Kimi K3 has.
constexpr NameRule kKimiK3[] = {
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.g_proj.%"},
    {"decoder.layers.delta.gate.%", "layers.{}.self_attn.g_proj.%"},
    {"decoder.layers.delta.a_log", "layers.{}.self_attn.A_log", padded_rows()},
    {"decoder.layers.mlp.latent.down.%", "layers.{}.block_sparse_moe.routed_expert_down_proj.%"},
    {"decoder.layers.mlp.latent.norm.%", "layers.{}.block_sparse_moe.routed_expert_norm.%"},
    {"decoder.layers.mlp.latent.up.%", "layers.{}.block_sparse_moe.routed_expert_up_proj.%"},
    {"decoder.first_residual.norm.%", "layers.0.self_attention_res_norm.%"},
    {"decoder.first_residual.projection.%", "layers.0.self_attention_res_proj.%"},
    {"decoder.layers.attention_residual.norm.%", "layers.{}.self_attention_res_norm.%"},
    {"decoder.layers.attention_residual.projection.%", "layers.{}.self_attention_res_proj.%"},
    {"decoder.layers.mlp_residual.norm.%", "layers.{}.mlp_res_norm.%"},
    {"decoder.layers.mlp_residual.projection.%", "layers.{}.mlp_res_proj.%"},
    {"decoder.output_residual.norm.%", "output_attn_res_norm.%"},
    {"decoder.output_residual.projection.%", "output_attn_res_proj.%"},
};

constexpr NameRule kKimiGguf[] = {
    {"layers.delta.query.%", "blk.{}.attn_q.%"},
    {"layers.delta.key.%", "blk.{}.attn_k.%"},
    {"layers.delta.value.%", "blk.{}.attn_v.%"},
    {"layers.delta.convolution.%", "blk.{}.ssm_conv1d_{qkv}.%"},
    {"layers.delta.alpha_a.%", "blk.{}.ssm_f_a.%"},
    {"layers.delta.alpha_b.%", "blk.{}.ssm_f_b.%"},
    {"layers.delta.gate_a.%", "blk.{}.ssm_g_a.%"},
    {"layers.delta.gate_b.%", "blk.{}.ssm_g_b.%"},
    {"layers.delta.beta.%", "blk.{}.ssm_beta.%"},
    {"layers.delta.dt_bias", "blk.{}.ssm_dt.bias"},
    {"layers.delta.a_log", "blk.{}.ssm_a"},
    {"layers.delta.context_norm.%", "blk.{}.ssm_norm.%"},
    {"layers.delta.output.%", "blk.{}.attn_output.%"},
};

/// Layers without key-value heads are delta layers, which have as many heads as the others.
void finish_kimi_linear(const GgufMetadataReader& metadata, ConfigDraft& config) {
  std::vector<std::string> types;
  for (const bool attends : finish_key_value_heads(metadata, config)) {
    types.emplace_back(attends ? "full_attention" : "linear_attention");
  }
  config.set_texts("layer_types", types);
  const std::int64_t heads = metadata.count("attention.head_count").value_or(0);
  const std::int64_t key = metadata.count("attention.key_length_mla").value_or(0);
  const std::int64_t rotary = metadata.count("rope.dimension_count").value_or(0);
  if (key <= rotary) metadata.fail("attention.key_length_mla", "does not exceed the rotated part");
  config.set_count("num_key_value_heads", heads);
  config.set_count("linear_num_heads", heads);
  config.set_count("qk_nope_head_dim", key - rotary);
}

GgufForm kimi_linear_form() {
  return GgufForm(GgufConversion::unknown,
                  {{.name = "kimi-linear",
                    .common = gguf_hybrid_keys(),
                    .own = {{"feed_forward_length", "intermediate_size"},
                            {"attention.q_lora_rank", "q_lora_rank"},
                            {"attention.kv_lora_rank", "kv_lora_rank"},
                            {"attention.value_length_mla", "v_head_dim"},
                            {"rope.dimension_count", "qk_rope_head_dim"},
                            {"ssm.conv_kernel", "linear_conv_kernel_dim"},
                            {"kda.head_dim", "linear_head_dim"},
                            {"expert_count", "num_experts"},
                            {"expert_used_count", "num_experts_per_token"},
                            {"expert_shared_count", "num_shared_experts"},
                            {"expert_feed_forward_length", "moe_intermediate_size"},
                            {"expert_weights_scale", "routed_scaling_factor"},
                            {"leading_dense_block_count", "first_k_dense_replace"}},
                    .head_dim = GgufHeadDim::never,
                    .finish = finish_kimi_linear}},
                  {kKimiGguf});
}

}  // namespace

std::vector<Family> kimi_linear_families() {
  return {{.model_types = {"kimi_linear"},
           .classes = llama_classes("KimiLinear"),
           .reader = read_kimi_linear,
           .names = llama_names({kKimi, kKimiK3, mixtral_expert_rules()}),
           .gguf = kimi_linear_form()},
          wrapper_family({.model_types = {"kimi_k3"},
                          .classes = {"KimiK3ForConditionalGeneration"},
                          .bare_classes = {},
                          .text_type = "kimi_linear",
                          .count_towers = read_kimi_k3_tower,
                          .tying = HeadTying::text,
                          .names = wrapped_kimi_k3_names()})};
}

}  // namespace headroom::detail
