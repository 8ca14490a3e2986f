// Llama: pre-norm decoder with RMSNorm, rotary positions, SwiGLU and grouped-query attention
// (arXiv 2302.13971, 2307.09288, 2407.21783).
#include <fmt/format.h>

#include "../family.h"

namespace headroom::detail {
namespace {

RopeScalingKind scaling_kind(ConfigReader& config) {
  return config.choice_or<RopeScalingKind>({"rope_type", "type"},
                                           {{"default", RopeScalingKind::none},
                                            {"linear", RopeScalingKind::linear},
                                            {"dynamic", RopeScalingKind::dynamic},
                                            {"llama3", RopeScalingKind::llama3}},
                                           RopeScalingKind::none);
}

void read_scaling(ConfigReader& config, RopeSpec& rope) {
  rope.scaling = scaling_kind(config);
  rope.factor = config.number_or({"factor"}, 1);
  rope.low_freq_factor = config.number_or({"low_freq_factor"}, 1);
  rope.high_freq_factor = config.number_or({"high_freq_factor"}, 1);
  rope.original_max_position_embeddings = config.count_or({"original_max_position_embeddings"}, 0);
  rope.theta = config.number_or({"rope_theta"}, rope.theta);
  config.finish();
}

RopeSpec read_rope(ConfigReader& config) {
  RopeSpec rope;
  rope.theta = config.number_or({"rope_theta"}, rope.theta);
  if (auto scaling = config.object("rope_scaling")) read_scaling(*scaling, rope);
  // The name since transformers 5, which moves rope_theta inside.
  if (auto parameters = config.object("rope_parameters")) read_scaling(*parameters, rope);
  return rope;
}

AttentionSpec read_attention(ConfigReader& config, std::int64_t hidden_size) {
  const std::int64_t heads = config.size({"num_attention_heads"});
  const std::int64_t kv_heads = config.size_or({"num_key_value_heads"}, heads);
  if (heads % kv_heads != 0) {
    config.fail("num_key_value_heads",
                fmt::format("{} key-value heads do not divide {} query heads", kv_heads, heads),
                "use a number that divides num_attention_heads");
  }
  AttentionSpec attention;
  if (const auto head_dim = config.optional_size({"head_dim"})) {
    attention.num_attention_heads = heads;
    attention.head_dim = *head_dim;
    attention.value_head_dim = *head_dim;
  } else {
    attention = multi_head_attention(config, "num_attention_heads", heads, hidden_size);
  }
  attention.num_key_value_heads = kv_heads;
  attention.causal = true;
  attention.qkv_bias = config.flag_or({"attention_bias"}, false);
  attention.output_bias = attention.qkv_bias;
  attention.softmax = SoftmaxPrecision::float32;
  return attention;
}

}  // namespace

void read_llama(ConfigReader& config, ModelSpec& spec) {
  LanguageModelHeadSpec language_model;
  language_model.weight = config.flag_or({"tie_word_embeddings"}, false) ? WeightSharing::shared
                                                                         : WeightSharing::separate;
  language_model.float32_logits = true;
  read_decoder_architecture(config, spec, "Llama", "LlamaForCausalLM", language_model);

  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings = config.size_or({"max_position_embeddings"}, 2048);
  spec.position.rope = read_rope(config);

  StackSpec stack;
  stack.num_layers = config.size({"num_hidden_layers"});
  stack.self_attention = read_attention(config, spec.hidden_size);
  stack.ffn = {FfnKind::gated, config.size({"intermediate_size"}),
               read_activation(config, {"hidden_act"}, ActivationKind::silu),
               config.flag_or({"mlp_bias"}, false)};
  stack.norm_placement = NormPlacement::pre;
  stack.norm = {NormKind::rms_norm, false, config.number_or({"rms_norm_eps"}, 1e-6)};
  stack.final_norm = stack.norm;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  config.ignore({"max_sequence_length", "rope_interleaved", "is_llama_config"});
  spec.decoder = stack;
}

}  // namespace headroom::detail
