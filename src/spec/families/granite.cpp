// Granite 3: Llama with multipliers for embeddings, attention scores, residuals and logits; dense
// and MoE (IBM, Granite 3.0 language models; arXiv 2408.13359).
#include "granite.h"

#include <cmath>
#include <set>

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {

void read_granite_decoder(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.scale = AttentionScale::fixed;
  stack.self_attention.fixed_scale = config.number_or({"attention_multiplier"}, 1);
  stack.residual_multiplier = config.number_or({"residual_multiplier"}, 1);
  const double embedding = config.number_or({"embedding_multiplier"}, 1);
  if (embedding != 1) {
    spec.embedding.scale = EmbeddingScale::fixed;
    spec.embedding.fixed_scale = embedding;
  }
  const double logits = config.number_or({"logits_scaling"}, 1);
  if (spec.head.language_model) spec.head.language_model->logit_scale = 1 / logits;
}

namespace {

void read_granite(ConfigReader& config, ModelSpec& spec) {
  read_granite_decoder(config, spec);
  spec.decoder->ffn.bias = config.flag_or({"mlp_bias"}, false);
}

/// HyperCLOVA X: Granite with a norm after each part too, and logits that are multiplied (NAVER,
/// arXiv 2404.01954; transformers, models/hyperclovax).
void read_hyperclovax(ConfigReader& config, ModelSpec& spec) {
  read_granite(config, spec);
  StackSpec& stack = *spec.decoder;
  const double usual = 1 / std::sqrt(static_cast<double>(stack.self_attention.head_dim));
  stack.self_attention.fixed_scale = config.number_or({"attention_multiplier"}, usual);
  if (spec.head.language_model) {
    spec.head.language_model->logit_scale = config.number_or({"logits_scaling"}, 1);
  }
  const bool norms_twice = config.flag_or({"use_post_norm"}, true);
  stack.norm_placement = norms_twice ? NormPlacement::sandwich : NormPlacement::pre;
}

void read_granitemoe(ConfigReader& config, ModelSpec& spec) {
  read_granite_decoder(config, spec);
  StackSpec& stack = *spec.decoder;
  ExpertsSpec experts = read_experts(config, {{"num_local_experts", "num_experts"}, 8, 2});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.scoring = RouterScoring::softmax_of_chosen;
  stack.ffn.experts = experts;
}

/// RoPE's base of each layer; 0 is a layer without RoPE.
void read_layer_thetas(ConfigReader& config, ModelSpec& spec) {
  constexpr std::string_view kKey = "layer_rope_theta";
  const std::vector<double> thetas = config.numbers(kKey);
  if (thetas.empty()) return;
  StackSpec& stack = *spec.decoder;
  config.require_one_per_layer(kKey, thetas.size(), stack.num_layers,
                               "write one base for each of num_hidden_layers");
  for (const double theta : std::set<double>(thetas.begin(), thetas.end())) {
    if (theta < 0) config.fail(kKey, "has a base below 0", "write 0 for a layer without RoPE");
    if (theta == spec.position.rope.theta) continue;
    std::vector<bool> others;
    others.reserve(thetas.size());
    for (const double own : thetas) others.push_back(own != theta);
    RopeSpec rope = spec.position.rope;
    rope.theta = theta;
    vary_layers(stack, others, [&](LayerVariant& variant) {
      variant.self_attention.rotary = theta != 0;
      if (theta != 0) variant.self_attention.rope = rope;
    });
  }
}

/// Windows in three of four layers, and a trained score of each head beside the keys.
void read_granite_windows(ConfigReader& config, ModelSpec& spec) {
  StackSpec& stack = *spec.decoder;
  stack.self_attention.sinks = true;
  const WindowSpec window = read_window(config, 128);
  set_windows(stack,
              read_windowed_layers(config, stack.num_layers,
                                   [](std::int64_t layer) { return layer % 4 != 0; }),
              window);
  read_layer_thetas(config, spec);
}

void read_granite_swa(ConfigReader& config, ModelSpec& spec) {
  read_granite(config, spec);
  read_granite_windows(config, spec);
}

/// Granite MoE with shared experts.
void read_granitemoeshared(ConfigReader& config, ModelSpec& spec) {
  read_granitemoe(config, spec);
  spec.decoder->ffn.experts->shared_intermediate_size =
      config.count_or({"shared_intermediate_size"}, 0);
}

void read_granitemoe_swa(ConfigReader& config, ModelSpec& spec) {
  read_granitemoeshared(config, spec);
  read_granite_windows(config, spec);
}

constexpr NameRule kPostNorms[] = {
    {"decoder.layers.attention_output_norm.%", "layers.{}.post_norm1.%"},
    {"decoder.layers.mlp_output_norm.%", "layers.{}.post_norm2.%"},
};

constexpr NameRule kShared[] = {
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.shared_mlp.input_linear.%", part(0)},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.shared_mlp.input_linear.%", part(1)},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.shared_mlp.output_linear.%"},
};

constexpr NameRule kSinks[] = {
    {"decoder.layers.attention.sinks", "layers.{}.self_attn.sinks"},
};

/// Routers and experts as the class of transformers stores them.
constexpr NameRule kWindowedExperts[] = {
    {"decoder.layers.mlp.router.%", "layers.{}.block_sparse_moe.router.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.block_sparse_moe.experts.gate_up_proj",
     stacked_experts(part(0))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.block_sparse_moe.experts.gate_up_proj",
     stacked_experts(part(1))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.block_sparse_moe.experts.down_proj",
     stacked_experts()},
};

}  // namespace

