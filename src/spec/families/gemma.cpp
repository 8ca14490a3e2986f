// Gemma, Gemma 2 and the text of Gemma 3: norms by 1 + w, scaled embeddings, GeGLU; from 2 on norms
// before and after, soft caps and windows (arXiv 2403.08295, 2408.00118, 2503.19786).
#include <cmath>

#include "../decoder.h"
#include "../vision.h"

namespace headroom::detail {
namespace {

void read_gemma_like(ConfigReader& config, ModelSpec& spec, const std::string& prefix) {
  const bool third = prefix == "Gemma3";
  DecoderFamily family;
  family.prefix = prefix;
  family.tied = true;
  family.max_position_embeddings = third ? 131072 : 8192;
  family.head_dim = 256;
  family.norm = {NormKind::rms_norm, false, 1e-6, NormWeight::one_plus};
  family.activation = ActivationKind::gelu_tanh;
  family.rope.theta = third ? 1e6 : 10000;
  family.rope.by_layer_type = third;
  if (third) {
    // Published text configs inside a multimodal one leave out what equals the class's default.
    family.sizes = {2304, 9216, 26, 8, 262208};
    family.num_key_value_heads = 4;
  }
  // hidden_activation, where both are given, is the one that counts.
  if (config.has("hidden_activation")) config.ignore({"hidden_act"});
  read_decoder(config, spec, family);
  spec.embedding.scale = EmbeddingScale::sqrt_hidden_size;
}

struct SoftCaps {
  double attention;
  double logits;
};

/// What came with Gemma 2: the scale of the scores, soft caps, and norms on both sides.
void read_caps(ConfigReader& config, ModelSpec& spec, SoftCaps absent) {
  constexpr double kScalarWhenAbsent = 256;
  StackSpec& stack = *spec.decoder;
  AttentionSpec& attention = stack.self_attention;
  attention.scale = AttentionScale::fixed;
  attention.fixed_scale =
      1 / std::sqrt(config.number_or({"query_pre_attn_scalar"}, kScalarWhenAbsent));
  const auto cap = [&](std::string_view key, double otherwise) {
    return config.number_or({key}, config.is_null(key) ? 0 : otherwise);
  };
  attention.soft_cap = cap("attn_logit_softcapping", absent.attention);
  const double logits = cap("final_logit_softcapping", absent.logits);
  if (spec.head.language_model) spec.head.language_model->soft_cap = logits;
  stack.norm_placement = NormPlacement::sandwich;
}

}  // namespace

void read_gemma(ConfigReader& config, ModelSpec& spec) {
  read_gemma_like(config, spec, "Gemma");
  // The class computes the tanh approximation whatever hidden_act says (published configs: gelu).
  if (!config.has("hidden_activation")) spec.decoder->ffn.activation = ActivationKind::gelu_tanh;
}

void read_gemma2(ConfigReader& config, ModelSpec& spec) {
  read_gemma_like(config, spec, "Gemma2");
  read_caps(config, spec, {50, 30});
  const WindowSpec window = read_window(config, 4096);
  const auto even = [](std::int64_t layer) { return layer % 2 == 0; };
  StackSpec& stack = *spec.decoder;
  set_windows(stack, read_windowed_layers(config, stack.num_layers, even), window);
}

void read_gemma3_text(ConfigReader& config, ModelSpec& spec) {
  constexpr double kLocalTheta = 10000;
  read_gemma_like(config, spec, "Gemma3");
  read_caps(config, spec, {0, 0});
  StackSpec& stack = *spec.decoder;
  stack.self_attention.soft_cap = 0;  // the class reads the key, and hands it to no attention
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  const std::int64_t pattern =
      config.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  const auto rule = [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; };
  const std::vector<bool> windowed = read_windowed_layers(config, stack.num_layers, rule);
  const WindowSpec window = read_window(config, 4096);
  RopeSpec local;
  local.theta = config.number_or({"rope_local_base_freq"}, kLocalTheta);
  const std::int64_t head_dim = stack.self_attention.head_dim;
  local = read_rope_of(config, "sliding_attention", spec.position, head_dim, local);
  spec.position.rope =
      read_rope_of(config, "full_attention", spec.position, head_dim, spec.position.rope);
  std::vector<bool> full = windowed;
  full.flip();
  vary_layers(stack, full, [&](LayerVariant& variant) {
    variant.self_attention.window = window;
    variant.self_attention.rope = local;
  });
}

void read_gemma3(ConfigReader& config, ModelSpec& spec) {
  auto text = read_text_config(config, spec, "Gemma3ForConditionalGeneration");
  text.ignore({"model_type", "architectures"});
  read_gemma3_text(text, spec);
  read_common_keys(text, spec);
  text.finish();
  spec.architecture = "Gemma3ForConditionalGeneration";
  count_siglip_tower(config, spec);
  config.ignore({"mm_tokens_per_image", "boi_token_index", "eoi_token_index", "image_token_index",
                 "image_token_id", "boi_token_id", "eoi_token_id", "tie_word_embeddings"});
}

}  // namespace headroom::detail
