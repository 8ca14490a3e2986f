// DBRX: grouped-query attention with clipped projections, LayerNorm without biases, 16 experts of
// which 4 run (Databricks, 2024; transformers, models/dbrx).
#include "../common_keys.h"
#include "../family.h"
#include "../rope.h"

namespace headroom::detail {
namespace {

void read_dbrx_attention(ConfigReader& config, ModelSpec& spec, StackSpec& stack) {
  const std::int64_t heads = config.size({"n_heads", "num_attention_heads"});
  stack.self_attention = multi_head_attention(config, "n_heads", heads, spec.hidden_size);
  ConfigReader own = config.object_or_empty("attn_config");
  const std::int64_t absent =
      config.has("attn_config") ? 1 : config.size_or({"num_key_value_heads"}, 1);
  stack.self_attention.num_key_value_heads = own.size_or({"kv_n_heads"}, absent);
  stack.self_attention.clip_qkv = own.number_or({"clip_qkv"}, 0);
  stack.self_attention.causal = true;
  stack.self_attention.softmax = SoftmaxPrecision::float32;
  stack.dropout.attention_probs = own.probability_or({"attn_pdrop"}, 0);
  RopeDefaults rope;
  rope.theta = own.number_or({"rope_theta"}, rope.theta);
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings =
      config.size_or({"max_seq_len", "max_position_embeddings"}, 2048);
  spec.position.rope = read_rope(config, spec.position, stack.self_attention.head_dim, rope);
  own.ignore({"model_type"});
  own.finish();
  config.expect_number("num_key_value_heads",
                       static_cast<double>(stack.self_attention.num_key_value_heads));
}

void read_dbrx_experts(ConfigReader& config, std::int64_t hidden_size, StackSpec& stack) {
  ConfigReader own = config.object_or_empty("ffn_config");
  if (own.size_or({"hidden_size"}, hidden_size) != hidden_size) {
    own.fail("hidden_size", "is not d_model", "use the same width in both");
  }
  ExpertsSpec experts;
  experts.num_experts = own.size_or({"moe_num_experts"}, 4);
  experts.num_experts_per_tok = own.size_or({"moe_top_k"}, 1);
  experts.intermediate_size = own.size_or({"ffn_hidden_size"}, 3584);
  experts.normalise = !own.is_null("moe_normalize_expert_weights") &&
                      own.number_or({"moe_normalize_expert_weights"}, 1) > 0;
  ActivationKind activation = ActivationKind::silu;
  if (auto named = own.object("ffn_act_fn")) {
    activation = read_activation(*named, {"name"}, activation);
    named->finish();
  }
  stack.ffn = {FfnKind::gated, experts.intermediate_size, activation, false};
  stack.ffn.experts = experts;
  own.ignore({"moe_jitter_eps", "moe_loss_weight", "model_type"});
  own.finish();
}

void read_dbrx(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"d_model", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  StackSpec stack;
  stack.num_layers = config.layers({"n_layers", "num_hidden_layers"});
  read_dbrx_attention(config, spec, stack);
  read_dbrx_experts(config, spec.hidden_size, stack);
  stack.norm_placement = NormPlacement::pre;
  stack.norm = {NormKind::layer_norm, false, 1e-5};
  stack.final_norm = stack.norm;
  stack.dropout.embedding = config.probability_or({"emb_pdrop"}, 0);
  stack.dropout.attention_output = config.probability_or({"resid_pdrop"}, 0);
  stack.dropout.ffn_output = stack.dropout.attention_output;
  spec.decoder = stack;
  config.ignore({"output_router_logits"});
}

ModelClasses dbrx_classes() {
  const auto language_model = [](ConfigReader& config) {
    return language_model_head(language_model_of(config, {.float32_logits = true}));
  };
  return ModelClasses{{{"DbrxForCausalLM", language_model}, {"DbrxModel", no_head}}};
}

constexpr NameRule kDbrx[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"decoder.layers.attention_norm.%", "blocks.{}.norm_attn_norm.norm_1.%"},
    {"decoder.layers.attention.query.%", "blocks.{}.norm_attn_norm.attn.Wqkv.%", part(0)},
    {"decoder.layers.attention.key.%", "blocks.{}.norm_attn_norm.attn.Wqkv.%", part(1)},
    {"decoder.layers.attention.value.%", "blocks.{}.norm_attn_norm.attn.Wqkv.%", part(2)},
    {"decoder.layers.attention.output.%", "blocks.{}.norm_attn_norm.attn.out_proj.%"},
    {"decoder.layers.mlp_norm.%", "blocks.{}.norm_attn_norm.norm_2.%"},
    {"decoder.layers.mlp.router.%", "blocks.{}.ffn.router.layer.%"},
    {"decoder.layers.mlp.experts.gate.weight", "blocks.{}.ffn.experts.mlp.w1", stacked_experts()},
    {"decoder.layers.mlp.experts.up.weight", "blocks.{}.ffn.experts.mlp.v1", stacked_experts()},
    {"decoder.layers.mlp.experts.down.weight", "blocks.{}.ffn.experts.mlp.w2",
     stacked_experts(transposed())},
    {"decoder.final_norm.%", "norm_f.%"},
    {"head.language_model.%", "lm_head.%"},
};

constexpr GgufKey kDbrxKeys[] = {
    {"context_length", "max_seq_len"},
    {"embedding_length", "d_model"},
    {"block_count", "n_layers"},
    {"attention.head_count", "n_heads"},
};

void finish_dbrx(const GgufMetadataReader& metadata, ConfigDraft& config) {
  ConfigDraft attention = config.add_object("attn_config");
  attention.copy(metadata, "attention.head_count_kv", "kv_n_heads");
  attention.copy(metadata, "attention.clamp_kqv", "clip_qkv");
  attention.copy(metadata, "rope.freq_base", "rope_theta");
  ConfigDraft experts = config.add_object("ffn_config");
  experts.copy(metadata, "feed_forward_length", "ffn_hidden_size");
  experts.copy(metadata, "expert_count", "moe_num_experts");
  experts.copy(metadata, "expert_used_count", "moe_top_k");
}

// Elsewhere the norm of this name is attention's.
constexpr NameRule kGgufDbrx[] = {{"layers.mlp_norm.%", "blk.{}.attn_output_norm.%"}};

}  // namespace

std::vector<Family> dbrx_families() {
  return {
      {.model_types = {"dbrx"},
       .classes = dbrx_classes(),
       .reader = read_dbrx,
       .names = NameTable{{kDbrx}, {"transformer."}, {{"lm_head.weight", ExtraKind::tied_copy}}},
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "dbrx",
                          .common = kDbrxKeys,
                          .head_dim = GgufHeadDim::never,
                          .finish = finish_dbrx}},
                        {kGgufDbrx})}};
}

}  // namespace headroom::detail
