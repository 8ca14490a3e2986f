// OLMo 1 with the keys and names of its own code (hf_olmo): norms without weights, Q, K and V in
// one tensor, gate and up projection in another (arXiv 2402.00838; github.com/allenai/OLMo,
// olmo/model.py).
#include <fmt/format.h>

#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// n_kv_heads, or one for multi_query_attention; both together are an error, as in the class.
std::int64_t read_olmo_key_value_heads(ConfigReader& config, std::int64_t heads) {
  const bool single = config.flag_or({"multi_query_attention"}, false);
  const std::int64_t absent = single ? 1 : heads;
  const std::int64_t stated = config.size_or({"n_kv_heads"}, absent);
  const bool contradicts = config.has("multi_query_attention") && stated != absent;
  if (contradicts || heads % stated != 0) {
    config.fail("n_kv_heads", fmt::format("{} contradicts {} heads", stated, heads),
                "use a number that divides n_heads, without multi_query_attention");
  }
  return stated;
}

AttentionSpec read_olmo_attention(ConfigReader& config, std::int64_t hidden_size) {
  const std::int64_t heads = config.size({"n_heads"});
  AttentionSpec attention = multi_head_attention(config, "n_heads", heads, hidden_size);
  attention.num_key_value_heads = read_olmo_key_value_heads(config, heads);
  attention.causal = true;
  attention.clip_qkv = config.number_or({"clip_qkv"}, 0);
  if (!config.flag_or({"rope"}, false)) {
    config.fail("rope", "is not true", "use a model with rotary positions");
  }
  config.expect_flag("alibi", false);
  config.expect_flag("attention_layer_norm", false);
  config.ignore({"alibi_bias_max", "attention_layer_norm_with_affine", "flash_attention",
                 "rope_full_precision"});
  return attention;
}

/// The first matrix of SwiGLU has both halves.
FfnSpec read_olmo_network(ConfigReader& config, std::int64_t hidden_size) {
  const std::int64_t ratio = config.size_or({"mlp_ratio"}, 4);
  const std::int64_t both =
      config.size_or({"mlp_hidden_size"}, product(config, "mlp_ratio", ratio, hidden_size));
  if (both % 2 != 0) {
    config.fail("mlp_hidden_size", fmt::format("{} is odd", both), "use an even number");
  }
  config.expect_text("activation_type", "swiglu");
  return {FfnKind::gated, both / 2, ActivationKind::silu, false};
}

NormSpec read_olmo_norm(ConfigReader& config) {
  const NormKind kind = config.choice_or<NormKind>({"layer_norm_type"},
                                                   {{"default", NormKind::layer_norm},
                                                    {"low_precision", NormKind::layer_norm},
                                                    {"rms", NormKind::rms_norm}},
                                                   NormKind::layer_norm);
  const bool affine = config.flag_or({"layer_norm_with_affine"}, true);
  config.expect_flag("bias_for_layer_norm", false);
  return {kind, false, config.number_or({"layer_norm_eps"}, 1e-5),
          affine ? NormWeight::plain : NormWeight::none};
}

void read_hf_olmo(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"d_model"});
  const std::int64_t words = config.size({"vocab_size"});
  spec.embedding.vocab_size = config.size_or({"embedding_size"}, words);
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings = config.size_or({"max_sequence_length"}, 1024);
  spec.position.rope.theta = config.number_or({"rope_theta"}, 10000);
  StackSpec stack;
  stack.num_layers = config.layers({"n_layers"});
  stack.self_attention = read_olmo_attention(config, spec.hidden_size);
  stack.ffn = read_olmo_network(config, spec.hidden_size);
  stack.norm = read_olmo_norm(config);
  stack.norm_placement = NormPlacement::pre;
  stack.final_norm = stack.norm;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0.1);
  stack.dropout.attention_output = config.probability_or({"residual_dropout"}, 0.1);
  stack.dropout.ffn_output = stack.dropout.attention_output;
  stack.dropout.embedding = config.probability_or({"embedding_dropout"}, 0.1);
  spec.decoder = stack;
  for (const char* const key :
       {"include_bias", "embedding_layer_norm", "scale_logits", "norm_after"}) {
    config.expect_flag(key, false);
  }
  config.expect_text("block_type", "sequential");
  config.expect_number("block_group_size", 1);
  config.ignore({"init_cutoff_factor", "init_device", "init_fn", "init_std", "emb_init_std",
                 "scale_emb_init", "precision"});
}

constexpr NameRule kHfOlmo[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"decoder.layers.attention_norm.%", "blocks.{}.attn_norm.%"},
    {"decoder.layers.attention.query.%", "blocks.{}.att_proj.%", part(0)},
    {"decoder.layers.attention.key.%", "blocks.{}.att_proj.%", part(1)},
    {"decoder.layers.attention.value.%", "blocks.{}.att_proj.%", part(2)},
    {"decoder.layers.attention.output.%", "blocks.{}.attn_out.%"},
    {"decoder.layers.mlp_norm.%", "blocks.{}.ff_norm.%"},
    {"decoder.layers.mlp.up.%", "blocks.{}.ff_proj.%", part(0)},
    {"decoder.layers.mlp.gate.%", "blocks.{}.ff_proj.%", part(1)},
    {"decoder.layers.mlp.down.%", "blocks.{}.ff_out.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "ff_out.%"},
};

ModelClasses hf_olmo_classes() {
  const auto language_model = [](ConfigReader& config) {
    LanguageModelHeadSpec head;
    const bool tied = config.flag_or({"weight_tying"}, true);
    head.weight = tied ? WeightSharing::shared : WeightSharing::separate;
    config.ignore({"tie_word_embeddings"});  // the class reads weight_tying
    return language_model_head(head);
  };
  return ModelClasses{
      {{"OLMoForCausalLM", language_model}, {"OLMoModelForCausalLM", language_model}}};
}

}  // namespace

std::vector<Family> hf_olmo_families() {
  return {{.model_types = {"hf_olmo"},
           .classes = hf_olmo_classes(),
           .reader = read_hf_olmo,
           .names = NameTable{{kHfOlmo}, {"model.transformer.", "transformer."}, {}},
           .gguf = None("llama.cpp stores it under the name of OLMo")}};
}

}  // namespace headroom::detail
