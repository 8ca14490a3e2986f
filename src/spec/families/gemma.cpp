// Gemma, Gemma 2 and the text model of Gemma 3: norms by 1 + w, scaled embeddings, GeGLU; since
// Gemma 2 norms before and after each part, soft caps and windows (arXiv 2403.08295, 2408.00118,
// 2503.19786).
#include "gemma.h"

#include <cmath>

#include "../decoder.h"
#include "../family.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

enum class Generation { first, second, third };

void read_gemma_like(ConfigReader& config, ModelSpec& spec, Generation generation) {
  const bool third = generation == Generation::third;
  DecoderDefaults defaults;
  defaults.max_position_embeddings = third ? 131072 : 8192;
  defaults.head_dim = 256;
  defaults.norm = {NormKind::rms_norm, false, 1e-6, NormWeight::one_plus};
  defaults.activation = ActivationKind::gelu_tanh;
  defaults.rope.theta = third ? 1e6 : 10000;
  defaults.rope.by_layer_type = third;
  if (third) {
    // Published text_configs omit values that equal the class's defaults.
    defaults.sizes = {2304, 9216, 26, 8, 262208};
    defaults.num_key_value_heads = 4;
  }
  // hidden_activation takes precedence over hidden_act.
  if (config.has("hidden_activation")) config.ignore({"hidden_act"});
  read_decoder(config, spec, defaults);
  spec.embedding.scale = EmbeddingScale::sqrt_hidden_size;
}

struct SoftCaps {
  double attention;
  double logits;
};

/// Additions of Gemma 2: attention scale, soft caps, and norms on both sides.
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

void read_gemma(ConfigReader& config, ModelSpec& spec) {
  read_gemma_like(config, spec, Generation::first);
  // The class computes the tanh approximation where published configs say gelu.
  ActivationKind& activation = spec.decoder->ffn.activation;
  const bool says_gelu = !config.has("hidden_activation") && activation == ActivationKind::gelu;
  if (says_gelu) activation = ActivationKind::gelu_tanh;
}

}  // namespace

void read_gemma2(ConfigReader& config, ModelSpec& spec) {
  read_gemma_like(config, spec, Generation::second);
  read_caps(config, spec, {50, 30});
  const WindowSpec window = read_window(config, 4096);
  config.ignore({"sliding_window_size"});  // published beside sliding_window, which the class reads
  const auto even = [](std::int64_t layer) { return layer % 2 == 0; };
  StackSpec& stack = *spec.decoder;
  set_windows(stack, read_windowed_layers(config, stack.num_layers, even), window);
}

