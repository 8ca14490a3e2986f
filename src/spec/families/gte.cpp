// GTE: a post-norm encoder with RoPE, gated networks and biases of its attention (arXiv
// 2407.19669).
#include <cmath>

#include "../common_keys.h"
#include "../encoder_heads.h"
#include "../family.h"
#include "../rope.h"

namespace headroom::detail {
namespace {

/// Choices of the publisher's own class (Alibaba-NLP/new-impl), and keys of its kernels.
void expect_gte_choices(ConfigReader& config) {
  config.expect_text("position_embedding_type", "rope");
  config.expect_text("layer_norm_type", "layer_norm");
  config.expect_flag("pack_qkv", true);
  config.expect_flag("logn_attention_scale", false);
  config.ignore({"unpad_inputs", "use_memory_efficient_attention", "logn_attention_clip1"});
}

/// RoPE, whose published "ntk" scaling multiplies the base by its factor f and divides all
/// frequencies by f^(2/d) (vLLM, ntk_scaling_rope.py).
void read_gte_rope(ConfigReader& config, ModelSpec& spec, std::int64_t head_dim) {
  RopeDefaults defaults;
  defaults.theta = 160000;
  auto scaling = config.object("rope_scaling");
  if (!scaling || !scaling->is_text("type", "ntk")) {
    spec.position.rope = read_rope(config, spec.position, head_dim, defaults);
    return;
  }
  scaling->expect_text("type", "ntk");
  const double factor = scaling->number_or({"factor"}, 1);
  if (scaling->has("mixed_b")) config.fail("rope_scaling", "has mixed_b", "leave it out");
  scaling->ignore({"mixed_b"});
  scaling->finish();
  RopeSpec& rope = spec.position.rope;
  rope.theta = config.number_or({"rope_theta"}, defaults.theta) * factor;
  rope.scaling = RopeScalingKind::linear;
  rope.factor = std::pow(factor, 2.0 / static_cast<double>(head_dim));
}

void read_gte(ConfigReader& config, ModelSpec& spec) {
  expect_gte_choices(config);
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size_or_of_class({"hidden_size"}, 768);
  spec.embedding.vocab_size = config.size_or_of_class({"vocab_size"}, 250048);
  spec.embedding.type_vocab_size = config.count_or({"type_vocab_size"}, 1);
  spec.position.kind = PositionKind::rotary;
  spec.position.max_position_embeddings = config.size_or({"max_position_embeddings"}, 8192);
  StackSpec stack;
  stack.num_layers = config.layers_or({"num_hidden_layers"}, 12);
  if (!config.has("num_hidden_layers")) config.note_of_class("num_hidden_layers", "12");
  stack.self_attention =
      multi_head_attention(config, "num_attention_heads",
                           config.size_or_of_class({"num_attention_heads"}, 12), spec.hidden_size);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  read_gte_rope(config, spec, stack.self_attention.head_dim);
  stack.ffn = {FfnKind::gated, config.size_or_of_class({"intermediate_size"}, 3072),
               read_activation(config, {"hidden_act"}, ActivationKind::gelu), false};
  stack.ffn.down_bias = true;
  stack.norm_placement = NormPlacement::post;
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_eps"}, 1e-12)};
  spec.embedding.norm = stack.norm;
  const double dropout = config.probability_or({"hidden_dropout_prob"}, 0.1);
  stack.dropout.embedding = dropout;
  stack.dropout.attention_output = dropout;
  stack.dropout.ffn_output = dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_probs_dropout_prob"}, 0);
  spec.encoder = stack;
}

HeadSpec gte_masked_head(ConfigReader& config) {
  return language_model_head(masked_language_model_head(config, ActivationKind::gelu));
}

HeadSpec new_masked_head(ConfigReader& config) {
  const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
  return language_model_head(masked_language_model_head(config, activation));
}

ModelClasses gte_classes(const std::string& prefix, const HeadReader& masked) {
  return ModelClasses{
      {{prefix + "Model", no_head},
       {prefix + "ForMaskedLM", masked},
       {prefix + "ForSequenceClassification", plain_classifier(ClassifierInput::pooled_token)},
       {prefix + "ForTokenClassification", plain_classifier(ClassifierInput::every_token)}}};
}

constexpr NameRule kGte[] = {
    {"embeddings.word_embeddings.%", "embeddings.word_embeddings.%"},
    {"embeddings.token_type_embeddings.%", "embeddings.token_type_embeddings.%"},
    {"embeddings.norm.%", "embeddings.LayerNorm.%"},
    {"encoder.layers.attention.query.%", "encoder.layer.{}.attention.qkv_proj.%", part(0)},
    {"encoder.layers.attention.key.%", "encoder.layer.{}.attention.qkv_proj.%", part(1)},
    {"encoder.layers.attention.value.%", "encoder.layer.{}.attention.qkv_proj.%", part(2)},
    {"encoder.layers.attention.output.%", "encoder.layer.{}.attention.o_proj.%"},
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.attn_ln.%"},
    {"encoder.layers.mlp.up.%", "encoder.layer.{}.mlp.up_gate_proj.%", part(0)},
    {"encoder.layers.mlp.gate.%", "encoder.layer.{}.mlp.up_gate_proj.%", part(1)},
    {"encoder.layers.mlp.down.%", "encoder.layer.{}.mlp.down_proj.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.mlp_ln.%"},
    {"head.pooler.dense.%", "pooler.dense.%"},
    {"head.transform.dense.%", "lm_head.dense.%"},
    {"head.transform.norm.%", "lm_head.norm.%"},
    {"head.language_model.%", "lm_head.decoder.%"},
    {"head.classifier.%", "classifier.%"},
};

NameTable gte_names() {
  return {{kGte},
          {"gte.", "new."},
          {{"lm_head.", ExtraKind::unused_head, NamePart::beginning},
           {"lm_head.decoder.weight", ExtraKind::tied_copy},
           {"classifier.weight", ExtraKind::unused_head},
           {"classifier.bias", ExtraKind::unused_head},
           {"pooler.dense.weight", ExtraKind::unused_head},
           {"pooler.dense.bias", ExtraKind::unused_head}}};
}

}  // namespace

std::vector<Family> gte_families() {
  return {{.model_types = {"gte", "new"},
           // The class of transformers, whose head has a GELU whatever hidden_act says, and that
           // of the publisher.
           .classes =
               either_of(gte_classes("Gte", gte_masked_head), gte_classes("New", new_masked_head)),
           .reader = read_gte,
           .names = gte_names(),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
