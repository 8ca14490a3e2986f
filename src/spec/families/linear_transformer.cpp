// A transformer with attention linear in the length: a feature map replaces the softmax (arXiv
// 2006.16236).
#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

ModelClasses linear_transformer_classes() {
  const HeadReader language_model = [](ConfigReader& config) {
    LanguageModelHeadSpec head = language_model_of(config, {});
    head.bias = true;
    return language_model_head(head);
  };
  return ModelClasses{
      {{"LinearTransformerLM", language_model}, {"LinearTransformerEncoder", language_model}}};
}

void read_linear_transformer(ConfigReader& config, ModelSpec& spec) {
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.kind = config.choice_or<PositionKind>({"position_embedding_type"},
                                                      {{"learned", PositionKind::learned},
                                                       {"sinusoidal", PositionKind::sinusoidal},
                                                       {"none", PositionKind::none}},
                                                      PositionKind::learned);
  spec.position.max_position_embeddings = config.size({"max_position_embeddings"});

  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers"});
  stack.self_attention = multi_head_attention(
      config, "num_attention_heads", config.size({"num_attention_heads"}), spec.hidden_size);
  stack.self_attention.kind = AttentionKind::linear;
  stack.self_attention.feature_map = read_feature_map(config);
  stack.self_attention.causal = config.flag_or({"is_causal"}, true);
  stack.self_attention.linear_attention_eps = config.number_or({"attention_eps"}, 1e-6);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.ffn = {FfnKind::plain, config.size({"intermediate_size"}),
               read_activation(config, {"hidden_act"}, ActivationKind::gelu), true};
  stack.norm_placement =
      config.flag_or({"norm_first"}, false) ? NormPlacement::pre : NormPlacement::post;
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_eps"}, 1e-5)};
  if (config.flag_or({"final_layer_norm"}, true)) stack.final_norm = stack.norm;
  const double dropout = config.probability_or({"hidden_dropout_prob", "dropout"}, 0);
  stack.dropout = {dropout, 0, dropout, dropout, dropout, 0};

  const bool causal = stack.self_attention.causal;
  spec.kind = causal ? ModelKind::decoder : ModelKind::encoder;
  (causal ? spec.decoder : spec.encoder) = stack;
}

constexpr NameRule kLinearTransformer[] = {
    {"embeddings.word_embeddings.%", "embed_tokens.%"},
    {"embeddings.position_embeddings.%", "embed_positions.%"},
    {"layers.attention.query.%", "encoder.layers.{}.attention.query_projection.%"},
    {"layers.attention.key.%", "encoder.layers.{}.attention.key_projection.%"},
    {"layers.attention.value.%", "encoder.layers.{}.attention.value_projection.%"},
    {"layers.attention.output.%", "encoder.layers.{}.attention.out_projection.%"},
    {"layers.attention_norm.%", "encoder.layers.{}.norm1.%"},
    {"layers.mlp.up.%", "encoder.layers.{}.linear1.%"},
    {"layers.mlp.down.%", "encoder.layers.{}.linear2.%"},
    {"layers.mlp_norm.%", "encoder.layers.{}.norm2.%"},
    {"final_norm.%", "encoder.norm.%"},
    {"head.language_model.%", "lm_head.%"},
};

}  // namespace

std::vector<Family> linear_transformer_families() {
  return {{.model_types = {"linear_transformer"},
           .classes = linear_transformer_classes(),
           .reader = read_linear_transformer,
           .names = NameTable{{kLinearTransformer}, {}, {}},
           .gguf = None("headroom's own config format has no GGUF form")}};
}

}  // namespace headroom::detail
