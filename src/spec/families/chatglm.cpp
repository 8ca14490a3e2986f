// ChatGLM2, ChatGLM3 and GLM-4 in the vendor's format: interleaved RoPE on half of each head, fused
// projections, key-value groups (arXiv 2210.02414, 2406.12793). ChatGLM-6B, of the same model_type,
// is counted: LayerNorm, biases, a plain FFN, and residuals that start after the norms.
#include <cmath>
#include <nlohmann/json.hpp>

#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

constexpr double kBase = 10000;  // of RoPE, times rope_ratio

AttentionSpec read_attention_sizes(ConfigReader& config, std::int64_t hidden_size) {
  const std::int64_t heads = config.size({"num_attention_heads"});
  AttentionSpec attention = multi_head_attention(config, "num_attention_heads", heads, hidden_size);
  attention.head_dim = config.size_or({"kv_channels"}, attention.head_dim);
  attention.value_head_dim = attention.head_dim;
  const std::int64_t groups = config.size_or({"multi_query_group_num"}, 1);
  if (config.flag_or({"multi_query_attention"}, false)) attention.num_key_value_heads = groups;
  if (heads % attention.num_key_value_heads != 0) {
    config.fail("multi_query_group_num", "does not divide num_attention_heads",
                "use a divisor of num_attention_heads");
  }
  attention.causal = true;
  attention.softmax = SoftmaxPrecision::float32;
  const bool bias = config.flag_or({"add_bias_linear"}, false);
  attention.qkv_bias = config.flag_or({"add_qkv_bias"}, false) || bias;
  attention.output_bias = bias;
  return attention;
}

/// ChatGLM-6B (THUDM, modeling_chatglm.py): each half of a head turns by a position of its own, and
/// residuals are (2 · layers)^0.5 times what the norm gives.
void read_first_chatglm(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings = config.size_or({"max_sequence_length"}, 2048);
  StackSpec stack;
  stack.num_layers = config.layers({"num_layers"});
  const std::int64_t heads = config.size({"num_attention_heads"});
  AttentionSpec& attention = stack.self_attention;
  attention = multi_head_attention(config, "num_attention_heads", heads, spec.hidden_size);
  attention.causal = true;
  attention.softmax = SoftmaxPrecision::float32;
  attention.qkv_bias = attention.output_bias = true;
  stack.ffn = {FfnKind::plain, config.size({"inner_hidden_size"}), ActivationKind::gelu_tanh, true};
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layernorm_epsilon"}, 1e-5)};
  stack.final_norm = stack.norm;
  stack.norm_placement = NormPlacement::residual;
  attention.residual_multiplier = std::sqrt(2 * static_cast<double>(stack.num_layers));
  stack.ffn.residual_multiplier = attention.residual_multiplier;
  config.expect_number("quantization_bit", 0);
  config.ignore({"position_encoding_2d", "gmask_token_id"});
  const bool tied = config.flag_or({"tie_word_embeddings"}, true);
  if (tied && spec.head.language_model) spec.head.language_model->weight = WeightSharing::shared;
  spec.decoder = stack;
  spec.not_run = "its positions have two dimensions, and the tokens of a prompt see each other";
}

void read_chatglm(ConfigReader& config, ModelSpec& spec) {
  if (config.has("inner_hidden_size")) return read_first_chatglm(config, spec);
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding.vocab_size = config.size({"padded_vocab_size", "vocab_size"});
  StackSpec stack;
  stack.num_layers = config.layers({"num_layers", "num_hidden_layers"});
  stack.self_attention = read_attention_sizes(config, spec.hidden_size);
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings = config.size_or({"seq_length"}, 2048);
  spec.position.rope.theta = kBase * config.number_or({"rope_ratio"}, 1);
  spec.position.rope.rotary_dim = stack.self_attention.head_dim / 2;
  spec.position.rope.layout = RopeLayout::interleaved;
  stack.ffn = {FfnKind::gated, config.size({"ffn_hidden_size"}), ActivationKind::silu,
               stack.self_attention.output_bias};
  stack.norm = {NormKind::rms_norm, false, config.number_or({"layernorm_epsilon"}, 1e-5)};
  stack.final_norm = stack.norm;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  stack.dropout.attention_output = config.probability_or({"hidden_dropout"}, 0);
  stack.dropout.ffn_output = stack.dropout.attention_output;
  config.expect_flag("rmsnorm", true);
  config.expect_flag("post_layer_norm", true);
  config.expect_flag("apply_residual_connection_post_layernorm", false);
  // Prefix tuning is off unless pre_seq_len is set; the others change the order of operations.
  config.expect_flag("prefix_projection", false);
  config.ignore({"apply_query_key_layer_scaling", "attention_softmax_in_fp32",
                 "bias_dropout_fusion", "original_rope", "interleaved_qkv", "classifier_dropout"});
  spec.decoder = stack;
}