namespace {

/// VaultGemma: Gemma 2 without norms after the parts (arXiv 2510.15001).
void read_vaultgemma(ConfigReader& config, ModelSpec& spec) {
  read_gemma2(config, spec);
  spec.decoder->norm_placement = NormPlacement::pre;
}

void read_gemma3_text(ConfigReader& config, ModelSpec& spec) {
  constexpr double kLocalTheta = 10000;
  read_gemma_like(config, spec, Generation::third);
  read_caps(config, spec, {0, 0});
  StackSpec& stack = *spec.decoder;
  stack.self_attention.soft_cap = 0;  // the class reads the key but applies no cap
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  const std::int64_t pattern =
      config.size_or({"sliding_window_pattern", "_sliding_window_pattern"}, 6);
  const auto rule = [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; };
  const std::vector<bool> windowed = read_windowed_layers(config, stack.num_layers, rule);
  // EmbeddingGemma (arXiv 2509.20354) sees both sides of a token, in windows half to each side.
  const bool both_sides = config.flag_or({"use_bidirectional_attention"}, false);
  stack.self_attention.causal = !both_sides;
  WindowSpec window = read_window(config, 4096);
  if (both_sides) window = {WindowKind::centred, window.size / 2};
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

ModelClasses gemma3_classes() {
  const ModelClasses text = {{{"Gemma3TextModel", no_head},
                              {"Gemma3TextForSequenceClassification", last_token_classifier}}};
  return either_of(decoder_classes("Gemma3", {.tied = true, .float32_logits = true}), text);
}

// The class with the head of its text model; the others have their own.
constexpr std::string_view kGemma3 = "Gemma3ForConditionalGeneration";

/// Ties the head as the whole model says, else in transformers 5 always; files of transformers 4
/// leave it to the text model.
void tie_gemma3_head(ConfigReader& config, LanguageModelHeadSpec& head) {
  const std::string version = config.text_or({"transformers_version"}, "");
  const bool by_text = version.empty() || version.starts_with("4.");
  if (by_text && !config.has("tie_word_embeddings")) return;
  const bool tied = config.flag_or({"tie_word_embeddings"}, true);
  head.weight = tied ? WeightSharing::shared : WeightSharing::separate;
}

void read_gemma3(ConfigReader& config, ModelSpec& spec) {
  HeadSpec head = spec.head;
  read_text_config(config, spec, gemma3_classes(), [&](ConfigReader& text, ModelSpec& of_text) {
    read_gemma3_text(text, of_text);
    read_padding_of_text(text, head);
  });
  if (spec.architecture != kGemma3) spec.head = head;
  if (spec.head.language_model) {
    spec.head.language_model->soft_cap = 0;  // this class applies none
    tie_gemma3_head(config, *spec.head.language_model);
  }
  note_absent_tower(config, AbsentTower::default_sizes, spec);
  read_gemma3_tower(config, spec);
  read_tower_tokens(config, spec);
  config.ignore({"tie_word_embeddings"});
}

NameTable gemma_names() {
  return {{gemma3_projector_rules(), clip_tower_rules(), unwrapped_clip_tower_rules(),
           sandwich_norm_rules(), query_key_norm_rules(), llama_rules()},
          {"model.", "language_model.model.", "model.language_model.", "vision_tower.",
           "model.vision_tower."},
          {{"lm_head.weight", ExtraKind::tied_copy},
           {"language_model.lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace

std::vector<Family> gemma_families() {
  return {{.model_types = {"gemma"},
           .classes = decoder_classes("Gemma", {.tied = true, .float32_logits = true}),
           .reader = read_gemma,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::norms_plus_one,
                            {{.name = "gemma",
                              .common = gguf_rms_norm_keys(),
                              .constants = {{"hidden_act", R"("gelu_pytorch_tanh")"}},
                              .tie = GgufTie::always,
                              .head_dim = GgufHeadDim::always}})},
          {.model_types = {"vaultgemma"},
           .classes = decoder_classes("VaultGemma", {.tied = true, .float32_logits = true}),
           .reader = read_vaultgemma,
           .names = gemma_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"gemma2"},
           .classes = decoder_classes("Gemma2", {.tied = true, .float32_logits = true}),
           .reader = read_gemma2,
           .names = gemma_names(),
           .gguf = GgufForm(GgufConversion::norms_plus_one,
                            {{.name = "gemma2",
                              .common = gguf_rms_norm_keys(),
                              .own = {{"attention.sliding_window", "sliding_window"},
                                      {"attn_logit_softcapping", "attn_logit_softcapping"},
                                      {"final_logit_softcapping", "final_logit_softcapping"}},
                              .constants = {{"hidden_activation", R"("gelu_pytorch_tanh")"}},
                              .tie = GgufTie::always,
                              .head_dim = GgufHeadDim::always}})},
          {.model_types = {"gemma3_text"},
           .classes = gemma3_classes(),
           .reader = read_gemma3_text,
           .names = gemma_names(),
           .gguf = GgufForm(GgufConversion::norms_plus_one,
                            {{.name = "gemma3",
                              .common = gguf_rms_norm_keys(),
                              .own = {{"attention.sliding_window", "sliding_window"}},
                              .constants = {{"hidden_activation", R"("gelu_pytorch_tanh")"}},
                              .tie = GgufTie::always,
                              .head_dim = GgufHeadDim::always,
                              .finish = finish_windows},
                             {.name = "gemma-embedding",
                              .common = gguf_rms_norm_keys(),
                              .own = {{"attention.sliding_window", "sliding_window"}},
                              .constants = {{"architectures", R"(["Gemma3TextModel"])"},
                                            {"hidden_activation", R"("gelu_pytorch_tanh")"},
                                            {"use_bidirectional_attention", "true"}},
                              .tie = GgufTie::always,
                              .head_dim = GgufHeadDim::always,
                              .finish = finish_windows}})},
          {.model_types = {"gemma3"},
           .classes = {{{std::string(kGemma3), no_head},
                        {"Gemma3Model", no_head},
                        {"Gemma3ForSequenceClassification", last_token_classifier}}},
           .reader = read_gemma3,
           .names = gemma_names(),
           .gguf = None("GGUF stores the vision tower in a separate file")}};
}

}  // namespace headroom::detail
