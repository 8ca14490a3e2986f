// Muse Glimmer (Meta): norms before and after each part, gated attention with unweighted norms of
// query and key heads, RoPE and windows in three of four layers, a norm of the embeddings, and a
// vision tower (transformers, models/muse_glimmer).
#include <fmt/format.h>

#include <cmath>

#include "../decoder.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kFullPeriod = 4;

/// The layers with RoPE: those whose base in `layer_rope_theta` is not 0. The class gives them the
/// model's base, whatever theirs is.
std::vector<bool> read_muse_rotary_layers(ConfigReader& config, const ModelSpec& spec) {
  const std::int64_t layers = spec.decoder->num_layers;
  const std::vector<double> thetas = config.numbers("layer_rope_theta");
  std::vector<bool> rotary;
  if (thetas.empty()) {
    for (std::int64_t left = layers; left-- > 0;) rotary.push_back(left % kFullPeriod != 0);
    return rotary;
  }
  config.require_one_per_layer("layer_rope_theta", thetas.size(), layers,
                               "write one base for each of num_hidden_layers");
  for (const double theta : thetas) {
    if (theta != 0 && theta != spec.position.rope.theta) {
      config.fail("layer_rope_theta",
                  fmt::format("{:g} is not supported; only 0 and rope_theta, {:g}, are", theta,
                              spec.position.rope.theta),
                  "use one base for all layers with RoPE");
    }
    rotary.push_back(theta != 0);
  }
  return rotary;
}

void read_muse_norms(ConfigReader& config, ModelSpec& spec) {
  StackSpec& stack = *spec.decoder;
  const NormSpec unweighted{NormKind::rms_norm, false, stack.norm.eps, NormWeight::none};
  spec.embedding.norm = unweighted;
  stack.norm_placement = NormPlacement::sandwich;
  stack.final_norm->weight = NormWeight::plain;
  stack.output_norm = stack.norm;
  stack.output_norm->eps = config.number_or({"post_norm_eps"}, 1e-8);
  stack.self_attention.query_key_norm = QueryKeyNormSpec{unweighted};
}

void read_muse_glimmer(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.head_dim = 128;
  defaults.num_key_value_heads = 2;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.norm.weight = NormWeight::one_plus;
  defaults.fixed_activation = read_activation(config, {"hidden_activation"}, ActivationKind::silu);
  read_decoder(config, spec, defaults);
  config.expect_flag("attention_bias",
                     false);  // with true, all matrices but the gate's have biases
  read_muse_norms(config, spec);
  StackSpec& stack = *spec.decoder;
  AttentionSpec& attention = stack.self_attention;
  attention.output_gate = ContextGate::sigmoid;
  // The class multiplies queries by the factor, which a scale of the scores equals.
  attention.scale = AttentionScale::fixed;
  attention.fixed_scale = config.number_or({"qk_scale_factor"}, 3.87) /
                          std::sqrt(static_cast<double>(attention.head_dim));
  const double scale = config.number_or({"output_multiplier"}, 0.19611613513818404);
  const double cap = config.number_or({"final_logit_softcapping"}, 20);
  if (auto& head = spec.head.language_model) {
    head->logit_scale = scale;
    head->soft_cap = cap;
  }
  vary_layers(stack, read_muse_rotary_layers(config, spec),
              [](LayerVariant& variant) { variant.self_attention.rotary = false; });
  const std::int64_t last = stack.num_layers - 1;
  const auto windowed = read_windowed_layers(config, stack.num_layers, [&](std::int64_t layer) {
    return (last - layer) % kFullPeriod != 0;
  });
  set_windows(stack, windowed, read_window(config, 2048));
}

constexpr NameRule kMuse[] = {
    {"decoder.layers.attention.gate.%", "layers.{}.self_attn.gate_proj.%"},
};

}  // namespace

std::vector<Family> muse_glimmer_families() {
  return {{.model_types = {"muse_glimmer_text"},
           .classes = llama_classes("MuseGlimmerText"),
           .reader = read_muse_glimmer,
           .names = llama_names({kMuse, sandwich_norm_rules()}),
           .gguf = None("llama.cpp does not support this architecture")},
          wrapper_family({.model_types = {"muse_glimmer"},
                          .classes = {"MuseGlimmerForConditionalGeneration"},
                          .bare_classes = {"MuseGlimmerModel"},
                          .text_type = "muse_glimmer_text",
                          .count_towers = read_muse_glimmer_tower,
                          .tying = HeadTying::whole,
                          .names = wrapped_muse_glimmer_names()})};
}

}  // namespace headroom::detail