constexpr NameRule kChatglm[] = {
    {"embeddings.word_embeddings.%", "embedding.word_embeddings.%"},
    {"decoder.layers.attention_norm.%", "encoder.layers.{}.input_layernorm.%"},
    {"decoder.layers.attention.query.%", "encoder.layers.{}.self_attention.query_key_value.%",
     part(0)},
    {"decoder.layers.attention.key.%", "encoder.layers.{}.self_attention.query_key_value.%",
     part(1)},
    {"decoder.layers.attention.value.%", "encoder.layers.{}.self_attention.query_key_value.%",
     part(2)},
    {"decoder.layers.attention.output.%", "encoder.layers.{}.self_attention.dense.%"},
    {"decoder.layers.mlp_norm.%", "encoder.layers.{}.post_attention_layernorm.%"},
    {"decoder.layers.mlp.gate.%", "encoder.layers.{}.mlp.dense_h_to_4h.%", part(0)},
    {"decoder.layers.mlp.up.%", "encoder.layers.{}.mlp.dense_h_to_4h.%", part(1)},
    {"decoder.layers.mlp.down.%", "encoder.layers.{}.mlp.dense_4h_to_h.%"},
    {"decoder.final_norm.%", "encoder.final_layernorm.%"},
    {"head.language_model.%", "output_layer.%"},
    {"head.classifier.%", "classifier_head.%"},
};

/// The vendor's configs name the inner class, ChatGLMModel, which has the head.
ModelClasses chatglm_classes() {
  const HeadReader language_model = [](ConfigReader& config) {
    return language_model_head(language_model_of(config, {.float32_logits = true}));
  };
  const HeadReader sequence = [](ConfigReader&) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::last_token;
    return classifier_head(classifier);
  };
  return ModelClasses{{{"ChatGLMModel", language_model},
                       {"ChatGLMForConditionalGeneration", language_model},
                       {"ChatGLMForSequenceClassification", sequence}}};
}

/// GGUF holds RoPE's base.
void finish_chatglm(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const auto base = metadata.value("rope.freq_base");
  if (base && base->is_number()) config.set_number("rope_ratio", base->get<double>() / kBase);
  config.copy(metadata, "attention.key_length", "kv_channels");
  // Files of GLM-4 in Hugging Face's layout store the three biases apart.
  if (metadata.has_tensor("blk.0.attn_q.bias")) config.set_flag("add_qkv_bias", true);
}

}  // namespace

std::vector<Family> chatglm_families() {
  return {{.model_types = {"chatglm"},
           .classes = chatglm_classes(),
           .reader = read_chatglm,
           .names = NameTable{{kChatglm},
                              {"transformer."},
                              {{"rotary_pos_emb.inv_freq", ExtraKind::rotary_buffer}}},
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "chatglm",
                              .own = {{"context_length", "seq_length"},
                                      {"embedding_length", "hidden_size"},
                                      {"block_count", "num_layers"},
                                      {"feed_forward_length", "ffn_hidden_size"},
                                      {"attention.head_count", "num_attention_heads"},
                                      {"attention.head_count_kv", "multi_query_group_num"},
                                      {"attention.layer_norm_rms_epsilon", "layernorm_epsilon"}},
                              .flags = {{"blk.0.attn_qkv.bias", "add_qkv_bias"}},
                              .constants = {{"multi_query_attention", "true"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_chatglm}})}};
}

}  // namespace headroom::detail
