// Ling and Ring with lightning attention: 2.0 beside the attention of BailingMoE V2, 2.5 and 2.6
// beside latent attention, in the last layer of every group (arXiv 2510.19338; inclusionAI,
// modeling_bailing_moe_linear_v2.py and modeling_bailing_moe_v2_5.py).
#include <fmt/format.h>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "bailing.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kChunk = 64;  // fla-core, ops/simple_gla/chunk.py

/// As many heads as softmax attention has queries, with norms and RoPE; one norm for each of
/// `group_norm_size` groups of heads.
AttentionSpec read_ling_lightning(ConfigReader& config, const AttentionSpec& heads,
                                  const StackSpec& stack, const RopeSpec& rope) {
  StateSpaceSpec spec;
  spec.kind = StateSpaceKind::lightning;
  spec.num_heads = heads.num_attention_heads;
  spec.num_groups = spec.num_heads;
  spec.head_dim = heads.head_dim;
  spec.state_size = heads.head_dim;
  spec.chunk_size = kChunk;
  const std::int64_t groups = config.size_or({"group_norm_size"}, 4);
  if (spec.num_heads % groups != 0) {
    config.fail("group_norm_size",
                fmt::format("{} does not divide {} heads", groups, spec.num_heads),
                "use a divisor of num_attention_heads");
  }
  spec.gated_norm = GatedNormSpec{stack.norm, groups, GatedNormOrder::norm_first};
  AttentionSpec lightning;
  lightning.kind = AttentionKind::state_space;
  lightning.state_space = spec;
  lightning.causal = true;
  lightning.query_key_norm = QueryKeyNormSpec{stack.norm};
  lightning.rope = rope;
  config.expect_flag("use_qk_norm", true);
  config.expect_flag("use_qkv_bias", false);
  config.expect_flag("use_bias", false);
  config.expect_flag("linear_silu", false);
  config.expect_flag("use_linear_silu", false);
  config.expect_flag("linear_rope", true);
  return lightning;
}

/// Softmax attention is in the last layer of every group, and behind the last whole one.
void spread_lightning(ConfigReader& config, StackSpec& stack, const AttentionSpec& lightning) {
  const std::int64_t group = config.size_or({"layer_group_size"}, 5);
  const std::int64_t grouped = stack.num_layers / group * group;
  const std::vector<bool> full = read_full_attention_layers(
      config, stack.num_layers, {"linear_attention"},
      [&](std::int64_t layer) { return (layer + 1) % group == 0 || layer >= grouped; });
  vary_layers(stack, full, [&](LayerVariant& variant) { variant.self_attention = lightning; });
}

void read_bailing_linear_v2(ConfigReader& config, ModelSpec& spec) {
  read_bailing_v2(config, spec);
  StackSpec& stack = *spec.decoder;
  spread_lightning(config, stack,
                   read_ling_lightning(config, stack.self_attention, stack, spec.position.rope));
}

constexpr NameRule kLightning[] = {
    {"decoder.layers.mixer.query.%", "layers.{}.attention.query_key_value.%", part(0)},
    {"decoder.layers.mixer.key.%", "layers.{}.attention.query_key_value.%", part(1)},
    {"decoder.layers.mixer.value.%", "layers.{}.attention.query_key_value.%", part(2)},
    {"decoder.layers.mixer.query_norm.%", "layers.{}.attention.query_layernorm.%"},
    {"decoder.layers.mixer.key_norm.%", "layers.{}.attention.key_layernorm.%"},
    {"decoder.layers.mixer.norm.%", "layers.{}.attention.g_norm.%"},
    {"decoder.layers.mixer.gate.%", "layers.{}.attention.g_proj.%"},
    {"decoder.layers.mixer.out.%", "layers.{}.attention.dense.%"},
};

}  // namespace

std::span<const NameRule> ling_lightning_rules() { return kLightning; }

ModelClasses bailing_v2_5_classes() { return llama_classes("BailingMoeV2_5"); }

void read_bailing_v2_5(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek_defaults(32768);
  defaults.num_key_value_heads = 4;
  defaults.head_dim = 128;
  defaults.rope.theta = 600000;
  defaults.rope.partial_rotary_factor = 0.5;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  const AttentionSpec heads = stack.self_attention;
  RopeSpec& rope = spec.position.rope;
  RopeSpec of_lightning = rope;
  of_lightning.layout = RopeLayout::half_split;
  read_latent_attention(config, spec, {0, 128, 128, 64});
  const std::int64_t rotary_dim = rope.rotary_dim == 0 ? heads.head_dim : rope.rotary_dim;
  if (stack.self_attention.latent->qk_rope_head_dim != rotary_dim) {
    config.fail("qk_rope_head_dim",
                fmt::format("differs from the {} dimensions that RoPE turns", rotary_dim),
                "use partial_rotary_factor · head_dim, as the class does");
  }
  rope.rotary_dim = 0;  // all of the rotary key
  spread_lightning(config, stack, read_ling_lightning(config, heads, stack, of_lightning));
  read_bailing_v2_experts(config, spec);
  config.expect_flag("rope_interleave", true);
  config.expect_number("rotary_dim", static_cast<double>(rotary_dim));
  config.expect_text("scoring_func", "sigmoid");
  config.expect_text("topk_method", "noaux_tc");
  // The class has no windows, and no dropout at these places.
  config.ignore({"sliding_window", "max_window_layers", "embedding_dropout", "output_dropout"});
}

std::vector<Family> bailing_linear_families() {
  return {
      {.model_types = {"bailing_moe_linear"},
       .classes = either_of(llama_classes("BailingMoeLinearV2"), llama_classes("BailingMoeLinear")),
       .reader = read_bailing_linear_v2,
       .names = bailing_names(kLightning),
       .gguf = None("llama.cpp has no lightning attention")},
      {.model_types = {"bailing_moe_v2_5"},
       .classes = bailing_v2_5_classes(),
       .reader = read_bailing_v2_5,
       .names = ling_names(),
       .gguf = None("llama.cpp has no lightning attention")}};
}

}  // namespace headroom::detail
