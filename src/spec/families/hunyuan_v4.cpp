// Hunyuan V4: GLM-5.2's latent attention with shared indexers, sinks and gated outputs, and
// DeepSeek-V4's hyper-connections without their matrix (Tencent; transformers, models/hy_v4).
#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "../quantization/formats.h"
#include "deepseek_sparse.h"

namespace headroom::detail {
namespace {

/// Sizes that a config may omit.
struct Sizes {
  std::int64_t q_lora_rank = 1536;
  std::int64_t expert = 768;
  std::int64_t index_heads = 16;
};

/// RoPE turns the last features of an indexer's heads.
void read_hunyuan_indexer(ConfigReader& config, ModelSpec& spec, std::int64_t num_heads) {
  read_indexer(config, spec, {.num_heads = num_heads, .every = 4});
  StackSpec& stack = *spec.decoder;
  const auto adapt = [&](AttentionSpec& attention) {
    attention.indexer->rotary_part = HeadPart::last;
    attention.indexer->key_norm_eps = stack.norm.eps;
  };
  adapt(stack.self_attention);
  for (LayerVariant& variant : stack.variants) adapt(variant.self_attention);
}

ExpertsSpec read_clamped_experts(ConfigReader& config, std::int64_t size) {
  ExpertsSpec experts = read_balanced_experts(
      config, {{"n_routed_experts", "num_local_experts"}, 256, 8}, {size, 2.827});
  experts.activation = ActivationKind::clamped_silu;
  config.expect_number("swiglu_limit", 10);
  return experts;
}

/// Weights that the class keeps in float32.
void keep_float32(WeightStorage& storage) {
  storage.rules.push_back(
      {.format = plain_format("float32"),
       .kinds = {ModuleKind::linear, ModuleKind::router, ModuleKind::head, ModuleKind::other},
       .weights = {"hyper_connection.function.weight", "hyper_connection.base",
                   "hyper_connection.scale", "attention.sinks", "indexer.weights.weight",
                   "indexer.key_norm.weight", "indexer.key_norm.bias", "router.weight",
                   "head.language_model.weight"}});
}

void read_hunyuan_v4_layers(ConfigReader& config, ModelSpec& spec, const Sizes& absent) {
  DecoderDefaults defaults = deepseek_defaults(262144);
  defaults.rope.layout = RopeLayout::half_split;
  defaults.norm_eps = 1e-5;
  // The class reads qk_rope_head_dim and qk_nope_head_dim, and as many keys as queries.
  config.ignore({"head_dim", "num_key_value_heads", "learnable_sink_init"});
  read_decoder(config, spec, defaults);
  read_latent_attention(config, spec, {absent.q_lora_rank, 192, 256});
  StackSpec& stack = *spec.decoder;
  stack.self_attention.sinks = true;
  stack.self_attention.output_gate = ContextGate::sigmoid;
  HyperConnectionSpec connections = read_streams(config);
  connections.addition_scale = config.number_or({"hc_magnitude"}, 2);
  connections.addition_eps = connections.eps;
  stack.hyper_connections = connections;
  spread_experts(config, stack, read_clamped_experts(config, absent.expert), 1);
  read_hunyuan_indexer(config, spec, absent.index_heads);
  keep_float32(spec.storage);
}

void read_hunyuan_v4(ConfigReader& config, ModelSpec& spec) {
  read_hunyuan_v4_layers(config, spec, {});
}

/// The text of Hunyuan V4 with images, whose compressed queries and latents have norms with the
/// epsilon of the others.
void read_hunyuan_v4_vl_text(ConfigReader& config, ModelSpec& spec) {
  read_hunyuan_v4_layers(config, spec, {2048, 2048, 32});
  StackSpec& stack = *spec.decoder;
  stack.self_attention.latent->norm_eps = stack.norm.eps;
  for (LayerVariant& variant : stack.variants) {
    variant.self_attention.latent->norm_eps = stack.norm.eps;
  }
}

// The names of the class, then Tencent's own, with hc_pre where transformers writes it or before
// the last word.
constexpr NameRule kHunyuanV4[] = {
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.gate_proj.%"},
    {"decoder.layers.attention.sinks", "layers.{}.self_attn.sinks"},
    {"decoder.layers.attention.hyper_connection.function.weight", "layers.{}.attn_hc.fn"},
    {"decoder.layers.attention.hyper_connection.base", "layers.{}.attn_hc.base"},
    {"decoder.layers.attention.hyper_connection.scale", "layers.{}.attn_hc.scale"},
    {"decoder.layers.mlp.hyper_connection.function.weight", "layers.{}.ffn_hc.fn"},
    {"decoder.layers.mlp.hyper_connection.base", "layers.{}.ffn_hc.base"},
    {"decoder.layers.mlp.hyper_connection.scale", "layers.{}.ffn_hc.scale"},
    {"decoder.hyper_connection.function.weight", "hc_head.hc_fn"},
    {"decoder.hyper_connection.base", "hc_head.hc_base"},
    {"decoder.hyper_connection.scale", "hc_head.hc_scale"},
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.linear_gate.%"},
    {"decoder.layers.attention.sinks", "layers.{}.self_attn.learnable_sink_param"},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp.linear_gate.%"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_experts.linear_gate.%"},
    {"decoder.layers.attention.hyper_connection.function.weight",
     "layers.{}.hc_attn_layer.hc_pre.hc_fn"},
    {"decoder.layers.attention.hyper_connection.base", "layers.{}.hc_attn_layer.hc_pre.hc_base"},
    {"decoder.layers.attention.hyper_connection.scale", "layers.{}.hc_attn_layer.hc_pre.hc_scale"},
    {"decoder.layers.attention.hyper_connection.function.weight",
     "layers.{}.hc_pre.hc_attn_layer.hc_fn"},
    {"decoder.layers.attention.hyper_connection.base", "layers.{}.hc_pre.hc_attn_layer.hc_base"},
    {"decoder.layers.attention.hyper_connection.scale", "layers.{}.hc_pre.hc_attn_layer.hc_scale"},
    {"decoder.layers.mlp.hyper_connection.function.weight", "layers.{}.hc_mlp_layer.hc_pre.hc_fn"},
    {"decoder.layers.mlp.hyper_connection.base", "layers.{}.hc_mlp_layer.hc_pre.hc_base"},
    {"decoder.layers.mlp.hyper_connection.scale", "layers.{}.hc_mlp_layer.hc_pre.hc_scale"},
    {"decoder.layers.mlp.hyper_connection.function.weight", "layers.{}.hc_pre.hc_mlp_layer.hc_fn"},
    {"decoder.layers.mlp.hyper_connection.base", "layers.{}.hc_pre.hc_mlp_layer.hc_base"},
    {"decoder.layers.mlp.hyper_connection.scale", "layers.{}.hc_pre.hc_mlp_layer.hc_scale"},
    {"decoder.hyper_connection.function.weight", "hc_head.hc_head_fn"},
    {"decoder.hyper_connection.base", "hc_head.hc_head_base"},
    {"decoder.hyper_connection.scale", "hc_head.hc_head_scale"},
    {"decoder.hyper_connection.function.weight", "hc_pre.hc_head.hc_head_fn"},
    {"decoder.hyper_connection.base", "hc_pre.hc_head.hc_head_base"},
    {"decoder.hyper_connection.scale", "hc_pre.hc_head.hc_head_scale"},
};

}  // namespace

std::vector<Family> hunyuan_v4_families() {
  return {{.model_types = {"hy_v4"},
           .classes = llama_classes("HYV4"),
           .reader = read_hunyuan_v4,
           .names = deepseek_names(kHunyuanV4),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"hy_v4_vl_text"},
           .classes = llama_classes("HYV4VLText"),
           .reader = read_hunyuan_v4_vl_text,
           .names = deepseek_names(kHunyuanV4),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
