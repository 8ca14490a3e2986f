// ModernBERT: pre-norm encoder without biases, GeGLU, windows in two of three layers, RoPE (arXiv
// 2412.13663). Its decoder has the same layers with a causal mask (Ettin, arXiv 2507.11412).
#include <utility>

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

ClassifierInput read_pooling(ConfigReader& config) {
  return config.choice_or<ClassifierInput>(
      {"classifier_pooling"},
      {{"cls", ClassifierInput::first_token}, {"mean", ClassifierInput::mean_token}},
      ClassifierInput::first_token);
}

ClassifierSpec modernbert_classifier(ConfigReader& config, ClassifierInput input) {
  ClassifierSpec head;
  head.input = input;
  head.dense = read_activation(config, {"classifier_activation"}, ActivationKind::gelu);
  head.dense_bias = config.flag_or({"classifier_bias"}, false);
  head.dense_norm = NormSpec{NormKind::layer_norm, config.flag_or({"norm_bias"}, false),
                             config.number_or({"norm_eps"}, 1e-5)};
  head.dropout = config.probability_or({"classifier_dropout"}, 0);
  return head;
}

ModelClasses modernbert_classes() {
  const auto masked = [](ConfigReader& config) {
    LanguageModelHeadSpec head = language_model_of(config, {.tied = true});
    head.bias = config.flag_or({"decoder_bias"}, true);
    head.transform = read_activation(config, {"classifier_activation"}, ActivationKind::gelu);
    head.transform_bias = config.flag_or({"classifier_bias"}, false);
    return language_model_head(head);
  };
  const auto sequence = [](ConfigReader& config) {
    return classifier_head(modernbert_classifier(config, read_pooling(config)));
  };
  const auto tokens = [](ConfigReader& config) {
    return classifier_head(modernbert_classifier(config, ClassifierInput::every_token));
  };
  const auto spans = [](ConfigReader& config) {
    ClassifierSpec head = modernbert_classifier(config, ClassifierInput::every_token);
    head.spans = true;
    return classifier_head(head);
  };
  const auto choice = [](ConfigReader& config) {
    ClassifierSpec head = modernbert_classifier(config, read_pooling(config));
    head.num_labels = 1;
    return classifier_head(head);
  };
  return ModelClasses{{{"ModernBertModel", no_head},
                       {"ModernBertForMaskedLM", masked},
                       {"ModernBertForSequenceClassification", sequence},
                       {"ModernBertForTokenClassification", tokens},
                       {"ModernBertForQuestionAnswering", spans},
                       {"ModernBertForMultipleChoice", choice}}};
}

/// Every n-th layer has full attention; the others have a centred window and another RoPE theta.
/// The first layer has no attention norm, because the embedding ends with one.
void read_layers(ConfigReader& config, ModelSpec& spec, StackSpec& stack) {
  const std::int64_t every = config.size_or({"global_attn_every_n_layers"}, 3);
  const std::int64_t span = config.size_or({"local_attention"}, 128);
  RopeSpec global;
  global.theta = config.number_or({"global_rope_theta"}, 160000);
  RopeSpec local;
  local.theta = config.is_null("local_rope_theta") ? global.theta
                                                   : config.number_or({"local_rope_theta"}, 10000);
  const std::int64_t head_dim = stack.self_attention.head_dim;
  spec.position.rope = read_rope_of(config, "full_attention", spec.position, head_dim, global);
  local = read_rope_of(config, "sliding_attention", spec.position, head_dim, local);
  const auto rule = [every](std::int64_t layer) { return layer % every != 0; };
  std::vector<bool> full = read_windowed_layers(config, stack.num_layers, rule);
  full.flip();
  vary_layers(stack, full, [&](LayerVariant& variant) {
    variant.self_attention.window = {WindowKind::centred, span / 2};
    variant.self_attention.rope = local;
  });
  std::vector<bool> normed(static_cast<std::size_t>(stack.num_layers), true);
  normed.front() = false;
  vary_layers(stack, normed, [](LayerVariant& variant) { variant.self_attention.norm = false; });
}

