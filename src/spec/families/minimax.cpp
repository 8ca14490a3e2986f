// MiniMax-Text-01 and MiniMax-M1: Mixtral with lightning attention in most layers; residuals start
// at the normed input, scaled (arXiv 2501.08313, 2506.13585; transformers, models/minimax).
#include <fmt/format.h>

#include <algorithm>

#include "../decoder.h"
#include "../family.h"
#include "mixtral.h"

namespace headroom::detail {
namespace {

/// The layers with softmax attention.
std::vector<bool> read_softmax_layers(ConfigReader& config, std::int64_t num_layers) {
  // As published: 1 for softmax attention.
  const std::vector<std::int64_t> published = config.list_of_counts("attn_type_list");
  if (!published.empty()) {
    if (std::ssize(published) != num_layers) {
      config.fail("attn_type_list", "does not have an entry for every layer",
                  "write 0 or 1 for each layer");
    }
    std::vector<bool> softmax(published.size());
    for (std::size_t layer = 0; layer < softmax.size(); ++layer) {
      softmax[layer] = published[layer] != 0;
    }
    return softmax;
  }
  return read_full_attention_layers(config, num_layers, {"linear_attention"},
                                    [](std::int64_t layer) { return layer % 2 == 0; });
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
  lightning.residual_multiplier =
      config.number_or({"linear_attn_alpha_factor", "layernorm_linear_attention_alpha"}, 1);
  lightning.output_multiplier =
      config.number_or({"linear_attn_beta_factor", "layernorm_linear_attention_beta"}, 1);
  return lightning;
}

void read_minimax(ConfigReader& config, ModelSpec& spec) {
  read_mixtral(config, spec);
  StackSpec& stack = *spec.decoder;
  stack.norm_placement = NormPlacement::residual;
  stack.self_attention.residual_multiplier =
      config.number_or({"full_attn_alpha_factor", "layernorm_full_attention_alpha"}, 1);
  stack.self_attention.output_multiplier =
      config.number_or({"full_attn_beta_factor", "layernorm_full_attention_beta"}, 1);
  stack.ffn.residual_multiplier = config.number_or({"mlp_alpha_factor", "layernorm_mlp_alpha"}, 1);
  stack.ffn.experts->scaling_factor =
      config.number_or({"mlp_beta_factor", "layernorm_mlp_beta"}, 1);
  const std::int64_t rotary = config.count_or({"rotary_dim"}, 0);
  const std::int64_t head_dim = stack.self_attention.head_dim;
  if (rotary > head_dim || rotary % 2 != 0) {
    config.fail("rotary_dim", fmt::format("is {}, of heads of {}", rotary, head_dim),
                "use an even number of dimensions up to head_dim");
  }
  if (rotary > 0 && rotary < head_dim) spec.position.rope.rotary_dim = rotary;
  config.expect_flag("postnorm", true);
  config.expect_number("shared_intermediate_size", 0);
  config.ignore({"shared_moe_mode"});
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
  return {{.model_types = {"minimax", "minimax_text_01", "minimax_m1"},
           .classes = either_of(llama_classes("MiniMax"), either_of(llama_classes("MiniMaxText01"),
                                                                    llama_classes("MiniMaxM1"))),
           .reader = read_minimax,
           .names = minimax_names(),
           .gguf = None("llama.cpp has no lightning attention")}};
}

}  // namespace headroom::detail
