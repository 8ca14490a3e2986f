// OPT: GPT-2 with ReLU and positions starting at 2; OPT-350m has narrow embeddings and post-norm
// (arXiv 2205.01068).
#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_opt(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t hidden_size = config.size({"hidden_size"});
  const std::int64_t width = config.size_or({"word_embed_proj_dim"}, hidden_size);
  spec.head.projects_out = width != hidden_size;

  spec.kind = ModelKind::decoder;
  spec.hidden_size = hidden_size;
  spec.embedding.vocab_size = config.size({"vocab_size"});
  if (width != hidden_size) {
    spec.embedding.embedding_size = width;
    spec.embedding.projects_before_positions = true;
  }
  constexpr std::int64_t kOffset = 2;  // rows that the reference code never reads
  spec.position.kind = PositionKind::learned;
  spec.position.offset = kOffset;
  spec.position.max_position_embeddings = config.sum(
      "max_position_embeddings", config.size_or({"max_position_embeddings"}, 2048), kOffset);

  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers"});
  stack.self_attention = multi_head_attention(config, "num_attention_heads",
                                              config.size({"num_attention_heads"}), hidden_size);
  stack.self_attention.causal = true;
  const bool bias = config.flag_or({"enable_bias"}, true);
  stack.self_attention.qkv_bias = bias;
  stack.self_attention.output_bias = bias;
  stack.self_attention.softmax = SoftmaxPrecision::float32;
  stack.ffn = {FfnKind::plain, config.size({"ffn_dim", "intermediate_size"}),
               read_activation(config, {"activation_function"}, ActivationKind::relu), bias};
  const bool weighted = config.flag_or({"layer_norm_elementwise_affine"}, true);
  stack.norm = {NormKind::layer_norm, weighted, 1e-5,
                weighted ? NormWeight::plain : NormWeight::none};
  const bool before = config.flag_or({"do_layer_norm_before"}, true);
  stack.norm_placement = before ? NormPlacement::pre : NormPlacement::post;
  const bool removed = config.flag_or({"_remove_final_layer_norm"}, false);
  if (before && !removed) stack.final_norm = stack.norm;
  const double dropout = config.probability_or({"dropout"}, 0.1);
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  config.ignore({"layerdrop", "init_std", "activation_dropout", "output_projection"});
  spec.decoder = stack;
}

constexpr NameRule kOpt[] = {
    {"embeddings.word_embeddings.%", "embed_tokens.%"},
    {"embeddings.position_embeddings.%", "embed_positions.%"},
    {"embeddings.projection.%", "project_in.%"},
    {"head.project_out.%", "project_out.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.self_attn_layer_norm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.final_layer_norm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.out_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.fc1.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.fc2.%"},
    {"decoder.final_norm.%", "final_layer_norm.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

std::vector<Family> opt_families() {
  return {{.model_types = {"opt"},
           .classes = decoder_classes("OPT", {.tied = true, .float32_logits = true}),
           .reader = read_opt,
           .names = NameTable{{kOpt},
                              {"model.decoder.", "decoder."},
                              {{"lm_head.weight", ExtraKind::tied_copy}}},
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
