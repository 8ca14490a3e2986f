// Vision Transformer: image patches and a class token through a pre-norm encoder (arXiv
// 2010.11929). DeiT adds a distillation token (arXiv 2012.12877). ViT-MSN is ViT without a pooler
// (arXiv 2204.07141).
#include "../family.h"
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
       {"ViTForImageClassification", image_classifier(ClassifierInput::first_token)}}};
}

ModelClasses deit_classes() {
  return ModelClasses{
      {{"DeiTModel", pooler_head},
       {"DeiTForImageClassification", image_classifier(ClassifierInput::first_token)},
       {"DeiTForImageClassificationWithTeacher",
        image_classifier(ClassifierInput::first_two_tokens)}}};
}

void read_vit_like(ConfigReader& config, ModelSpec& spec, PrefixTokens prefix) {
  config.ignore({"encoder_stride"});  // only for masked image modelling
  spec.head.pooler_activation = read_activation(config, {"pooler_act"}, ActivationKind::tanh);
  read_vision_transformer(config, spec, prefix);
  const std::int64_t size = config.size_or({"pooler_output_size"}, spec.hidden_size);
  if (size != spec.hidden_size) spec.head.pooler_size = size;
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
           .names = NameTable{{vit_rules()}, {"vit."}, {}},
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
           .names = NameTable{{kDeit, vit_rules()},
                              {"deit."},
                              {{"pooler.dense.weight", ExtraKind::unused_head},
                               {"pooler.dense.bias", ExtraKind::unused_head}}},
           .gguf = None("GGUF stores vision towers only with a text model")}};
}

}  // namespace headroom::detail
