// MiniMax-Text-01 and MiniMax-M1: Mixtral with lightning attention in most layers; residuals start
// at the normed input, scaled (arXiv 2501.08313, 2506.13585; transformers, models/minimax).
#include <algorithm>

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// Marks the layers with softmax attention.
std::vector<bool> read_softmax_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::vector<std::string> types = config.texts("layer_types");
  std::vector<bool> softmax;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) softmax.push_back(layer % 2 == 0);
  if (types.empty()) return softmax;
  const bool known = std::ranges::all_of(types, [](const std::string& type) {
    return type == "full_attention" || type == "linear_attention";
  });
  if (!known || std::ssize(types) != num_layers) {
    config.fail("layer_types", "does not name full_attention or linear_attention for every layer",
                "name num_hidden_layers of them");
  }
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    softmax[layer] = types[layer] == "full_attention";
  }
  return softmax;
}

AttentionSpec read_lightning(ConfigReader& config, const AttentionSpec& attention) {
  StateSpaceSpec spec;
  spec.kind = StateSpaceKind::lightning;
  spec.num_heads = attention.num_attention_heads;
  spec.num_groups = spec.num_heads;
  spec.head_dim = attention.head_dim;
  spec.state_size = attention.head_dim;
  spec.chunk_size = config.size_or({"block_size"}, 256);
  spec.gated_norm = GatedNormSpec{{NormKind::rms_norm, false, 1e-6}};
  AttentionSpec lightning;
  lightning.kind = AttentionKind::state_space;
  lightning.state_space = spec;
  lightning.causal = true;
  lightning.residual_multiplier = config.number_or({"linear_attn_alpha_factor"}, 1);
  lightning.output_multiplier = config.number_or({"linear_attn_beta_factor"}, 1);
  return lightning;
}

void read_minimax(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 1e6;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.norm_placement = NormPlacement::residual;
  stack.self_attention.window = read_window(config, 0);
  stack.self_attention.residual_multiplier = config.number_or({"full_attn_alpha_factor"}, 1);
  stack.self_attention.output_multiplier = config.number_or({"full_attn_beta_factor"}, 1);
  ExpertsSpec experts = read_experts(config, {{"num_local_experts", "num_experts"}, 8, 2});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.normalise = true;
  stack.ffn.experts = experts;
  stack.ffn.residual_multiplier = config.number_or({"mlp_alpha_factor"}, 1);
  // The experts' sum has no scale of its own here; published models have 1.
  config.expect_number("mlp_beta_factor", 1);
  const AttentionSpec lightning = read_lightning(config, stack.self_attention);
  vary_layers(stack, read_softmax_layers(config, stack.num_layers),
              [&](LayerVariant& variant) { variant.self_attention = lightning; });
}

// Query, key and value of a head stand together.
constexpr NameRule kMiniMax[] = {
    {"decoder.layers.mixer.query.%", "layers.{}.self_attn.qkv_proj.%",
     part(0, Stacking::per_query_head)},
    {"decoder.layers.mixer.key.%", "layers.{}.self_attn.qkv_proj.%",
     part(1, Stacking::per_query_head)},
    {"decoder.layers.mixer.value.%", "layers.{}.self_attn.qkv_proj.%",
     part(2, Stacking::per_query_head)},
    {"decoder.layers.mixer.norm.%", "layers.{}.self_attn.norm.%"},
    {"decoder.layers.mixer.gate.%", "layers.{}.self_attn.output_gate.%"},
    {"decoder.layers.mixer.out.%", "layers.{}.self_attn.out_proj.%"},
};

NameTable minimax_names() {
  NameTable names = llama_names({kMiniMax, mixtral_expert_rules()});
  for (const char* const buffer : {"slope_rate", "query_decay", "key_decay", "diagonal_decay"}) {
    names.extras.push_back({buffer, ExtraKind::decay_buffer});
  }
  return names;
}

}  // namespace

std::vector<Family> minimax_families() {
  return {{.model_types = {"minimax"},
           .classes = llama_classes("MiniMax"),
           .reader = read_minimax,
           .names = minimax_names(),
           .gguf = None("llama.cpp has no lightning attention")}};
}

}  // namespace headroom::detail
