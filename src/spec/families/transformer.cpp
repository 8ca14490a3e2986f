// The original encoder-decoder Transformer (arXiv 1706.03762). Hugging Face has no config for it:
// the keys are those of torch.nn.Transformer, with d_k and d_v as in the paper.
#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

AttentionSpec read_attention(ConfigReader& config, std::int64_t d_model) {
  const std::int64_t heads = config.size({"nhead"});
  const auto d_k = config.optional_size({"d_k"});
  const auto d_v = config.optional_size({"d_v"});
  AttentionSpec attention;
  if (d_k && d_v) {
    attention.num_attention_heads = heads;
    attention.num_key_value_heads = heads;
  } else {
    attention = multi_head_attention(config, "nhead", heads, d_model);
  }
  attention.head_dim = d_k.value_or(attention.head_dim);
  attention.value_head_dim = d_v.value_or(attention.value_head_dim);
  attention.qkv_bias = config.flag_or({"bias"}, true);
  attention.output_bias = attention.qkv_bias;
  return attention;
}

StackSpec read_stack(ConfigReader& config, std::int64_t d_model, std::int64_t num_layers) {
  StackSpec stack;
  stack.num_layers = num_layers;
  stack.self_attention = read_attention(config, d_model);
  const bool bias = stack.self_attention.qkv_bias;
  stack.ffn = {FfnKind::plain, config.size({"dim_feedforward"}),
               read_activation(config, {"activation"}, ActivationKind::relu), bias};
  stack.norm_placement =
      config.flag_or({"norm_first"}, false) ? NormPlacement::pre : NormPlacement::post;
  stack.norm = {NormKind::layer_norm, bias, config.number_or({"layer_norm_eps"}, 1e-5)};
  if (config.flag_or({"final_layer_norm"}, false)) stack.final_norm = stack.norm;
  const double dropout = config.probability_or({"dropout"}, 0.1);
  stack.dropout = {dropout, dropout, dropout, dropout, dropout, 0};
  return stack;
}

ModelClasses transformer_classes() {
  return ModelClasses{{{"Transformer", [](ConfigReader& config) {
                          return language_model_head(language_model_of(config, {.tied = true}));
                        }}}};
}

void read_transformer(ConfigReader& config, ModelSpec& spec) {
  const bool tied = config.flag_or({"tie_word_embeddings"}, true);
  spec.kind = ModelKind::encoder_decoder;
  spec.hidden_size = config.size({"d_model"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.embedding.scale = config.flag_or({"scale_embedding"}, true)
                             ? EmbeddingScale::sqrt_hidden_size
                             : EmbeddingScale::none;
  spec.encoder_decoder_embedding = tied ? WeightSharing::shared : WeightSharing::separate;
  spec.position.kind = config.choice_or<PositionKind>(
      {"positional_encoding"},
      {{"sinusoidal", PositionKind::sinusoidal}, {"learned", PositionKind::learned}},
      PositionKind::sinusoidal);
  spec.position.max_position_embeddings = spec.position.kind == PositionKind::learned
                                              ? config.size({"max_position_embeddings"})
                                              : config.count_or({"max_position_embeddings"}, 0);

  spec.encoder = read_stack(config, spec.hidden_size, config.layers({"num_encoder_layers"}));
  spec.decoder = read_stack(config, spec.hidden_size, config.layers({"num_decoder_layers"}));
  spec.decoder->cross_attention = spec.decoder->self_attention;
  spec.decoder->self_attention.causal = true;
}

constexpr NameRule kTransformer[] = {
    {"encoder.embeddings.word_embeddings.%", "embedding.%"},
    {"encoder.layers.attention.query.%", "encoder.layers.{}.self_attn.in_proj_%", part(0)},
    {"encoder.layers.attention.key.%", "encoder.layers.{}.self_attn.in_proj_%", part(1)},
    {"encoder.layers.attention.value.%", "encoder.layers.{}.self_attn.in_proj_%", part(2)},
    {"encoder.layers.attention.output.%", "encoder.layers.{}.self_attn.out_proj.%"},
    {"encoder.layers.attention_norm.%", "encoder.layers.{}.norm1.%"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.linear1.%"},
    {"encoder.layers.mlp.down.%", "encoder.layers.{}.linear2.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layers.{}.norm2.%"},
    {"encoder.final_norm.%", "encoder.norm.%"},
    {"decoder.layers.attention.query.%", "decoder.layers.{}.self_attn.in_proj_%", part(0)},
    {"decoder.layers.attention.key.%", "decoder.layers.{}.self_attn.in_proj_%", part(1)},
    {"decoder.layers.attention.value.%", "decoder.layers.{}.self_attn.in_proj_%", part(2)},
    {"decoder.layers.attention.output.%", "decoder.layers.{}.self_attn.out_proj.%"},
    {"decoder.layers.attention_norm.%", "decoder.layers.{}.norm1.%"},
    {"decoder.layers.cross_attention.query.%", "decoder.layers.{}.multihead_attn.in_proj_%",
     part(0)},
    {"decoder.layers.cross_attention.key.%", "decoder.layers.{}.multihead_attn.in_proj_%", part(1)},
    {"decoder.layers.cross_attention.value.%", "decoder.layers.{}.multihead_attn.in_proj_%",
     part(2)},
    {"decoder.layers.cross_attention.output.%", "decoder.layers.{}.multihead_attn.out_proj.%"},
    {"decoder.layers.cross_attention_norm.%", "decoder.layers.{}.norm2.%"},
    {"decoder.layers.mlp.up.%", "decoder.layers.{}.linear1.%"},
    {"decoder.layers.mlp.down.%", "decoder.layers.{}.linear2.%"},
    {"decoder.layers.mlp_norm.%", "decoder.layers.{}.norm3.%"},
    {"decoder.final_norm.%", "decoder.norm.%"},
};

}  // namespace

std::vector<Family> transformer_families() {
  return {{.model_types = {"transformer"},
           .classes = transformer_classes(),
           .reader = read_transformer,
           .names = NameTable{{kTransformer}, {}, {}},
           .gguf = None("headroom's own config format has no GGUF form")}};
}

}  // namespace headroom::detail
