// OLMo: norms without weights, clamped projections. OLMo 2: norms after each part, one norm over
// all queries and one over all keys (arXiv 2402.00838, 2501.00656).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_olmo(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm = {NormKind::layer_norm, false, 1e-5, NormWeight::none};
  defaults.norm_eps = 1e-5;
  read_decoder(config, spec, defaults);
  spec.decoder->self_attention.clip_qkv = config.number_or({"clip_qkv"}, 0);
}

void read_olmo2(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm_eps = 1e-5;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.norm_placement = NormPlacement::output;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm, QueryKeyNormScope::all_heads};
}

constexpr NameRule kOlmo2[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.post_feedforward_layernorm.%"},
};

}  // namespace

std::vector<Family> olmo_families() {
  return {
      {.model_types = {"olmo"},
       .classes = llama_classes("Olmo"),
       .reader = read_olmo,
       .names = llama_names(),
       .gguf = GgufForm(GgufConversion::interleaved_heads,
                        {{.name = "olmo",
                          .common = gguf_layer_norm_keys(),
                          .own = {{"attention.clamp_kqv", "clip_qkv"}},
                          .head_dim = GgufHeadDim::never}})},
      {.model_types = {"olmo2"},
       .classes = llama_classes("Olmo2"),
       .reader = read_olmo2,
       .names = llama_names({kOlmo2, query_key_norm_rules()}),
       .gguf = GgufForm(
           GgufConversion::none,
           {{.name = "olmo2", .common = gguf_rms_norm_keys(), .head_dim = GgufHeadDim::never}})}};
}

}  // namespace headroom::detail
