// A.X-K2: DeepSeek V3.2's layers with gated norms and a gate on attention's output (SK Telecom;
// transformers, models/axk2).
#include "../deepseek_layers.h"
#include "../family.h"
#include "deepseek_sparse.h"

namespace headroom::detail {
namespace {

/// One matrix makes queries and gates from the compressed queries with their norm and without.
void read_gated_attention(ConfigReader& config, ModelSpec& spec) {
  read_latent_attention(config, spec, {384, 64, 64, 32, 128});
  AttentionSpec& attention = spec.decoder->self_attention;
  if (attention.latent->q_lora_rank == 0) {
    config.fail("q_lora_rank", "is no size, and the gate of attention reads compressed queries",
                "give it a size");
  }
  attention.latent->rereads_queries = true;
  attention.output_gate = ContextGate::sigmoid;
}

/// Without n_group and topk_group, a token may use all experts.
void read_experts_of_class(ConfigReader& config, StackSpec& stack) {
  if (config.has("n_group") != config.has("topk_group")) {
    config.fail("n_group", "and topk_group need each other", "give both or neither");
  }
  const ExpertsSpec experts = read_balanced_experts(
      config, {{"n_routed_experts", "num_experts", "num_local_experts"}, 128, 8}, {512, 2.5});
  spread_experts(config, stack, experts, 1);
}

/// Gates the norms before attention and before experts.
void gate_norms(ConfigReader& config, StackSpec& stack) {
  const std::int64_t rank = config.size_or({"gated_norm_rank"}, 16);
  const auto gate = [&](AttentionSpec& attention, FfnSpec& ffn) {
    attention.norm_gate_rank = rank;
    if (ffn.experts) ffn.norm_gate_rank = rank;
  };
  gate(stack.self_attention, stack.ffn);
  for (LayerVariant& variant : stack.variants) gate(variant.self_attention, variant.ffn);
}

void read_axk2(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek_defaults(131072);
  defaults.norm_eps = 1e-6;
  config.ignore({"head_dim"});  // the class reads qk_rope_head_dim and qk_nope_head_dim instead
  read_decoder(config, spec, defaults);
  read_gated_attention(config, spec);
  read_experts_of_class(config, *spec.decoder);
  read_indexer(config, spec, {16});
  gate_norms(config, *spec.decoder);
}

/// As published, then as in the class.
constexpr NameRule kGatedNames[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.input_layernorm.norm.%"},
    {"decoder.layers.attention_norm.gate.up.%", "layers.{}.input_layernorm.W_down.%"},
    {"decoder.layers.attention_norm.gate.down.%", "layers.{}.input_layernorm.W_up.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_attention_layernorm.norm.%"},
    {"decoder.layers.mlp_norm.gate.up.%", "layers.{}.post_attention_layernorm.W_down.%"},
    {"decoder.layers.mlp_norm.gate.down.%", "layers.{}.post_attention_layernorm.W_up.%"},
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_b_proj.%",
     part(0, Stacking::per_query_head)},
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.q_b_proj.%",
     part(1, Stacking::per_query_head)},
    {"decoder.layers.attention_norm.gate.up.%", "layers.{}.input_layernorm.mlp.fc1.%"},
    {"decoder.layers.attention_norm.gate.down.%", "layers.{}.input_layernorm.mlp.fc2.%"},
    {"decoder.layers.mlp_norm.gate.up.%", "layers.{}.post_attention_layernorm.mlp.fc1.%"},
    {"decoder.layers.mlp_norm.gate.down.%", "layers.{}.post_attention_layernorm.mlp.fc2.%"},
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_gate_proj.%",
     part(0, Stacking::per_query_head)},
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.q_gate_proj.%",
     part(1, Stacking::per_query_head)},
};

}  // namespace

std::vector<Family> ax_k2_families() {
  return {{.model_types = {"axk2"},
           .classes = llama_classes("AXK2"),
           .reader = read_axk2,
           .names = deepseek_names(kGatedNames),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
