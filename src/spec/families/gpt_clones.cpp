// Decoders with learned or sinusoidal positions that differ from OPT and GPT-2 in few choices: GPT,
// BioGPT and XGLM (Radford et al. 2018; arXiv 2210.10341, 2112.10668).
#include "../family.h"
#include "../gpt.h"

namespace headroom::detail {
namespace {

constexpr std::int64_t kUnusedRows = 2;  // rows of the position table that no token reads

/// GPT: post-norm, learned positions, no norm at the end.
void read_openai_gpt(ConfigReader& config, ModelSpec& spec) {
  read_gpt_sizes(config, spec, 512);
  StackSpec& stack = *spec.decoder;
  spec.position.kind = PositionKind::learned;
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.ffn.activation = config.choice_or<ActivationKind>({"afn"},
                                                          {{"gelu", ActivationKind::gelu_new},
                                                           {"relu", ActivationKind::relu},
                                                           {"silu", ActivationKind::silu},
                                                           {"swish", ActivationKind::silu}},
                                                          ActivationKind::gelu_new);
  stack.norm_placement = NormPlacement::post;
  stack.final_norm.reset();
  config.ignore({"n_ctx", "predict_special_tokens", "n_special"});
}

/// A pre-norm decoder like OPT's, with scaled embeddings and biases.
StackSpec scaled_stack(ConfigReader& config, ModelSpec& spec, std::string_view heads) {
  spec.kind = ModelKind::decoder;
  spec.embedding.vocab_size = config.size({"vocab_size"});
  if (config.flag_or({"scale_embedding"}, true)) {
    spec.embedding.scale = EmbeddingScale::sqrt_hidden_size;
  }
  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers", "num_layers"});
  stack.self_attention =
      multi_head_attention(config, heads, config.size({heads}), spec.hidden_size);
  stack.self_attention.causal = true;
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.norm_placement = NormPlacement::pre;
  config.ignore({"layerdrop", "activation_dropout", "init_std"});
  return stack;
}

void read_biogpt(ConfigReader& config, ModelSpec& spec) {
  spec.hidden_size = config.size({"hidden_size"});
  StackSpec stack = scaled_stack(config, spec, "num_attention_heads");
  spec.position.kind = PositionKind::learned;
  spec.position.offset = kUnusedRows;
  spec.position.max_position_embeddings = config.sum(
      "max_position_embeddings", config.size_or({"max_position_embeddings"}, 1024), kUnusedRows);
  stack.ffn = {FfnKind::plain, config.size({"intermediate_size"}),
               read_activation(config, {"hidden_act"}, ActivationKind::gelu), true};
  stack.norm = {NormKind::layer_norm, true, 1e-5};  // layer_norm_eps is not read
  stack.final_norm = stack.norm;
  const double dropout = config.probability_or({"hidden_dropout_prob"}, 0.1);
  stack.dropout.embedding = dropout;
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_probs_dropout_prob"}, 0.1);
  config.ignore({"layer_norm_eps"});
  spec.decoder = stack;
}

void read_xglm(ConfigReader& config, ModelSpec& spec) {
  spec.hidden_size = config.size({"d_model", "hidden_size"});
  StackSpec stack = scaled_stack(config, spec, "attention_heads");
  spec.position.kind = PositionKind::sinusoidal;
  spec.position.table = PositionTable::tensor2tensor;
  spec.position.offset = kUnusedRows;
  spec.position.max_position_embeddings = config.sum(
      "max_position_embeddings", config.size_or({"max_position_embeddings"}, 2048), kUnusedRows);
  stack.ffn = {FfnKind::plain, config.size({"ffn_dim"}),
               read_activation(config, {"activation_function"}, ActivationKind::gelu), true};
  stack.norm = {NormKind::layer_norm, true, 1e-5};
  stack.final_norm = stack.norm;
  const double dropout = config.probability_or({"dropout"}, 0.1);
  stack.dropout.embedding = dropout;
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0.1);
  spec.decoder = stack;
}

constexpr NameRule kOpenAiGpt[] = {
    {"embeddings.word_embeddings.%", "tokens_embed.%"},
    {"embeddings.word_embeddings.%", "lm_head.%"},  // of two heads transformers keeps this name
    {"embeddings.position_embeddings.%", "positions_embed.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.c_attn.%", transposed(part(0))},
    {"decoder.layers.attention.key.%", "h.{}.attn.c_attn.%", transposed(part(1))},
    {"decoder.layers.attention.value.%", "h.{}.attn.c_attn.%", transposed(part(2))},
    {"decoder.layers.attention.output.%", "h.{}.attn.c_proj.%", transposed()},
    {"decoder.layers.mlp_norm.%", "h.{}.ln_2.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.c_fc.%", transposed()},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.c_proj.%", transposed()},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "multiple_choice_head.summary.%"},
};

constexpr NameRule kOptLike[] = {
    {"embeddings.word_embeddings.%", "embed_tokens.%"},
    {"embeddings.position_embeddings.%", "embed_positions.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.self_attn_layer_norm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.final_layer_norm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "layers.{}.self_attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "layers.{}.self_attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.self_attn.out_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.fc1.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.fc2.%"},
    {"decoder.final_norm.%", "layer_norm.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.language_model.%", "output_projection.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "classifier.%"},
};

NameTable opt_like_names() {
  return {{kOptLike},
          {"model.", "biogpt."},
          {{"lm_head.weight", ExtraKind::tied_copy},
           {"output_projection.weight", ExtraKind::tied_copy}}};
}

}  // namespace

std::vector<Family> gpt_clones_families() {
  constexpr std::string_view kNotInLlamaCpp = "llama.cpp does not support this architecture";
  return {
      {.model_types = {"openai-gpt"},
       .classes = either_of(decoder_classes("OpenAIGPT", {.tied = true}, "OpenAIGPTLMHeadModel"),
                            double_heads_class("OpenAIGPT")),
       .reader = read_openai_gpt,
       .names = gpt_names(kOpenAiGpt),
       .gguf = None(kNotInLlamaCpp)},
      {.model_types = {"biogpt"},
       .classes = decoder_classes("BioGpt", {.tied = true}),
       .reader = read_biogpt,
       .names = opt_like_names(),
       .gguf = None(kNotInLlamaCpp)},
      {.model_types = {"xglm"},
       .classes = decoder_classes("XGLM", {.tied = true}),
       .reader = read_xglm,
       .names = opt_like_names(),
       .gguf = None(kNotInLlamaCpp)}};
}

}  // namespace headroom::detail
