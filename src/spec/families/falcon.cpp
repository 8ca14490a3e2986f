// Falcon: parallel attention and FFN with one KV head; later versions with KV groups and a norm for
// each part (arXiv 2311.16867).
#include "../common_keys.h"
#include "../family.h"
#include "../rope.h"

namespace headroom::detail {
namespace {

/// Defaults of Transformers' class, and of the vendor's classes for the 40B model (RefinedWeb) and
/// the other models (RefinedWebModel).
struct Defaults {
  bool new_decoder_architecture = false;
  bool multi_query = true;
  bool parallel_attn = true;
};

Defaults defaults_of(const std::string& model_type) {
  if (model_type == "RefinedWeb") return {true, true, true};
  if (model_type == "RefinedWebModel") return {false, false, false};
  return {};
}

AttentionSpec read_attention(ConfigReader& config, std::int64_t hidden_size, bool grouped,
                             bool one_when_absent) {
  const std::int64_t heads = config.size({"num_attention_heads", "n_head"});
  AttentionSpec attention = multi_head_attention(config, "num_attention_heads", heads, hidden_size);
  const bool one = config.flag_or({"multi_query"}, one_when_absent);
  const std::int64_t kv_heads = config.size_or({"num_kv_heads", "n_head_kv"}, heads);
  attention.num_key_value_heads = grouped || !one ? kv_heads : 1;
  if (heads % attention.num_key_value_heads != 0) {
    config.fail("num_kv_heads", "does not divide num_attention_heads",
                "use a divisor of num_attention_heads");
  }
  attention.caches_repeated_heads = grouped;
  attention.causal = true;
  attention.softmax = SoftmaxPrecision::float32;
  attention.qkv_bias = config.flag_or({"bias"}, false);
  attention.output_bias = attention.qkv_bias;
  if (config.flag_or({"alibi"}, false)) {
    attention.alibi = {AlibiKind::power_below, AlibiOrder::rounded_before_scale};
  }
  return attention;
}

void read_falcon(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"hidden_size", "n_embed"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.max_position_embeddings = config.size_or({"max_position_embeddings"}, 2048);

  const Defaults absent = defaults_of(spec.model_type);
  const bool grouped =
      config.flag_or({"new_decoder_architecture"}, absent.new_decoder_architecture);
  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers", "n_layer"});
  stack.self_attention = read_attention(config, spec.hidden_size, grouped, absent.multi_query);
  if (stack.self_attention.alibi.kind == AlibiKind::none) {
    spec.position.kind = PositionKind::rotary;
    spec.position.rope = read_rope(config, spec.position, stack.self_attention.head_dim, {});
  } else {
    config.ignore({"rope_theta", "rope_scaling", "rope_parameters"});
  }
  const bool bias = stack.self_attention.output_bias;
  stack.ffn = {
      FfnKind::plain,
      config.size_or({"ffn_hidden_size"}, product(config, "hidden_size", 4, spec.hidden_size)),
      read_activation(config, {"activation"}, ActivationKind::gelu), bias};
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_epsilon"}, 1e-5)};
  stack.final_norm = stack.norm;
  const std::int64_t norms = config.size_or({"num_ln_in_parallel_attn"}, grouped ? 2 : 1);
  if (config.flag_or({"parallel_attn"}, absent.parallel_attn)) {
    stack.residual =
        norms == 2 ? ResidualKind::parallel_two_norms : ResidualKind::parallel_one_norm;
  }
  const double dropout = config.probability_or({"hidden_dropout"}, 0);
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  config.expect_flag("apply_residual_connection_post_layernorm", false);
  spec.decoder = stack;
}

// Norms of parallel layers with one norm per part; the other names are BLOOM's.
constexpr NameRule kFalcon[] = {
    {"decoder.layers.attention_norm.%", "h.{}.ln_attn.%"},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_mlp.%"},
};

void finish_falcon(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const auto heads = metadata.count("attention.head_count_kv").value_or(1);
  config.set_flag("parallel_attn", true);
  config.set_flag("multi_query", heads == 1);
  if (config.is_true("new_decoder_architecture")) config.set_count("num_kv_heads", heads);
}

}  // namespace

std::vector<Family> falcon_families() {
  return {{.model_types = {"falcon", "RefinedWeb", "RefinedWebModel"},
           .classes = either_of(decoder_classes("Falcon", {.tied = true}),
                                decoder_classes("RW", {.tied = true})),
           .reader = read_falcon,
           .names = NameTable{{kFalcon, bloom_rules()},
                              {"transformer."},
                              {{"lm_head.weight", ExtraKind::tied_copy}}},
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "falcon",
                              .own = {{"embedding_length", "hidden_size"},
                                      {"block_count", "num_hidden_layers"},
                                      {"attention.head_count", "num_attention_heads"},
                                      {"feed_forward_length", "ffn_hidden_size"},
                                      {"attention.layer_norm_epsilon", "layer_norm_epsilon"}},
                              .flags = {{"blk.0.attn_norm_2.weight", "new_decoder_architecture"},
                                        {"blk.0.attn_qkv.bias", "bias"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_falcon}})}};
}

}  // namespace headroom::detail
