// Mistral Large 4: DeepSeek's latent attention without compressed queries, with an indexer in each
// layer, RoPE in three of four layers, trained temperatures, and latent vectors that layers may
// share; Pixtral's tower (Mistral; transformers, models/mistral_large4).
#include <fmt/format.h>

#include <span>
#include <vector>

#include "../deepseek_layers.h"
#include "../family.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"
#include "deepseek_sparse.h"

namespace headroom::detail {
namespace {

constexpr TemperatureTuning kOfHeads{.from = TemperatureTuning::From::of_heads};

/// A layer without RoPE has as many dimensions, but no rotary key beside its latent vector.
void drop_rope(AttentionSpec& attention) {
  LatentAttentionSpec& latent = *attention.latent;
  attention.rotary = false;
  latent.qk_nope_head_dim += latent.qk_rope_head_dim;
  latent.qk_rope_head_dim = 0;
}

/// The layers that project latent vectors of their own; the others read those of
/// `kv_source_layers`.
std::vector<bool> read_own_latents(ConfigReader& config, std::int64_t num_layers) {
  const std::vector<std::int64_t> sources = config.counts("kv_source_layers");
  std::vector<bool> own(static_cast<std::size_t>(num_layers), true);
  if (sources.empty()) return own;
  config.require_one_per_layer("kv_source_layers", sources.size(), num_layers,
                               "name a layer for each of num_hidden_layers");
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const std::int64_t source = sources[at];
    if (source > layer || sources[static_cast<std::size_t>(source)] != source) {
      config.fail("kv_source_layers",
                  fmt::format("gives layer {} the latent vectors of layer {}", layer, source),
                  "name the layer itself, or an earlier one that has its own");
    }
    own[at] = source == layer;
  }
  return own;
}

void read_latents(ConfigReader& config, ModelSpec& spec) {
  read_latent_attention(config, spec, {.q_lora_rank = 0, .qk_nope_head_dim = 64});
  StackSpec& stack = *spec.decoder;
  stack.self_attention.latent->norm_eps = stack.norm.eps;
  stack.self_attention.temperature = kOfHeads;
  read_indexer(config, spec,
               {.num_heads = 32,
                .rope_layout = RopeLayout::interleaved,
                .query_norm = NormSpec{NormKind::layer_norm, true, 1e-6},
                .temperature = kOfHeads});
  vary_layers(stack, read_rotary_layers(config, stack.num_layers),
              [](LayerVariant& variant) { drop_rope(variant.self_attention); });
  vary_layers(stack, read_own_latents(config, stack.num_layers),
              [](LayerVariant& variant) { variant.self_attention.shares_key_values = true; });
}

/// Factors of RoPE's frequencies, one for each pair of dimensions.
void count_frequencies(ModelSpec& spec) {
  spec.counted_only.push_back({"decoder.rotary.frequencies",
                               {spec.decoder->self_attention.latent->qk_rope_head_dim / 2},
                               WeightRole::attention,
                               1,
                               ModelPart::text,
                               CountedUse::loaded});
  spec.not_run = "its trained temperatures and frequencies of RoPE have no kernel yet";
}

void read_mistral_large4_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek_defaults(1048576);
  defaults.norm_eps = 1e-5;
  config.ignore({"head_dim"});  // the class reads the parts of MLA's heads
  read_decoder(config, spec, defaults);
  read_latents(config, spec);
  ExpertsSpec experts = read_shared_and_routed_experts(
      config, {{"n_routed_experts", "num_local_experts"}, 128, 4}, {6144, 1, 1});
  experts.normalise = true;
  experts.group_score = GroupScore::two_best;
  read_groups(config, experts, GroupLimit::groups, {});
  spread_experts(config, *spec.decoder, experts, 1);
  if (spec.head.language_model) {
    spec.head.language_model->soft_cap = config.number_or({"final_logit_softcapping"}, 30);
  }
  count_frequencies(spec);
}

constexpr NameRule kMistralLarge4[] = {
    {"decoder.layers.attention.query.temperature.%", "layers.{}.self_attn.softmax_scaling.%"},
    {"decoder.layers.attention.indexer.query_norm.%", "layers.{}.self_attn.indexer.q_input_norm.%"},
    {"decoder.layers.attention.indexer.query.temperature.%",
     "layers.{}.self_attn.indexer.softmax_scaling.%"},
    {"decoder.rotary.frequencies", "rotary_emb.alpha"},
};

NameTable text_names() {
  NameTable names = deepseek_names();
  names.rules.insert(names.rules.begin(), std::span<const NameRule>(kMistralLarge4));
  return names;
}

}  // namespace

std::vector<Family> mistral_large4_families() {
  return {{.model_types = {"mistral_large4_text"},  // inside Mistral Large 4
           .classes = llama_classes("MistralLarge4Text"),
           .reader = read_mistral_large4_text,
           .names = text_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          wrapper_family({.model_types = {"mistral_large4"},
                          .classes = {"MistralLarge4ForConditionalGeneration"},
                          .bare_classes = {"MistralLarge4Model"},
                          .text_type = "mistral_large4_text",
                          .count_towers = read_mistral3_tower,
                          .tying = HeadTying::whole,
                          .names = wrapped_pixtral_names(mistral3_projector_rules())})};
}

}  // namespace headroom::detail
