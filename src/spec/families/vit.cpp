// Vision Transformer: image patches and a class token through a pre-norm encoder (arXiv
// 2010.11929). DeiT adds a distillation token (arXiv 2012.12877). ViT-MSN is ViT without a pooler
// (arXiv 2204.07141).
#include "../family.h"
#include "../towers/tower_weights.h"
#include "../vision_transformer.h"

namespace headroom::detail {
namespace {

HeadReader image_classifier(ClassifierInput input) {
  return [input](ConfigReader&) {
    ClassifierSpec classifier;
    classifier.input = input;
    return classifier_head(classifier);
  };
}

ModelClasses vit_classes() {
  return ModelClasses{
      {{"ViTModel", pooler_head},
       {"ViTForImageClassification", image_classifier(ClassifierInput::first_token)},
       {"ViTForMaskedImageModeling", no_head}}};
}

ModelClasses deit_classes() {
  return ModelClasses{
      {{"DeiTModel", pooler_head},
       {"DeiTForImageClassification", image_classifier(ClassifierInput::first_token)},
       {"DeiTForImageClassificationWithTeacher",
        image_classifier(ClassifierInput::first_two_tokens)},
       {"DeiTForMaskedImageModeling", no_head}}};
}

/// …ForMaskedImageModeling: a token in the place of masked patches, and a convolution of 1 × 1 from
/// each token to the pixels of a patch. Counted; they do not run.
void count_masked_images(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t side = config.size_or({"encoder_stride"}, 16);
  const std::int64_t channels = config.size_or({"num_channels"}, 3);
  if (!spec.architecture.ends_with("ForMaskedImageModeling")) return;
  const std::int64_t pixels = product(config, "encoder_stride", side, side);
  const std::int64_t values = product(config, "encoder_stride", pixels, channels);
  TowerWeights masked(spec, ModelPart::text, CountedUse::part_not_run);
  masked.add("embeddings.mask_token", {1, 1, spec.hidden_size}, WeightRole::embedding);
  masked.add("head.decoder.weight", {values, spec.hidden_size, 1, 1}, WeightRole::head);
  masked.add("head.decoder.bias", {values}, WeightRole::head);
  spec.not_run = "its masked patches and its decoder of pixels have no kernels yet";
}

void read_vit_like(ConfigReader& config, ModelSpec& spec, PrefixTokens prefix) {
  spec.head.pooler_activation = read_activation(config, {"pooler_act"}, ActivationKind::tanh);
  read_vision_transformer(config, spec, prefix);
  const std::int64_t size = config.size_or({"pooler_output_size"}, spec.hidden_size);
  if (size != spec.hidden_size) spec.head.pooler_size = size;
  count_masked_images(config, spec);
  spec.encoder->ffn = {FfnKind::plain, config.size({"intermediate_size"}),
                       read_activation(config, {"hidden_act"}, ActivationKind::gelu), true};
}

void read_vit(ConfigReader& config, ModelSpec& spec) {
  read_vit_like(config, spec, PrefixTokens::class_token);
}

void read_deit(ConfigReader& config, ModelSpec& spec) {
  read_vit_like(config, spec, PrefixTokens::class_and_distillation);
}

/// ViT-MSN: ViT without a pooler, whose norms have another epsilon.
void read_vit_msn(ConfigReader& config, ModelSpec& spec) {
  read_vision_transformer(config, spec, PrefixTokens::class_token);
  spec.encoder->norm.eps = config.number_or({"layer_norm_eps"}, 1e-6);
  spec.encoder->final_norm = spec.encoder->norm;
  spec.encoder->ffn = {FfnKind::plain, config.size({"intermediate_size"}),
                       read_activation(config, {"hidden_act"}, ActivationKind::gelu), true};
}

constexpr NameRule kMaskedImages[] = {
    {"embeddings.mask_token", "embeddings.mask_token"},
    {"head.decoder.%", "decoder.0.%"},
};

constexpr NameRule kDeit[] = {
    {"embeddings.distillation_token", "embeddings.distillation_token"},
    {"head.distillation_classifier.%", "distillation_classifier.%"},
    {"head.classifier.%", "cls_classifier.%"},
};

}  // namespace

std::vector<Family> vit_families() {
  return {{.model_types = {"vit"},
           .classes = vit_classes(),
           .reader = read_vit,
           .names = NameTable{{vit_rules(), kMaskedImages}, {"vit."}, {}},
           .gguf = None("GGUF stores vision towers only with a text model")},
          {.model_types = {"vit_msn"},
           .classes = ModelClasses{{{"ViTMSNModel", no_head},
                                    {"ViTMSNForImageClassification",
                                     image_classifier(ClassifierInput::first_token)}}},
           .reader = read_vit_msn,
           .names = NameTable{{vit_rules()}, {"vit."}, {}},
           .gguf = None("GGUF stores vision towers only with a text model")},
          {.model_types = {"deit"},
           .classes = deit_classes(),
           .reader = read_deit,
           .names = NameTable{{kDeit, vit_rules(), kMaskedImages},
                              {"deit."},
                              {{"pooler.dense.weight", ExtraKind::unused_head},
                               {"pooler.dense.bias", ExtraKind::unused_head}}},
           .gguf = None("GGUF stores vision towers only with a text model")}};
}

}  // namespace headroom::detail
