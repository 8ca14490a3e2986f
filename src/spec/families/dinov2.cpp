// DINOv2: a ViT with layer scale, GELU or SwiGLU networks, and positions interpolated to any image
// size (arXiv 2304.07193). DINOv3: RoPE of patches in place of positions, register tokens (arXiv
// 2508.10104).
#include "../common_keys.h"
#include "../family.h"
#include "../vision_transformer.h"

namespace headroom::detail {
namespace {

/// The model's pooled output is its class token.
HeadSpec class_token_head(ConfigReader& /*config*/) {
  HeadSpec head;
  head.first_row_is_pooled = true;
  return head;
}

ModelClasses dinov2_classes(const std::string& prefix) {
  const auto image = [](ConfigReader&) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::first_and_mean;
    return classifier_head(classifier);
  };
  return ModelClasses{{{prefix + "Model", class_token_head},
                       {prefix + "Backbone", no_head},
                       {prefix + "ForImageClassification", image}}};
}

/// Inner width: mlp_ratio · hidden_size. Source: Dinov2MLP, transformers, models/dinov2.
FfnSpec read_network(ConfigReader& config, std::int64_t hidden_size) {
  const std::int64_t width =
      truncated(config, "mlp_ratio", config.number_or({"mlp_ratio"}, 4), hidden_size);
  const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
  if (!config.flag_or({"use_swiglu_ffn"}, false)) return {FfnKind::plain, width, activation, true};
  return {FfnKind::gated, dinov2_gated_width(width), ActivationKind::silu, true};
}

/// Replaces masked patches in training.
void count_mask_token(ModelSpec& spec) {
  spec.counted_only.push_back({"embeddings.mask_token",
                               {spec.hidden_size},
                               WeightRole::embedding,
                               1,
                               ModelPart::vision,
                               CountedUse::loaded});
}

void read_dinov2(ConfigReader& config, ModelSpec& spec) {
  read_vision_transformer(config, spec, PrefixTokens::class_token);
  StackSpec& stack = *spec.encoder;
  spec.embedding.image->interpolation = PositionInterpolation::bicubic;
  stack.ffn = read_network(config, spec.hidden_size);
  stack.layer_scale = true;
  stack.norm.eps = config.number_or({"layer_norm_eps"}, 1e-6);
  stack.final_norm = stack.norm;
  if (config.flag_or({"use_mask_token"}, true)) count_mask_token(spec);
  config.ignore({"layerscale_value", "drop_path_rate", "out_features", "out_indices", "stage_names",
                 "apply_layernorm", "reshape_hidden_states"});
}

/// DINOv2 with register tokens behind the class token (arXiv 2309.16588).
void read_dinov2_with_registers(ConfigReader& config, ModelSpec& spec) {
  read_dinov2(config, spec);
  spec.embedding.image->registers = config.count_or({"num_register_tokens"}, 4);
  spec.embedding.image->interpolation = PositionInterpolation::bicubic_antialiased;
}

/// Every projection has a key of its own for its bias.
void read_dinov3_biases(ConfigReader& config, AttentionSpec& attention) {
  attention.qkv_bias = config.flag_or({"query_bias"}, true);
  attention.key_bias = config.flag_or({"key_bias"}, false);
  attention.output_bias = config.flag_or({"proj_bias"}, true);
  if (config.flag_or({"value_bias"}, true) != attention.qkv_bias) {
    config.fail("value_bias", "differs from query_bias", "give both projections a bias, or none");
  }
  if (attention.key_bias && !attention.qkv_bias) {
    config.fail("key_bias", "gives keys a bias that queries lack", "set query_bias, too");
  }
}

/// RoPE of the patches, in place of positions.
void read_dinov3_rope(ConfigReader& config, ModelSpec& spec) {
  spec.position = {};
  spec.position.kind = PositionKind::rotary;
  spec.position.rope.theta = config.number_or({"rope_theta"}, 100);
  if (auto rope = config.object("rope_parameters")) {
    spec.position.rope.theta = rope->number_or({"rope_theta"}, spec.position.rope.theta);
    rope->expect_text("rope_type", "default");
    rope->finish();
  }
  spec.position.rope.axes = RopeAxes::rows_then_columns;
  spec.position.rope.coordinates = PatchCoordinates::centres;
  // They move the patches of training images.
  config.ignore({"pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale"});
}

void read_dinov3(ConfigReader& config, ModelSpec& spec) {
  read_vision_transformer(config, spec, PrefixTokens::class_token);
  read_dinov3_rope(config, spec);
  spec.embedding.image->interpolation = PositionInterpolation::any_size;
  spec.embedding.image->registers = config.count_or({"num_register_tokens"}, 0);
  StackSpec& stack = *spec.encoder;
  read_dinov3_biases(config, stack.self_attention);
  const bool gated = config.flag_or({"use_gated_mlp"}, false);
  stack.ffn = {gated ? FfnKind::gated : FfnKind::plain, config.size({"intermediate_size"}),
               read_activation(config, {"hidden_act"}, ActivationKind::gelu),
               config.flag_or({"mlp_bias"}, true)};
  stack.layer_scale = true;
  stack.norm.eps = config.number_or({"layer_norm_eps"}, 1e-5);
  stack.final_norm = stack.norm;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  count_mask_token(spec);
  config.ignore({"layerscale_value", "drop_path_rate", "out_features", "out_indices", "stage_names",
                 "apply_layernorm", "reshape_hidden_states"});
}

constexpr NameRule kDinov2[] = {
    {"embeddings.mask_token", "embeddings.mask_token"},
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.norm1.%"},
    {"encoder.layers.attention_scale.weight", "encoder.layer.{}.layer_scale1.lambda1"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.norm2.%"},
    {"encoder.layers.mlp_scale.weight", "encoder.layer.{}.layer_scale2.lambda1"},
    {"encoder.layers.mlp.gate.%", "encoder.layer.{}.mlp.weights_in.%", part(0)},
    {"encoder.layers.mlp.up.%", "encoder.layer.{}.mlp.weights_in.%", part(1)},
    {"encoder.layers.mlp.down.%", "encoder.layer.{}.mlp.weights_out.%"},
    {"encoder.layers.mlp.up.%", "encoder.layer.{}.mlp.fc1.%"},
    {"encoder.layers.mlp.down.%", "encoder.layer.{}.mlp.fc2.%"},
    {"embeddings.register_tokens", "embeddings.register_tokens"},
};

constexpr NameRule kDinov3[] = {
    {"embeddings.mask_token", "embeddings.mask_token"},
    {"embeddings.class_token", "embeddings.cls_token"},
    {"embeddings.register_tokens", "embeddings.register_tokens"},
    {"embeddings.patch_embeddings.%", "embeddings.patch_embeddings.%"},
    {"encoder.layers.attention_norm.%", "layer.{}.norm1.%"},
    {"encoder.layers.attention.query.%", "layer.{}.attention.q_proj.%"},
    {"encoder.layers.attention.key.%", "layer.{}.attention.k_proj.%"},
    {"encoder.layers.attention.value.%", "layer.{}.attention.v_proj.%"},
    {"encoder.layers.attention.output.%", "layer.{}.attention.o_proj.%"},
    {"encoder.layers.attention_scale.weight", "layer.{}.layer_scale1.lambda1"},
    {"encoder.layers.mlp_norm.%", "layer.{}.norm2.%"},
    {"encoder.layers.mlp_scale.weight", "layer.{}.layer_scale2.lambda1"},
    {"encoder.layers.mlp.gate.%", "layer.{}.mlp.gate_proj.%"},
    {"encoder.layers.mlp.up.%", "layer.{}.mlp.up_proj.%"},
    {"encoder.layers.mlp.down.%", "layer.{}.mlp.down_proj.%"},
    {"encoder.final_norm.%", "norm.%"},
};

}  // namespace

std::vector<Family> dinov2_families() {
  return {{.model_types = {"dinov2"},
           .classes = dinov2_classes("Dinov2"),
           .reader = read_dinov2,
           .names = NameTable{{kDinov2, vit_rules()}, {"dinov2."}, {}},
           .gguf = None("GGUF stores vision towers only with a text model")},
          {.model_types = {"dinov2_with_registers"},
           .classes = dinov2_classes("Dinov2WithRegisters"),
           .reader = read_dinov2_with_registers,
           .names = NameTable{{kDinov2, vit_rules()}, {"dinov2_with_registers."}, {}},
           .gguf = None("GGUF stores vision towers only with a text model")},
          {.model_types = {"dinov3_vit"},
           .classes =
               ModelClasses{{{"DINOv3ViTModel", class_token_head}, {"DINOv3ViTBackbone", no_head}}},
           .reader = read_dinov3,
           .names = NameTable{{kDinov3}, {"model.", "dinov3_vit."}, {}},
           .gguf = None("GGUF stores vision towers only with a text model")}};
}

}  // namespace headroom::detail
