// T5: encoder-decoder with RMSNorm before each part, relative position biases, no attention scale
// (arXiv 1910.10683); v1.1 gates its feed-forward network and unties its head (arXiv 2002.05202).
#include "../family.h"

namespace headroom::detail {
namespace {

struct FeedForwardKind {
  FfnKind kind;
  ActivationKind activation;
};

FeedForwardKind read_feed_forward(ConfigReader& config) {
  // Hugging Face reads "gated-gelu" as the written-out tanh approximation (gelu_new).
  const auto result =
      config.choice_or<FeedForwardKind>({"feed_forward_proj"},
                                        {{"relu", {FfnKind::plain, ActivationKind::relu}},
                                         {"gelu", {FfnKind::plain, ActivationKind::gelu}},
                                         {"gelu_new", {FfnKind::plain, ActivationKind::gelu_new}},
                                         {"gated-relu", {FfnKind::gated, ActivationKind::relu}},
                                         {"gated-gelu", {FfnKind::gated, ActivationKind::gelu_new}},
                                         {"gated-silu", {FfnKind::gated, ActivationKind::silu}}},
                                        {FfnKind::plain, ActivationKind::relu});
  config.ignore({"dense_act_fn", "is_gated_act"});  // derived from feed_forward_proj when saved
  return result;
}

/// T5 v1.0 ties its head and scales what goes into it. A config saved by transformers 5 says
/// tie_word_embeddings of both versions and keeps the difference in scale_decoder_outputs.
bool read_tied(ConfigReader& config) {
  const bool tied = config.flag_or({"tie_word_embeddings"}, true);
  return config.flag_or({"scale_decoder_outputs"}, tied);
}

StackSpec read_stack(ConfigReader& config, std::int64_t num_layers) {
  StackSpec stack;
  stack.num_layers = num_layers;
  AttentionSpec& attention = stack.self_attention;
  attention.num_attention_heads = config.size({"num_heads", "num_attention_heads"});
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.head_dim = config.size({"d_kv"});
  attention.value_head_dim = attention.head_dim;
  attention.scale = AttentionScale::none;
  attention.softmax = SoftmaxPrecision::float32;
  const FeedForwardKind feed_forward = read_feed_forward(config);
  stack.ffn = {feed_forward.kind, config.size({"d_ff"}), feed_forward.activation, false};
  stack.norm_placement = NormPlacement::pre;
  stack.norm = {NormKind::rms_norm, false, config.number_or({"layer_norm_epsilon"}, 1e-6)};
  stack.final_norm = stack.norm;
  const double dropout = config.probability_or({"dropout_rate"}, 0.1);
  stack.dropout = {dropout, dropout, dropout, dropout, dropout, dropout};
  return stack;
}

}  // namespace

void read_t5(ConfigReader& config, ModelSpec& spec) {
  const bool tied = read_tied(config);
  LanguageModelHeadSpec language_model;
  language_model.weight = tied ? WeightSharing::shared : WeightSharing::separate;
  language_model.scale_by_inverse_sqrt_hidden = tied;
  read_architecture(config, spec,
                    {{"T5ForConditionalGeneration", language_model_head(language_model)},
                     {"T5WithLMHeadModel", language_model_head(language_model)},
                     {"T5Model", {}},
                     {"T5EncoderModel", {}}});
  const bool encoder_only = spec.architecture == "T5EncoderModel";

  config.ignore({"n_positions", "is_encoder_decoder", "classifier_dropout"});
  spec.kind = encoder_only ? ModelKind::encoder : ModelKind::encoder_decoder;
  spec.hidden_size = config.size({"d_model", "hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.kind = PositionKind::relative_bias;
  spec.position.num_buckets = config.size_or({"relative_attention_num_buckets"}, 32);
  spec.position.max_distance = config.size_or({"relative_attention_max_distance"}, 128);

  const std::int64_t num_layers = config.layers({"num_layers", "num_hidden_layers"});
  const std::int64_t num_decoder_layers = config.layers_or({"num_decoder_layers"}, num_layers);
  spec.encoder = read_stack(config, num_layers);
  if (encoder_only) return;
  spec.decoder = read_stack(config, num_decoder_layers);
  spec.decoder->cross_attention = spec.decoder->self_attention;
  spec.decoder->self_attention.causal = true;
}

}  // namespace headroom::detail
