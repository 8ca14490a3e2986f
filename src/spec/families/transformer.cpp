// The original encoder-decoder Transformer (arXiv 1706.03762), which Hugging Face has no config of.
// Keys are those of torch.nn.Transformer, and d_k, d_v as in the paper.
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

}  // namespace

void read_transformer(ConfigReader& config, ModelSpec& spec) {
  const bool tied = config.flag_or({"tie_word_embeddings"}, true);
  LanguageModelHeadSpec language_model;
  language_model.weight = tied ? WeightSharing::shared : WeightSharing::separate;
  read_architecture(config, spec, {{"Transformer", language_model_head(language_model)}});

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

}  // namespace headroom::detail
