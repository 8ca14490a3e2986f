// BEiT and Data2Vec's images: ViT with biases by relative position in place of positions, layer
// scale, and keys without a bias (arXiv 2106.08254, 2202.03555; transformers, models/beit,
// models/data2vec).
#include <string>

#include "../family.h"
#include "../towers/tower_weights.h"
#include "../vision_transformer.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kMasked = "ForMaskedImageModeling";
constexpr std::string_view kWithoutPooler = "Data2VecVisionModel";

/// One number per head for each offset of two patches, and for those of the class token.
void count_patch_offsets(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kOfClassToken = 3;  // to, from and with itself
  const std::int64_t in_layers =
      config.flag_or({"use_relative_position_bias"}, false) ? spec.encoder->num_layers : 0;
  const std::int64_t shared = config.flag_or({"use_shared_relative_position_bias"}, false) ? 1 : 0;
  if (in_layers + shared == 0) return;
  const ImageSpec& image = *spec.embedding.image;
  const std::int64_t offsets = 2 * (image.image_size / image.patch_size) - 1;
  const std::int64_t rows = product(config, "image_size", offsets, offsets) + kOfClassToken;
  spec.counted_only.push_back({"layers.relative_positions",
                               {rows, spec.encoder->self_attention.num_attention_heads},
                               WeightRole::embedding,
                               in_layers + shared,
                               ModelPart::vision,
                               CountedUse::loaded});
  spec.not_run = "its biases by relative position have no kernel yet";
}

/// The head of masked images predicts a token of a codebook for each patch, after a norm.
void count_visual_tokens(ConfigReader& config, ModelSpec& spec) {
  const bool pools = config.flag_or({"use_mean_pooling"}, true);
  const std::int64_t tokens = config.size_or({"vocab_size"}, 8192);
  if (!spec.architecture.ends_with(kMasked)) return;
  TowerWeights head(spec, ModelPart::vision);
  // With mean pooling, the model has no norm of its own before this one.
  if (!pools) head.norm(NormKind::layer_norm, "head.norm", spec.hidden_size);
  head.linear("head.tokens", spec.hidden_size, tokens, WeightRole::head);
  spec.not_run = "its head has no kernel yet";
}

void read_beit(ConfigReader& config, ModelSpec& spec) {
  read_vision_transformer(config, spec, PrefixTokens::class_token);
  StackSpec& stack = *spec.encoder;
  stack.self_attention.key_bias = false;
  stack.layer_scale = config.number_or({"layer_scale_init_value"}, 0.1) > 0;
  stack.ffn = {FfnKind::plain, config.size({"intermediate_size"}),
               read_activation(config, {"hidden_act"}, ActivationKind::gelu), true};
  if (!config.flag_or({"use_absolute_position_embeddings"}, false)) spec.position = {};
  // With mean pooling, the only norm behind the layers is the pooler's.
  const bool has_pooler = spec.architecture != kWithoutPooler;
  const bool pools = config.flag_or({"use_mean_pooling"}, true);
  if (pools && !has_pooler) stack.final_norm.reset();
  if (config.flag_or({"use_mask_token"}, false)) {
    spec.counted_only.push_back({"embeddings.mask_token",
                                 {1, 1, spec.hidden_size},
                                 WeightRole::embedding,
                                 1,
                                 ModelPart::vision,
                                 CountedUse::loaded});
  }
  // The classes that pool are those with a head of classes, and the model alone of BEiT.
  const bool takes_mean = pools && has_pooler && !spec.architecture.ends_with(kMasked);
  spec.not_run = takes_mean ? "the mean of its patches has no kernel yet"
                            : "its outputs have not been compared with the reference code";
  count_patch_offsets(config, spec);
  count_visual_tokens(config, spec);
  // Keys of training, and of a class for segmentation that is not read.
  config.ignore({"drop_path_rate", "pool_scales", "use_auxiliary_head", "auxiliary_loss_weight",
                 "auxiliary_channels", "auxiliary_num_convs", "auxiliary_concat_input",
                 "semantic_loss_ignore_index", "add_fpn", "reshape_hidden_states", "out_features",
                 "out_indices", "stage_names", "segmentation_indices"});
}

ModelClasses beit_classes(const std::string& prefix) {
  const auto image = [](ConfigReader&) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::first_token;
    return classifier_head(classifier);
  };
  return ModelClasses{{{prefix + "ForImageClassification", image}, {prefix + "Model", no_head}}};
}

}  // namespace

std::vector<Family> beit_families() {
  constexpr std::string_view kNoGguf = "GGUF stores vision towers only with a text model";
  constexpr std::string_view kNoNames = "its tensors have no stored names yet";
  const ModelClasses masked{{{std::string("Beit") + std::string(kMasked), no_head}}};
  return {{.model_types = {"beit"},
           .classes = either_of(beit_classes("Beit"), masked),
           .reader = read_beit,
           .names = None(kNoNames),
           .gguf = None(kNoGguf)},
          {.model_types = {"data2vec-vision"},
           .classes = beit_classes("Data2VecVision"),
           .reader = read_beit,
           .names = None(kNoNames),
           .gguf = None(kNoGguf)}};
}

}  // namespace headroom::detail
