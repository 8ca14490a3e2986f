// GLM-4: Llama with interleaved RoPE on half of each head; the later version has norms before and
// after each part (arXiv 2406.12793).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_glm_like(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 2;
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1.5625e-7;
  defaults.rope.partial_rotary_factor = 0.5;
  defaults.rope.layout = RopeLayout::interleaved;
  defaults.bias = BiasRule::key_for_query_key_value;
  defaults.bias_when_absent = true;
  read_decoder(config, spec, defaults);
  config.ignore({"resid_pdrop"});
}

void read_glm(ConfigReader& config, ModelSpec& spec) { read_glm_like(config, spec); }

void read_glm4(ConfigReader& config, ModelSpec& spec) {
  read_glm_like(config, spec);
  spec.decoder->norm_placement = NormPlacement::sandwich;
}

/// GLM-4 with RoPE in three axes, which are equal for text; heads of hidden_size / heads.
void read_glm4v_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 2;
  defaults.max_position_embeddings = 32768;
  defaults.norm_eps = 1e-5;
  defaults.rope.layout = RopeLayout::interleaved;
  defaults.bias = BiasRule::query_key_value;
  read_decoder(config, spec, defaults);
  config.ignore({"attention_bias"});  // the class has these biases, whatever its config says
  spec.decoder->norm_placement = NormPlacement::sandwich;
}

/// Files of GLM-4.1V and GLM-OCR give RoPE's sections, and GLM-OCR's end in a layer for multi-token
/// prediction.
void finish_glm4(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_prediction_layers(metadata, config);
  std::vector<std::int64_t> sections = metadata.counts("rope.dimension_sections");
  constexpr std::size_t kAxes = 3;
  if (sections.size() < kAxes) return finish_partial_rotary(metadata, config);
  sections.resize(kAxes);
  ConfigDraft rope = config.add_object("rope_parameters");
  rope.set_text("rope_type", "default");
  rope.copy(metadata, "rope.freq_base", "rope_theta");
  rope.set_number("partial_rotary_factor", gguf_rotary_fraction(metadata));
  rope.set_counts("mrope_section", sections);
}

}  // namespace

std::vector<Family> glm_families() {
  return {{.model_types = {"glm"},
           .classes = llama_classes("Glm"),
           .reader = read_glm,
           .names = llama_names({glm_rules()}),
           .gguf = GgufForm(GgufConversion::none, {})},
          {.model_types = {"glm4v_text"},  // inside GLM-4.1V
           .classes = llama_classes("Glm4vText"),
           .reader = read_glm4v_text,
           .names = llama_names({glm_rules()}),
           .gguf = None("llama.cpp stores it under the name of GLM-4")},
          {.model_types = {"glm4"},
           .classes = llama_classes("Glm4"),
           .reader = read_glm4,
           .names = llama_names({glm_rules()}),
           .gguf = GgufForm(GgufConversion::split_pairs,
                            {{.name = "glm4",
                              .common = gguf_rms_norm_keys(),
                              .flags = {{"blk.0.attn_q.bias", "attention_bias"}},
                              .head_dim = GgufHeadDim::always,
                              .finish = finish_glm4}})}};
}

}  // namespace headroom::detail
