// T5Gemma: an encoder and a decoder of Gemma 2's layers, with cross-attention between a decoder
// layer's self-attention and its feed-forward network (arXiv 2504.06225).
#include <fmt/format.h>

#include "../common_keys.h"
#include "../family.h"
#include "gemma.h"

namespace headroom::detail {
namespace {

ModelClasses t5gemma_classes() {
  const auto language_model = [](ConfigReader& config) {
    return language_model_head(language_model_of(config, {.tied = true}));
  };
  const auto sequence = [](ConfigReader& config) {
    HeadSpec head = last_token_classifier(config);
    head.classifier->bias = true;
    head.classifier->dropout = config.probability_or({"classifier_dropout_rate"}, 0);
    return head;
  };
  const auto tokens = [](ConfigReader& config) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::every_token;
    classifier.dropout = config.probability_or({"classifier_dropout_rate"}, 0);
    return classifier_head(classifier);
  };
  return ModelClasses{{{"T5GemmaForConditionalGeneration", language_model},
                       {"T5GemmaModel", no_head},
                       {"T5GemmaEncoderModel", no_head},
                       {"T5GemmaForSequenceClassification", sequence},
                       {"T5GemmaForTokenClassification", tokens}}};
}

/// The config of one stack, as a model of its own.
ModelSpec read_stack(ConfigReader& config, std::string_view key, const HeadSpec& head) {
  ConfigReader stack = config.object_or_empty(key);
  stack.use_class_sizes("gemma2");  // T5GemmaModuleConfig has the same
  ModelSpec spec;
  spec.head = head;
  stack.ignore({"model_type", "is_decoder", "cross_attention_hidden_size",
                "classifier_dropout_rate", "tie_word_embeddings"});
  read_gemma2(stack, spec);
  StackSpec& layers = *spec.decoder;
  const double dropout = stack.probability_or({"dropout_rate"}, 0);
  layers.dropout.embedding = dropout;
  layers.dropout.attention_output = dropout;
  layers.dropout.ffn_activation = dropout;
  layers.dropout.ffn_output = dropout;
  layers.dropout.final = dropout;
  spec.torch_dtype = read_dtype(stack, spec);
  expect_usual_layers(stack);
  stack.finish();
  return spec;
}

/// Applies `change` to the attention of every kind of layer.
template <class Change>
void for_each_attention(StackSpec& stack, const Change& change) {
  change(stack.self_attention);
  for (LayerVariant& variant : stack.variants) change(variant.self_attention);
}

/// An encoder's tokens see both sides; a window is a distance.
StackSpec bidirectional(StackSpec stack) {
  for_each_attention(stack, [](AttentionSpec& attention) {
    attention.causal = false;
    if (attention.window.kind == WindowKind::sliding) attention.window.kind = WindowKind::centred;
  });
  return stack;
}

void require_equal(const ConfigReader& config, std::string_view what, std::int64_t encoder,
                   std::int64_t decoder) {
  if (encoder == decoder) return;
  config.fail("encoder",
              fmt::format("has a {} of {}, and the decoder one of {}", what, encoder, decoder),
              "use stacks that agree");
}

void read_t5gemma(ConfigReader& config, ModelSpec& spec) {
  config.ignore({"vocab_size", "dropout_rate", "classifier_dropout_rate", "attention_dropout",
                 "is_encoder_decoder", "use_cache"});
  const ModelSpec encoder = read_stack(config, "encoder", {});
  spec.hidden_size = encoder.hidden_size;
  spec.embedding = encoder.embedding;
  if (spec.torch_dtype.empty()) spec.torch_dtype = encoder.torch_dtype;
  spec.encoder = bidirectional(*encoder.decoder);
  const bool of_encoder = spec.head.classifier && !config.flag_or({"is_encoder_decoder"}, true);
  if (of_encoder || spec.architecture.ends_with("EncoderModel")) {
    config.ignore({"decoder"});
    spec.kind = ModelKind::encoder;
    spec.position = encoder.position;
    return;
  }
  const ModelSpec decoder = read_stack(config, "decoder", spec.head);
  spec.hidden_size = decoder.hidden_size;
  if (encoder.hidden_size != decoder.hidden_size) spec.encoder_hidden_size = encoder.hidden_size;
  require_equal(config, "vocab_size", encoder.embedding.vocab_size, decoder.embedding.vocab_size);
  spec.kind = ModelKind::encoder_decoder;
  spec.head = decoder.head;
  spec.position = decoder.position;
  spec.encoder_position = encoder.position;
  spec.encoder_decoder_embedding = WeightSharing::separate;
  spec.decoder = *decoder.decoder;
  AttentionSpec cross = spec.decoder->self_attention;
  cross.causal = false;
  cross.window = {};
  spec.decoder->cross_attention = cross;
  // It reads the logits of the last token one place further (T5GemmaForSequenceClassification,
  // transformers, models/t5gemma).
  if (spec.head.classifier) {
    spec.not_run =
        "its classifier shifts the decoder's tokens to the right, which does not run yet";
  }
}

constexpr NameRule kT5Gemma[] = {
    {"encoder.embeddings.word_embeddings.%", "encoder.embed_tokens.%"},
    {"decoder.embeddings.word_embeddings.%", "decoder.embed_tokens.%"},
    {"embeddings.word_embeddings.%", "encoder.embed_tokens.%"},
    {"encoder.layers.attention_norm.%", "encoder.layers.{}.pre_self_attn_layernorm.%"},
    {"encoder.layers.attention_output_norm.%", "encoder.layers.{}.post_self_attn_layernorm.%"},
    {"encoder.layers.attention.query.%", "encoder.layers.{}.self_attn.q_proj.%"},
    {"encoder.layers.attention.key.%", "encoder.layers.{}.self_attn.k_proj.%"},
    {"encoder.layers.attention.value.%", "encoder.layers.{}.self_attn.v_proj.%"},
    {"encoder.layers.attention.output.%", "encoder.layers.{}.self_attn.o_proj.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layers.{}.pre_feedforward_layernorm.%"},
    {"encoder.layers.mlp_output_norm.%", "encoder.layers.{}.post_feedforward_layernorm.%"},
    {"encoder.layers.mlp.gate.%", "encoder.layers.{}.mlp.gate_proj.%"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.mlp.up_proj.%"},
    {"encoder.layers.mlp.down.%", "encoder.layers.{}.mlp.down_proj.%"},
    {"encoder.final_norm.%", "encoder.norm.%"},
    {"decoder.layers.attention_norm.%", "decoder.layers.{}.pre_self_attn_layernorm.%"},
    {"decoder.layers.attention_output_norm.%", "decoder.layers.{}.post_self_attn_layernorm.%"},
    {"decoder.layers.attention.query.%", "decoder.layers.{}.self_attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "decoder.layers.{}.self_attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "decoder.layers.{}.self_attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "decoder.layers.{}.self_attn.o_proj.%"},
    {"decoder.layers.cross_attention_norm.%", "decoder.layers.{}.pre_cross_attn_layernorm.%"},
    {"decoder.layers.cross_attention_output_norm.%",
     "decoder.layers.{}.post_cross_attn_layernorm.%"},
    {"decoder.layers.cross_attention.query.%", "decoder.layers.{}.cross_attn.q_proj.%"},
    {"decoder.layers.cross_attention.key.%", "decoder.layers.{}.cross_attn.k_proj.%"},
    {"decoder.layers.cross_attention.value.%", "decoder.layers.{}.cross_attn.v_proj.%"},
    {"decoder.layers.cross_attention.output.%", "decoder.layers.{}.cross_attn.o_proj.%"},
    {"decoder.layers.mlp_norm.%", "decoder.layers.{}.pre_feedforward_layernorm.%"},
    {"decoder.layers.mlp_output_norm.%", "decoder.layers.{}.post_feedforward_layernorm.%"},
    {"decoder.layers.mlp.gate.%", "decoder.layers.{}.mlp.gate_proj.%"},
    {"decoder.layers.mlp.up.%", "decoder.layers.{}.mlp.up_proj.%"},
    {"decoder.layers.mlp.down.%", "decoder.layers.{}.mlp.down_proj.%"},
    {"decoder.final_norm.%", "decoder.norm.%"},
    {"head.language_model.%", "lm_head.out_proj.%"},
    {"head.classifier.%", "score.out_proj.%"},
};

}  // namespace

std::vector<Family> t5gemma_families() {
  return {
      {.model_types = {"t5gemma"},
       .classes = t5gemma_classes(),
       .reader = read_t5gemma,
       .names =
           NameTable{{kT5Gemma}, {"model."}, {{"lm_head.out_proj.weight", ExtraKind::tied_copy}}},
       .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
