// OLMo hybrid: gated DeltaNet in three of four layers, with negative eigenvalues, and OLMo 3's
// attention in the fourth (transformers, models/olmo_hybrid; arXiv 2411.12537).
#include "../decoder.h"
#include "../family.h"
#include "../state_space.h"

namespace headroom::detail {
namespace {

/// Published files have no RoPE: their rope_theta is null.
bool reads_rope(ConfigReader& config) {
  const auto parameters = config.object("rope_parameters");
  return config.has("rope_theta") || (parameters && parameters->has("rope_theta"));
}

GatedDeltaSpec read_olmo_delta(ConfigReader& config, const ModelSpec& spec) {
  constexpr double kKeysPerHidden = 0.75;
  constexpr double kNormEps = 1e-5;  // of the class, whatever rms_norm_eps is
  const std::int64_t heads = spec.decoder->self_attention.num_attention_heads;
  GatedDeltaSpec delta;
  delta.num_key_heads = config.size_or({"linear_num_key_heads"}, heads);
  delta.num_value_heads = config.size_or({"linear_num_value_heads"}, heads);
  const auto key_dim =
      static_cast<std::int64_t>(kKeysPerHidden * static_cast<double>(spec.hidden_size) /
                                static_cast<double>(delta.num_key_heads));
  delta.key_head_dim = config.size_or({"linear_key_head_dim"}, key_dim);
  delta.value_head_dim = config.size_or({"linear_value_head_dim"}, 2 * delta.key_head_dim);
  delta.conv_kernel_dim = config.size_or({"linear_conv_kernel_dim"}, 4);
  delta.strength = config.flag_or({"linear_allow_neg_eigval"}, true) ? 2 : 1;
  delta.norm_eps = kNormEps;
  if (delta.num_value_heads % delta.num_key_heads != 0) {
    config.fail("linear_num_value_heads", "is not a multiple of linear_num_key_heads",
                "use a multiple of linear_num_key_heads");
  }
  config.ignore({"linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max",
                 "linear_dt_init_floor"});
  return delta;
}

void read_olmo_hybrid(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kPeriod = 4;
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 65536;
  const bool rotates = reads_rope(config);
  read_decoder(config, spec, defaults);
  if (!rotates) spec.position.kind = PositionKind::none;
  StackSpec& stack = *spec.decoder;
  AttentionSpec& attention = stack.self_attention;
  attention.query_key_norm = QueryKeyNormSpec{stack.norm, QueryKeyNormScope::all_heads};
  attention.norm_placement = NormPlacement::output;
  require_silu_to_run(spec);
  const GatedDeltaSpec delta = read_olmo_delta(config, spec);
  // By default every fourth layer, or the last of fewer.
  const std::int64_t layers = stack.num_layers;
  const std::vector<bool> full =
      read_full_attention_layers(config, layers, {"linear_attention"}, [&](std::int64_t layer) {
        return layer % kPeriod == kPeriod - 1 || (layers < kPeriod && layer + 1 == layers);
      });
  vary_layers(stack, full, [&](LayerVariant& variant) {
    variant.self_attention.kind = AttentionKind::gated_delta;
    variant.self_attention.gated_delta = delta;
    variant.self_attention.query_key_norm.reset();
    variant.self_attention.norm_placement.reset();
  });
}

// The names of norms before and after a part: published files', then those of the class.
constexpr NameRule kOlmoHybrid[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.attention_layer_norm.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.input_layernorm.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.feedforward_layer_norm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_feedforward_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.feedforward_layer_norm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.delta.query.%", "layers.{}.linear_attn.q_proj.%"},
    {"decoder.layers.delta.key.%", "layers.{}.linear_attn.k_proj.%"},
    {"decoder.layers.delta.value.%", "layers.{}.linear_attn.v_proj.%"},
    {"decoder.layers.delta.convolution.%", "layers.{}.linear_attn.{qkv}_conv1d.%"},
    {"decoder.layers.delta.convolution.%", "layers.{}.linear_attn.conv1d.%"},
    {"decoder.layers.delta.gate.%", "layers.{}.linear_attn.g_proj.%"},
    {"decoder.layers.delta.beta.%", "layers.{}.linear_attn.b_proj.%"},
    {"decoder.layers.delta.alpha.%", "layers.{}.linear_attn.a_proj.%"},
    {"decoder.layers.delta.dt_bias", "layers.{}.linear_attn.dt_bias"},
    {"decoder.layers.delta.a_log", "layers.{}.linear_attn.A_log"},
    {"decoder.layers.delta.context_norm.%", "layers.{}.linear_attn.o_norm.%"},
    {"decoder.layers.delta.output.%", "layers.{}.linear_attn.o_proj.%"},
};

}  // namespace

std::vector<Family> olmo_hybrid_families() {
  return {{.model_types = {"olmo_hybrid"},
           .classes = llama_classes("OlmoHybrid"),
           .reader = read_olmo_hybrid,
           .names = llama_names({kOlmoHybrid, query_key_norm_rules()}),
           .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
