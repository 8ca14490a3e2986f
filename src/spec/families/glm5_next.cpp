// GLM-5.3: three of four layers are Kimi delta attention, the others latent attention without
// positions, whose indexer chooses pools of tokens; DeepSeek-V4's hyper-connections; balanced
// experts; GLM-OCR's tower (zai-org/GLM-5.3-Flash; transformers, models/glm5_next).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../kimi_delta.h"
#include "../quantization/formats.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"
#include "deepseek_sparse.h"

namespace headroom::detail {
namespace {

constexpr double kDecayBound = -5;

/// The layers with latent attention: every fourth one, unless layer_types says otherwise.
std::vector<bool> read_indexed_layers(ConfigReader& config, std::int64_t num_layers) {
  constexpr std::int64_t kPeriod = 4;
  const std::vector<std::string> types = config.texts("layer_types");
  if (!types.empty())
    config.require_one_per_layer("layer_types", types.size(), num_layers,
                                 "write one type for each of num_hidden_layers");
  std::vector<bool> indexed;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    if (types.empty()) {
      indexed.push_back(layer % kPeriod == kPeriod - 1);
      continue;
    }
    const std::string& type = types[static_cast<std::size_t>(layer)];
    indexed.push_back(type == "indexed_attention" || type == "full_attention");
    if (indexed.back() || type == "linear_attention") continue;
    config.fail("layer_types", fmt::format("\"{}\" is not supported", type),
                "use linear_attention or indexed_attention");
  }
  return indexed;
}

void read_latents(ConfigReader& config, ModelSpec& spec) {
  StackSpec& stack = *spec.decoder;
  AttentionSpec& attention = stack.self_attention;
  LatentAttentionSpec latent;
  latent.q_lora_rank = config.size_or({"q_lora_rank"}, 1536);
  latent.kv_lora_rank = config.size_or({"kv_lora_rank"}, 512);
  latent.qk_nope_head_dim = config.size_or({"qk_nope_head_dim"}, 256);
  config.expect_number("qk_rope_head_dim", 0);
  latent.bias = config.flag_or({"attention_bias"}, false);
  latent.norm_eps = stack.norm.eps;
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.head_dim = latent.qk_nope_head_dim;
  attention.value_head_dim = config.size_or({"v_head_dim"}, 256);
  attention.output_bias = latent.bias;
  attention.rotary = false;
  attention.latent = latent;
  config.expect_number("qk_head_dim", static_cast<double>(attention.head_dim));
  spec.position.kind = PositionKind::none;
}

/// Gives latent attention an indexer of pools. Layers that share a choice are not supported: the
/// class hands one on to the next layer only.
void read_pool_indexer(ConfigReader& config, StackSpec& stack, const std::vector<bool>& indexed) {
  IndexerSpec indexer = read_indexer_sizes(config, *stack.self_attention.latent, {.num_heads = 32});
  indexer.pool_size = config.size_or({"index_kpool"}, 16);
  config.expect_flag("index_kpool_always_select_tail", true);
  if (!indexer.pools()) {
    config.fail("index_kpool", "pools single tokens", "use a pool of at least 2 tokens");
  }
  if (indexer.top_k % indexer.pool_size != 0) {
    config.fail("index_topk", "is no multiple of index_kpool", "choose whole pools");
  }
  const std::vector<bool> own = read_own_indexers(config, stack.num_layers, 1);
  for (std::size_t layer = 0; layer < indexed.size(); ++layer) {
    if (!indexed[layer] || own[layer]) continue;
    config.fail("indexer_types", fmt::format("gives layer {} no indexer of its own", layer),
                "give every layer with latent attention one");
  }
  stack.self_attention.indexer = indexer;
}

/// The least log of a decay in `key`; none if that is null, and `absent` without the key.
std::optional<double> read_decay_bound(ConfigReader& config, std::string_view key,
                                       std::optional<double> absent) {
  if (config.is_null(key)) return std::nullopt;
  if (!config.has(key)) return absent;
  const double bound = config.number_or({key}, kDecayBound);
  if (bound < 0) return bound;
  config.fail(key, fmt::format("{:g} bounds no decay", bound), "write a negative number or null");
}

/// Sizes by the class's keys, or by those of linear_attn_config, which come first.
GatedDeltaSpec read_delta(ConfigReader& config) {
  KimiDeltaSizes sizes;
  sizes.num_heads = config.size_or({"linear_num_heads"}, 64);
  sizes.head_dim = config.size_or({"linear_head_dim"}, 128);
  sizes.conv_kernel_dim = config.size_or({"linear_conv_kernel_dim"}, 4);
  std::optional<double> bound = read_decay_bound(config, "linear_lower_bound", kDecayBound);
  if (auto linear = config.object("linear_attn_config")) {
    sizes.num_heads = linear->size_or({"num_heads"}, sizes.num_heads);
    sizes.head_dim = linear->size_or({"head_dim"}, sizes.head_dim);
    sizes.conv_kernel_dim = linear->size_or({"short_conv_kernel_size"}, sizes.conv_kernel_dim);
    bound = read_decay_bound(*linear, "gate_lower_bound", bound);
    if (linear->flag_or({"safe_gate"}, true)) bound = bound.value_or(kDecayBound);
    linear->ignore({"full_attn_layers", "kda_layers"});  // layer_types decides
    linear->finish();
  }
  GatedDeltaSpec delta = kimi_delta(sizes);
  delta.projection_rank = sizes.head_dim;
  delta.decay_bound = bound.value_or(0);
  return delta;
}

void read_glm5_experts(ConfigReader& config, StackSpec& stack) {
  const ExpertsSpec experts = read_balanced_experts(
      config, {{"n_routed_experts", "num_local_experts"}, 288, 8}, {2048, 2.5});
  config.expect_text("hidden_act", "silu");
  config.expect_number("swiglu_limit", 10);
  stack.ffn.activation = ActivationKind::clamped_silu;
  config.ignore({"first_k_dense_replace"});
  set_sparse_layers(config, stack, experts, 3);
}

/// Weights that the class keeps in float32.
void keep_wide(WeightStorage& storage) {
  storage.rules.push_back(
      {.format = plain_format("float32"),
       .kinds = {ModuleKind::linear, ModuleKind::router, ModuleKind::convolution,
                 ModuleKind::other},
       .weights = {"hyper_connection.base", "hyper_connection.scale", "delta.convolution.weight",
                   "delta.dt_bias", "delta.a_log", "router.weight", "router.correction_bias"}});
}

void read_glm5_next(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek_defaults(1048576);
  defaults.norm_eps = 1e-5;
  defaults.head_size = HeadSizeRule::own;
  // Heads have the sizes of the latent attention, and as many keys as queries.
  config.ignore({"head_dim", "num_key_value_heads", "num_nextn_predict_layers",
                 "index_share_for_mtp_iteration"});
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.hyper_connections = read_mixed_streams(config);
  stack.hyper_connections->output = StreamOutput::mean;
  read_latents(config, spec);
  const std::vector<bool> indexed = read_indexed_layers(config, stack.num_layers);
  read_pool_indexer(config, stack, indexed);
  spread_kimi_delta(stack, indexed, read_delta(config));
  read_glm5_experts(config, stack);
  keep_wide(spec.storage);
}

// The names of the class, then those of the published files.
constexpr NameRule kGlm5Next[] = {
    {"decoder.layers.attention.indexer.gate.weight",
     "layers.{}.self_attn.indexer.index_kpool_compress_gate"},
    {"decoder.layers.attention.indexer.position_bias",
     "layers.{}.self_attn.indexer.index_kpool_compress_ape"},
    {"decoder.layers.delta.query.%", "layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.delta.key.%", "layers.{}.self_attn.k_proj.%"},
    {"decoder.layers.delta.value.%", "layers.{}.self_attn.v_proj.%"},
    {"decoder.layers.delta.convolution.%", "layers.{}.self_attn.conv1d.%"},
    {"decoder.layers.delta.alpha_a.%", "layers.{}.self_attn.forget_gate.f_a_proj.%"},
    {"decoder.layers.delta.alpha_b.%", "layers.{}.self_attn.forget_gate.f_b_proj.%"},
    {"decoder.layers.delta.gate_a.%", "layers.{}.self_attn.g_a_proj.%"},
    {"decoder.layers.delta.gate_b.%", "layers.{}.self_attn.g_b_proj.%"},
    {"decoder.layers.delta.beta.%", "layers.{}.self_attn.b_proj.%"},
    {"decoder.layers.delta.dt_bias", "layers.{}.self_attn.forget_gate.dt_bias"},
    {"decoder.layers.delta.a_log", "layers.{}.self_attn.forget_gate.A_log"},
    {"decoder.layers.delta.context_norm.%", "layers.{}.self_attn.o_norm.%"},
    {"decoder.layers.delta.output.%", "layers.{}.self_attn.o_proj.%"},
    {"decoder.layers.attention.hyper_connection.function.weight", "layers.{}.attn_hc.fn"},
    {"decoder.layers.attention.hyper_connection.base", "layers.{}.attn_hc.base"},
    {"decoder.layers.attention.hyper_connection.scale", "layers.{}.attn_hc.scale"},
    {"decoder.layers.mlp.hyper_connection.function.weight", "layers.{}.ffn_hc.fn"},
    {"decoder.layers.mlp.hyper_connection.base", "layers.{}.ffn_hc.base"},
    {"decoder.layers.mlp.hyper_connection.scale", "layers.{}.ffn_hc.scale"},
    {"decoder.layers.delta.convolution.%", "layers.{}.self_attn.{qkv}_conv1d.%"},
    {"decoder.layers.delta.alpha_a.%", "layers.{}.self_attn.f_a_proj.%"},
    {"decoder.layers.delta.alpha_b.%", "layers.{}.self_attn.f_b_proj.%"},
    {"decoder.layers.delta.dt_bias", "layers.{}.self_attn.dt_bias"},
    {"decoder.layers.delta.a_log", "layers.{}.self_attn.A_log"},
    {"decoder.layers.attention.hyper_connection.function.weight", "layers.{}.hc_attn_fn"},
    {"decoder.layers.attention.hyper_connection.base", "layers.{}.hc_attn_base"},
    {"decoder.layers.attention.hyper_connection.scale", "layers.{}.hc_attn_scale"},
    {"decoder.layers.mlp.hyper_connection.function.weight", "layers.{}.hc_ffn_fn"},
    {"decoder.layers.mlp.hyper_connection.base", "layers.{}.hc_ffn_base"},
    {"decoder.layers.mlp.hyper_connection.scale", "layers.{}.hc_ffn_scale"},
};

}  // namespace

std::vector<Family> glm5_next_families() {
  return {{.model_types = {"glm5_next_text"},
           .classes = llama_classes("Glm5NextText"),
           .reader = read_glm5_next,
           .names = deepseek_names(kGlm5Next),
           .gguf = None("llama.cpp does not support this architecture")},
          wrapper_family({.model_types = {"glm5_next"},
                          .classes = {"Glm5NextForConditionalGeneration"},
                          .bare_classes = {"Glm5NextModel"},
                          .text_type = "glm5_next_text",
                          .count_towers = read_glm5_next_tower,
                          .tying = HeadTying::whole,
                          .names = wrapped_glm_ocr_names()})};
}

}  // namespace headroom::detail
