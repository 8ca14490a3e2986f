// GPT-2: pre-norm decoder with learned positions (Radford et al. 2019).
#include <cmath>
#include <utility>

#include "../cross_attention.h"
#include "../family.h"
#include "../gpt.h"

namespace headroom::detail {
namespace {

/// Attention scores may also be divided by the layer number, counted from 1, or left unscaled.
void read_score_scale(ConfigReader& config, StackSpec& stack) {
  AttentionSpec& attention = stack.self_attention;
  const bool scaled = config.flag_or({"scale_attn_weights"}, true);
  if (!scaled) attention.scale = AttentionScale::none;
  if (!config.flag_or({"scale_attn_by_inverse_layer_idx"}, false)) return;
  const double first = scaled ? 1 / std::sqrt(static_cast<double>(attention.head_dim)) : 1;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    stack.variant_of_layer.push_back(static_cast<std::size_t>(layer));
    if (layer == 0) continue;
    LayerVariant variant{attention, stack.ffn};
    variant.self_attention.scale = AttentionScale::fixed;
    variant.self_attention.fixed_scale = first / static_cast<double>(layer + 1);
    stack.variants.push_back(std::move(variant));
  }
}

void read_gpt2(ConfigReader& config, ModelSpec& spec) {
  read_choice_score(config, spec);
  config.ignore({"n_ctx", "reorder_and_upcast_attn"});  // they change numerics, not sizes
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"n_embd", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.kind = PositionKind::learned;
  spec.position.max_position_embeddings =
      config.size_or({"n_positions", "max_position_embeddings"}, 1024);

  StackSpec stack;
  stack.num_layers = config.layers({"n_layer", "num_hidden_layers"});
  stack.self_attention = multi_head_attention(
      config, "n_head", config.size({"n_head", "num_attention_heads"}), spec.hidden_size);
  stack.self_attention.causal = true;
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  const auto inner = config.optional_size({"n_inner"});
  stack.ffn = {FfnKind::plain, inner ? *inner : product(config, "n_embd", 4, spec.hidden_size),
               read_activation(config, {"activation_function"}, ActivationKind::gelu_new), true};
  read_score_scale(config, stack);
  stack.norm_placement = NormPlacement::pre;
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_epsilon"}, 1e-5)};
  stack.final_norm = stack.norm;
  stack.dropout.embedding = config.probability_or({"embd_pdrop"}, 0.1);
  stack.dropout.attention_probs = config.probability_or({"attn_pdrop"}, 0.1);
  stack.dropout.attention_output = config.probability_or({"resid_pdrop"}, 0.1);
  stack.dropout.ffn_output = stack.dropout.attention_output;
  spec.decoder = stack;
  const bool crosses = config.flag_or({"add_cross_attention"}, false);
  if (crosses) count_unused_cross_attention(spec);
}

constexpr NameRule kGpt2[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"embeddings.position_embeddings.%", "wpe.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.c_attn.%", transposed(part(0))},
    {"decoder.layers.attention.key.%", "h.{}.attn.c_attn.%", transposed(part(1))},
    {"decoder.layers.attention.value.%", "h.{}.attn.c_attn.%", transposed(part(2))},
    {"decoder.layers.attention.output.%", "h.{}.attn.c_proj.%", transposed()},
    {"decoder.layers.cross_attention_norm.%", "h.{}.ln_cross_attn.%"},
    {"decoder.layers.cross_attention.query.%", "h.{}.crossattention.q_attn.%", transposed()},
    {"decoder.layers.cross_attention.key.%", "h.{}.crossattention.c_attn.%", transposed(part(0))},
    {"decoder.layers.cross_attention.value.%", "h.{}.crossattention.c_attn.%", transposed(part(1))},
    {"decoder.layers.cross_attention.output.%", "h.{}.crossattention.c_proj.%", transposed()},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_2.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.c_fc.%", transposed()},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.c_proj.%", transposed()},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
    {"head.classifier.%", "multiple_choice_head.summary.%"},
};

}  // namespace

std::vector<Family> gpt2_families() {
  return {{.model_types = {"gpt2", "gpt-sw3"},
           .classes = either_of(decoder_classes("GPT2", {.tied = true}, "GPT2LMHeadModel"),
                                double_heads_class("GPT2")),
           .reader = read_gpt2,
           .names = gpt_names(kGpt2),
           .gguf = GgufForm(GgufConversion::none, {{.name = "gpt2",
                                                    .common = gguf_gpt2_keys(),
                                                    .tie = GgufTie::always,
                                                    .head_dim = GgufHeadDim::never}})}};
}

}  // namespace headroom::detail
