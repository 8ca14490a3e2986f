// DINOv2: a ViT with layer scale, GELU or SwiGLU networks, and positions interpolated to any image
// size (arXiv 2304.07193).
#include "../family.h"
#include "../vision_transformer.h"

namespace headroom::detail {
namespace {

ModelClasses dinov2_classes() {
  const auto image = [](ConfigReader&) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::first_and_mean;
    return classifier_head(classifier);
  };
  return ModelClasses{{{"Dinov2Model", no_head},
                       {"Dinov2Backbone", no_head},
                       {"Dinov2ForImageClassification", image}}};
}

/// Inner width: mlp_ratio · hidden_size; a gated network has two thirds of it, rounded up to a
/// multiple of 8. Source: Dinov2MLP and Dinov2SwiGLUFFN, transformers, models/dinov2.
FfnSpec read_network(ConfigReader& config, std::int64_t hidden_size) {
  const auto width = static_cast<std::int64_t>(config.number_or({"mlp_ratio"}, 4) *
                                               static_cast<double>(hidden_size));
  const ActivationKind activation = read_activation(config, {"hidden_act"}, ActivationKind::gelu);
  if (!config.flag_or({"use_swiglu_ffn"}, false)) return {FfnKind::plain, width, activation, true};
  constexpr std::int64_t kGranule = 8;
  const std::int64_t gated = width * 2 / 3;
  return {FfnKind::gated, (gated + kGranule - 1) / kGranule * kGranule, ActivationKind::silu, true};
}

void read_dinov2(ConfigReader& config, ModelSpec& spec) {
  read_vision_transformer(config, spec, PrefixTokens::class_token);
  StackSpec& stack = *spec.encoder;
  spec.embedding.image->interpolation = PositionInterpolation::bicubic;
  stack.ffn = read_network(config, spec.hidden_size);
  stack.layer_scale = true;
  stack.norm.eps = config.number_or({"layer_norm_eps"}, 1e-6);
  stack.final_norm = stack.norm;
  if (config.flag_or({"use_mask_token"}, true)) {
    spec.counted_only.push_back({"embeddings.mask_token",
                                 {spec.hidden_size},
                                 WeightRole::embedding,
                                 1,
                                 ModelPart::vision,
                                 CountedUse::loaded});
  }
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
};

}  // namespace

std::vector<Family> dinov2_families() {
  return {{.model_types = {"dinov2"},
           .classes = dinov2_classes(),
           .reader = read_dinov2,
           .names = NameTable{{kDinov2, vit_rules()}, {"dinov2."}, {}},
           .gguf = None("GGUF stores vision towers only with a text model")}};
}

}  // namespace headroom::detail