std::vector<Family> granite_families() {
  return {{.model_types = {"granite"},
           .classes = llama_classes("Granite"),
           .reader = read_granite,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::interleaved_heads,
                            {{.name = "granite",
                              .common = gguf_rms_norm_keys(),
                              .own = {{"logit_scale", "logits_scaling"},
                                      {"embedding_scale", "embedding_multiplier"},
                                      {"residual_scale", "residual_multiplier"},
                                      {"attention.scale", "attention_multiplier"}},
                              .flags = gguf_llama_biases(),
                              .head_dim = GgufHeadDim::never}})},
          {.model_types = {"hyperclovax"},
           .classes = llama_classes("HyperCLOVAX"),
           .reader = read_hyperclovax,
           .names = llama_names({kPostNorms}),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"granite_swa"},
           .classes = decoder_classes("GraniteSWA", {.tied = true, .float32_logits = true}),
           .reader = read_granite_swa,
           .names = llama_names({kSinks}),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"granitemoe_swa"},
           .classes = llama_classes("GraniteMoeSWA"),
           .reader = read_granitemoe_swa,
           .names = llama_names({kSinks, kShared, kWindowedExperts, granite_expert_rules()}),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"granitemoeshared"},
           .classes = llama_classes("GraniteMoeShared"),
           .reader = read_granitemoeshared,
           .names = llama_names({kShared, granite_expert_rules()}),
           .gguf = None("llama.cpp stores it under the name of Granite MoE")},
          {.model_types = {"granitemoe"},
           .classes = llama_classes("GraniteMoe"),
           .reader = read_granitemoe,
           .names = llama_names({granite_expert_rules()}),
           .gguf = GgufForm(GgufConversion::interleaved_heads,
                            {{.name = "granitemoe",
                              .common = gguf_expert_keys(),
                              .own = {{"feed_forward_length", "intermediate_size"},
                                      {"expert_count", "num_local_experts"},
                                      {"logit_scale", "logits_scaling"},
                                      {"embedding_scale", "embedding_multiplier"},
                                      {"residual_scale", "residual_multiplier"},
                                      {"attention.scale", "attention_multiplier"}},
                              .head_dim = GgufHeadDim::never}})}};
}

}  // namespace headroom::detail