void read_modernbert(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings = config.size_or({"max_position_embeddings"}, 8192);

  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers"});
  stack.self_attention = multi_head_attention(
      config, "num_attention_heads", config.size({"num_attention_heads"}), spec.hidden_size);
  stack.self_attention.qkv_bias = config.flag_or({"attention_bias"}, false);
  stack.self_attention.output_bias = stack.self_attention.qkv_bias;
  stack.self_attention.softmax = SoftmaxPrecision::float32;
  stack.ffn = {FfnKind::gated, config.size({"intermediate_size"}),
               read_activation(config, {"hidden_activation"}, ActivationKind::gelu),
               config.flag_or({"mlp_bias"}, false)};
  stack.norm = {NormKind::layer_norm, config.flag_or({"norm_bias"}, false),
                config.number_or({"norm_eps"}, 1e-5)};
  stack.final_norm = stack.norm;
  spec.embedding.norm = stack.norm;
  stack.dropout.embedding = config.probability_or({"embedding_dropout"}, 0);
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  stack.dropout.ffn_activation = config.probability_or({"mlp_dropout"}, 0);
  read_layers(config, spec, stack);
  config.ignore({"deterministic_flash_attn", "sparse_prediction", "sparse_pred_ignore_index",
                 "reference_compile", "repad_logits_with_grad", "initializer_cutoff_factor",
                 "layer_norm_eps", "position_embedding_type", "classifier_dropout",
                 "classifier_bias", "classifier_activation", "decoder_bias"});
  spec.encoder = stack;
}

/// The decoder: windows reach half as far back as the encoder's span.
void read_modernbert_decoder(ConfigReader& config, ModelSpec& spec) {
  read_modernbert(config, spec);
  config.ignore({"sliding_window"});  // half of local_attention, as the class derives it
  StackSpec stack = *spec.encoder;
  const auto look_back = [](AttentionSpec& attention) {
    attention.causal = true;
    if (attention.window.kind == WindowKind::none) return;
    attention.window.kind = WindowKind::sliding;
  };
  look_back(stack.self_attention);
  for (LayerVariant& variant : stack.variants) look_back(variant.self_attention);
  spec.kind = ModelKind::decoder;
  spec.decoder = std::move(stack);
  spec.encoder.reset();
}

ModelClasses modernbert_decoder_classes() {
  const auto words = [](ConfigReader& config) {
    LanguageModelHeadSpec head = language_model_of(config, {.tied = true});
    head.bias = config.flag_or({"decoder_bias"}, true);
    head.transform = read_activation(config, {"classifier_activation"}, ActivationKind::gelu);
    head.transform_bias = config.flag_or({"classifier_bias"}, false);
    return language_model_head(head);
  };
  const auto sequence = [](ConfigReader& config) {
    ClassifierSpec head = modernbert_classifier(config, ClassifierInput::last_token);
    head.bias = config.flag_or({"classifier_bias"}, false);
    head.token_id = read_token_id(config, "pad_token_id");
    return classifier_head(head);
  };
  return ModelClasses{{{"ModernBertDecoderForCausalLM", words},
                       {"ModernBertDecoderModel", no_head},
                       {"ModernBertDecoderForSequenceClassification", sequence}}};
}

