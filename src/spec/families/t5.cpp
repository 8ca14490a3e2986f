// T5: encoder-decoder with RMSNorm before each part, relative position biases, no attention scale
// (arXiv 1910.10683); v1.1 has a gated FFN and an untied head (arXiv 2002.05202).
#include "../common_keys.h"
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
  config.ignore({"dense_act_fn", "is_gated_act"});  // derived from feed_forward_proj on saving
  return result;
}

/// T5 v1.0 ties its head and scales the head's input. Configs saved by transformers 5 set
/// tie_word_embeddings for both versions and store the difference in scale_decoder_outputs.
bool read_tied(ConfigReader& config) {
  const bool tied = config.flag_or({"tie_word_embeddings"}, true);
  return config.flag_or({"scale_decoder_outputs"}, tied);
}

ModelClasses t5_classes() {
  const HeadReader language_model = [](ConfigReader& config) {
    const bool tied = read_tied(config);
    LanguageModelHeadSpec head;
    head.weight = tied ? WeightSharing::shared : WeightSharing::separate;
    head.scale_by_inverse_sqrt_hidden = tied;
    return language_model_head(head);
  };
  return ModelClasses{{{"T5ForConditionalGeneration", language_model},
                       {"T5WithLMHeadModel", language_model},
                       {"T5Model", no_head},
                       {"T5EncoderModel", no_head}}};
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

void read_t5(ConfigReader& config, ModelSpec& spec) {
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

constexpr NameRule kT5Gated[] = {
    {"encoder.layers.mlp.gate.%", "encoder.block.{}.layer.1.DenseReluDense.wi_0.%"},
    {"encoder.layers.mlp.up.%", "encoder.block.{}.layer.1.DenseReluDense.wi_1.%"},
    {"decoder.layers.mlp.gate.%", "decoder.block.{}.layer.2.DenseReluDense.wi_0.%"},
    {"decoder.layers.mlp.up.%", "decoder.block.{}.layer.2.DenseReluDense.wi_1.%"},
};

constexpr NameRule kT5Plain[] = {
    {"encoder.layers.mlp.up.%", "encoder.block.{}.layer.1.DenseReluDense.wi.%"},
    {"decoder.layers.mlp.up.%", "decoder.block.{}.layer.2.DenseReluDense.wi.%"},
};

constexpr NameRule kT5[] = {
    {"encoder.embeddings.word_embeddings.%", "shared.%"},
    {"embeddings.word_embeddings.%", "shared.%"},
    {"encoder.relative_attention_bias.%",
     "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.%"},
    {"encoder.layers.attention_norm.%", "encoder.block.{}.layer.0.layer_norm.%"},
    {"encoder.layers.attention.query.%", "encoder.block.{}.layer.0.SelfAttention.q.%"},
    {"encoder.layers.attention.key.%", "encoder.block.{}.layer.0.SelfAttention.k.%"},
    {"encoder.layers.attention.value.%", "encoder.block.{}.layer.0.SelfAttention.v.%"},
    {"encoder.layers.attention.output.%", "encoder.block.{}.layer.0.SelfAttention.o.%"},
    {"encoder.layers.mlp_norm.%", "encoder.block.{}.layer.1.layer_norm.%"},
    {"encoder.layers.mlp.down.%", "encoder.block.{}.layer.1.DenseReluDense.wo.%"},
    {"encoder.final_norm.%", "encoder.final_layer_norm.%"},
    {"decoder.relative_attention_bias.%",
     "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.%"},
    {"decoder.layers.attention_norm.%", "decoder.block.{}.layer.0.layer_norm.%"},
    {"decoder.layers.attention.query.%", "decoder.block.{}.layer.0.SelfAttention.q.%"},
    {"decoder.layers.attention.key.%", "decoder.block.{}.layer.0.SelfAttention.k.%"},
    {"decoder.layers.attention.value.%", "decoder.block.{}.layer.0.SelfAttention.v.%"},
    {"decoder.layers.attention.output.%", "decoder.block.{}.layer.0.SelfAttention.o.%"},
    {"decoder.layers.cross_attention_norm.%", "decoder.block.{}.layer.1.layer_norm.%"},
    {"decoder.layers.cross_attention.query.%", "decoder.block.{}.layer.1.EncDecAttention.q.%"},
    {"decoder.layers.cross_attention.key.%", "decoder.block.{}.layer.1.EncDecAttention.k.%"},
    {"decoder.layers.cross_attention.value.%", "decoder.block.{}.layer.1.EncDecAttention.v.%"},
    {"decoder.layers.cross_attention.output.%", "decoder.block.{}.layer.1.EncDecAttention.o.%"},
    {"decoder.layers.mlp_norm.%", "decoder.block.{}.layer.2.layer_norm.%"},
    {"decoder.layers.mlp.down.%", "decoder.block.{}.layer.2.DenseReluDense.wo.%"},
    {"decoder.final_norm.%", "decoder.final_layer_norm.%"},
    {"head.language_model.%", "lm_head.%"},
};

void finish_t5(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const bool gated = metadata.has_tensor("enc.blk.0.ffn_gate.weight");
  config.set_text("feed_forward_proj", gated ? "gated-gelu" : "relu");
}

}  // namespace

std::vector<Family> t5_families() {
  return {{.model_types = {"t5"},
           .classes = t5_classes(),
           .reader = read_t5,
           .names = NameTable{{kT5Gated, kT5Plain, kT5},
                              {},
                              {{"embed_tokens.weight", ExtraKind::tied_copy},
                               {"lm_head.weight", ExtraKind::tied_copy}}},
           .gguf = GgufForm(
               GgufConversion::none,
               {{.name = "t5",
                 .own = {{"embedding_length", "d_model"},
                         {"block_count", "num_layers"},
                         {"decoder_block_count", "num_decoder_layers"},
                         {"feed_forward_length", "d_ff"},
                         {"attention.head_count", "num_heads"},
                         {"attention.key_length", "d_kv"},
                         {"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
                         {"attention.relative_buckets_count", "relative_attention_num_buckets"}},
                 .head_dim = GgufHeadDim::never,
                 .finish = finish_t5}})}};
}

}  // namespace headroom::detail