constexpr NameRule kModernbert[] = {
    {"embeddings.word_embeddings.%", "embeddings.tok_embeddings.%"},
    {"embeddings.norm.%", "embeddings.norm.%"},
    {"encoder.layers.attention_norm.%", "layers.{}.attn_norm.%"},
    {"encoder.layers.attention.query.%", "layers.{}.attn.Wqkv.%", part(0)},
    {"encoder.layers.attention.key.%", "layers.{}.attn.Wqkv.%", part(1)},
    {"encoder.layers.attention.value.%", "layers.{}.attn.Wqkv.%", part(2)},
    {"encoder.layers.attention.output.%", "layers.{}.attn.Wo.%"},
    {"encoder.layers.mlp_norm.%", "layers.{}.mlp_norm.%"},
    {"encoder.layers.mlp.gate.%", "layers.{}.mlp.Wi.%", part(0)},
    {"encoder.layers.mlp.up.%", "layers.{}.mlp.Wi.%", part(1)},
    {"encoder.layers.mlp.down.%", "layers.{}.mlp.Wo.%"},
    {"encoder.final_norm.%", "final_norm.%"},
    {"head.transform.dense.%", "head.dense.%"},
    {"head.transform.norm.%", "head.norm.%"},
    {"head.language_model.%", "decoder.%"},
    {"head.classifier.dense.%", "head.dense.%"},
    {"head.classifier.norm.%", "head.norm.%"},
    {"head.classifier.%", "classifier.%"},
};

constexpr NameRule kModernbertDecoder[] = {
    {"embeddings.word_embeddings.%", "embeddings.tok_embeddings.%"},
    {"embeddings.norm.%", "embeddings.norm.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.attn_norm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "layers.{}.attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "layers.{}.attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.attn.Wo.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.mlp_norm.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp.Wi.%", part(0)},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.Wi.%", part(1)},
    {"decoder.layers.mlp.down.%", "layers.{}.mlp.Wo.%"},
    {"decoder.final_norm.%", "final_norm.%"},
    {"head.transform.dense.%", "lm_head.dense.%"},
    {"head.transform.norm.%", "lm_head.norm.%"},
    {"head.language_model.%", "decoder.%"},
    {"head.classifier.dense.%", "head.dense.%"},
    {"head.classifier.norm.%", "head.norm.%"},
    {"head.classifier.%", "classifier.%"},
};

NameTable modernbert_decoder_names() {
  return {{kModernbertDecoder},
          {"model."},
          {{"decoder.weight", ExtraKind::tied_copy},
           {"decoder.bias", ExtraKind::unused_head},
           {"lm_head.", ExtraKind::unused_head, NamePart::beginning}}};
}

}  // namespace

std::vector<Family> modernbert_families() {
  return {{.model_types = {"modernbert"},
           .classes = modernbert_classes(),
           .reader = read_modernbert,
           .names = NameTable{{kModernbert},
                              {"model."},
                              {{"decoder.weight", ExtraKind::tied_copy},
                               {"decoder.bias", ExtraKind::unused_head},
                               {"head.dense.weight", ExtraKind::unused_head},
                               {"head.dense.bias", ExtraKind::unused_head},
                               {"head.norm.weight", ExtraKind::unused_head},
                               {"head.norm.bias", ExtraKind::unused_head}}},
           .gguf = GgufForm(
               GgufConversion::none,
               {{.name = "modern-bert",
                 .own = {{"context_length", "max_position_embeddings"},
                         {"embedding_length", "hidden_size"},
                         {"block_count", "num_hidden_layers"},
                         {"feed_forward_length", "intermediate_size"},
                         {"attention.head_count", "num_attention_heads"},
                         {"attention.layer_norm_rms_epsilon", "norm_eps"},
                         {"attention.layer_norm_epsilon", "norm_eps"},
                         {"attention.sliding_window", "local_attention"},
                         {"attention.sliding_window_pattern", "global_attn_every_n_layers"},
                         {"hidden_activation", "hidden_activation"},
                         {"rope.freq_base", "global_rope_theta"},
                         {"rope.freq_base_swa", "local_rope_theta"}},
                 .flags = {{"blk.0.attn_qkv.bias", "attention_bias"},
                           {"blk.0.ffn_up.bias", "mlp_bias"},
                           {"output_norm.bias", "norm_bias"}},
                 .head_dim = GgufHeadDim::never}})},
          {.model_types = {"modernbert-decoder"},
           .classes = modernbert_decoder_classes(),
           .reader = read_modernbert_decoder,
           .names = modernbert_decoder_names(),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
