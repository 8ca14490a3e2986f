// CLIP and SigLIP: a text encoder and an image encoder whose outputs are compared (arXiv
// 2103.00020, 2303.15343).
#include <fmt/format.h>

#include "../common_keys.h"
#include "../family.h"
#include "../towers/encoder_specs.h"
#include "../towers/tower_names.h"

namespace headroom::detail {
namespace {

/// Sizes that a text_config may omit, and the choices in which both families differ.
struct TextEncoder {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_layers = 12;
  std::int64_t num_heads = 0;
  std::int64_t max_positions = 0;
  double norm_eps = 0;
  ActivationKind activation = ActivationKind::gelu;
  bool causal = false;
};

constexpr TextEncoder kClipText{49408, 512, 2048, 12, 8, 77, 1e-5, ActivationKind::quick_gelu,
                                true};
constexpr TextEncoder kSiglipText{32000, 768, 3072, 12, 12, 64, 1e-6, ActivationKind::gelu_tanh,
                                  false};

void read_text(ConfigReader& text, ModelSpec& spec, const TextEncoder& absent) {
  spec.kind = ModelKind::encoder;
  spec.hidden_size = text.size_or({"hidden_size"}, absent.hidden_size);
  spec.embedding.vocab_size = text.size_or({"vocab_size"}, absent.vocab_size);
  spec.position.kind = PositionKind::learned;
  spec.position.max_position_embeddings =
      text.size_or({"max_position_embeddings"}, absent.max_positions);

  StackSpec stack;
  stack.num_layers = text.layers_or({"num_hidden_layers"}, absent.num_layers);
  stack.self_attention = multi_head_attention(
      text, "num_attention_heads", text.size_or({"num_attention_heads"}, absent.num_heads),
      spec.hidden_size);
  stack.self_attention.qkv_bias = true;
  stack.self_attention.output_bias = true;
  stack.self_attention.causal = absent.causal;
  stack.whole_sequences = true;
  stack.ffn = {FfnKind::plain, text.size_or({"intermediate_size"}, absent.intermediate_size),
               read_activation(text, {"hidden_act"}, absent.activation), true};
  stack.norm_placement = NormPlacement::pre;
  stack.norm = {NormKind::layer_norm, true, text.number_or({"layer_norm_eps"}, absent.norm_eps)};
  stack.final_norm = stack.norm;
  stack.dropout.attention_probs = text.probability_or({"attention_dropout"}, 0);
  spec.encoder = stack;
}

/// Reads the text model of a siglip or siglip2 config. The last token stands for the text.
SimilarityHeadSpec read_siglip_text(ConfigReader& text, ModelSpec& spec) {
  read_text(text, spec, kSiglipText);
  SimilarityHeadSpec head;
  head.projection_dim = text.size_or({"projection_size"}, spec.hidden_size);
  head.projection_bias = true;
  head.logit_bias = true;
  return head;
}

void finish_pair(ConfigReader& text, ConfigReader& vision) {
  text.ignore({"model_type", "initializer_factor", "projection_dim", "dropout",
               "transformers_version", "torch_dtype", "dtype"});
  vision.ignore(
      {"model_type", "projection_dim", "dropout", "transformers_version", "torch_dtype", "dtype"});
  text.finish();
  vision.finish();
}

/// Reads which token stands for a text: the end of text, the first one if padding repeats it.
/// Older configs state its id as 2, whatever it is; their vocabulary ends with it. Source:
/// CLIPTextTransformer, transformers, models/clip.
void read_end_token(ConfigReader& text, SimilarityHeadSpec& head) {
  constexpr std::int64_t kLegacyEnd = 2;
  head.token_id = text.count_or({"eos_token_id"}, 49407);
  head.pooling =
      head.token_id == kLegacyEnd ? TokenPooling::greatest_id : TokenPooling::first_of_id;
}

void read_clip_pair(ConfigReader& config, ModelSpec& spec) {
  ConfigReader text = config.object_or_empty("text_config");
  ConfigReader vision = config.object_or_empty("vision_config");
  config.ignore(
      {"logit_scale_init_value", "initializer_factor", "text_config_dict", "vision_config_dict"});
  read_text(text, spec, kClipText);
  SimilarityHeadSpec head;
  head.projection_dim = config.size_or({"projection_dim"}, 512);
  read_end_token(text, head);
  TowerSpec tower = read_pooled_clip(vision);
  tower.projector.steps = {LinearStep{"linear", head.projection_dim, false}, UnitLengthStep{}};
  spec.head.similarity = head;
  spec.tower = std::move(tower);
  finish_pair(text, vision);
}

using TowerReader = TowerSpec (*)(ConfigReader& vision);

void read_siglip_pair(ConfigReader& config, ModelSpec& spec, TowerReader read_tower) {
  ConfigReader text = config.object_or_empty("text_config");
  ConfigReader vision = config.object_or_empty("vision_config");
  config.ignore({"initializer_factor"});
  spec.head.similarity = read_siglip_text(text, spec);
  TowerSpec tower = read_tower(vision);
  if (tower.hidden_size != spec.head.similarity->projection_dim) {
    text.fail("projection_size",
              fmt::format("{} differs from the image encoder's hidden_size {}, so their outputs "
                          "cannot be compared",
                          spec.head.similarity->projection_dim, tower.hidden_size),
              "use the image encoder's hidden_size");
  }
  tower.projector.steps = {UnitLengthStep{}};
  spec.tower = std::move(tower);
  finish_pair(text, vision);
}

/// An image encoder as a model of its own.
void use_alone(TowerSpec tower, ModelSpec& spec) {
  spec.kind = ModelKind::encoder;
  spec.hidden_size = tower.hidden_size;
  spec.embedding = std::move(tower.embedding);
  spec.position = std::move(tower.position);
  spec.encoder = std::move(tower.stack);
}

using EncoderReader = TowerSpec (*)(ConfigReader& vision, ModelSpec& spec);

/// The image encoder of a config of both, which classifies images by the mean of their patches.
void read_image_classifier(ConfigReader& config, ModelSpec& spec, EncoderReader read_encoder) {
  ConfigReader vision = config.object_or_empty("vision_config");
  config.ignore({"text_config", "projection_dim", "logit_scale_init_value", "initializer_factor",
                 "text_config_dict", "vision_config_dict"});
  use_alone(read_encoder(vision, spec), spec);
  vision.ignore(
      {"model_type", "projection_dim", "dropout", "transformers_version", "torch_dtype", "dtype"});
  vision.finish();
}

void read_clip_model(ConfigReader& config, ModelSpec& spec) {
  if (spec.head.classifier) return read_image_classifier(config, spec, read_clip);
  read_clip_pair(config, spec);
}

void read_siglip_model(ConfigReader& config, ModelSpec& spec) {
  if (spec.head.classifier) return read_image_classifier(config, spec, read_siglip);
  read_siglip_pair(config, spec, read_pooled_siglip);
}

void read_siglip2_model(ConfigReader& config, ModelSpec& spec) {
  if (spec.head.classifier) {
    read_image_classifier(config, spec, read_siglip2);
    spec.not_run = "images cut into patches do not run without a text encoder yet";
    return;
  }
  read_siglip_pair(config, spec, read_pooled_siglip2);
}

/// The pair, and a classifier of images.
ModelClasses pair_classes(const std::string& prefix) {
  const auto image = [](ConfigReader&) {
    ClassifierSpec classifier;
    classifier.input = ClassifierInput::mean_token;
    return classifier_head(classifier);
  };
  return ModelClasses{{{prefix + "Model", no_head}, {prefix + "ForImageClassification", image}}};
}

/// Counts the projection of the pooled token to the space of both encoders, if the class has one.
void count_projection(ConfigReader& config, ModelSpec& spec, ModelPart part,
                      const std::string& path) {
  const std::int64_t width = config.size_or({"projection_dim"}, 512);
  if (!spec.architecture.ends_with("WithProjection")) return;
  spec.counted_only.push_back(
      {path, {width, spec.hidden_size}, WeightRole::head, 1, part, CountedUse::part_not_run});
  spec.not_run = "the projection of its pooled output does not run without the other encoder yet";
}

/// CLIP's text encoder as a model of its own (the text encoders of diffusion pipelines).
void read_clip_text(ConfigReader& config, ModelSpec& spec) {
  read_text(config, spec, kClipText);
  config.ignore({"initializer_factor", "dropout"});
  count_projection(config, spec, ModelPart::text, "head.text_projection.weight");
}

/// SigLIP's, with the projection of the last token, which the hidden states do not pass.
void read_siglip_text_model(ConfigReader& config, ModelSpec& spec) {
  const SimilarityHeadSpec head = read_siglip_text(config, spec);
  TowerWeights unread(spec, ModelPart::text, CountedUse::loaded);
  unread.linear("head.text_projection", spec.hidden_size, head.projection_dim, WeightRole::head);
  config.ignore({"projection_dim", "initializer_factor", "dropout"});
}

void read_clip_vision_model(ConfigReader& config, ModelSpec& spec) {
  use_alone(read_clip(config, spec), spec);
  config.ignore({"dropout"});
  count_projection(config, spec, ModelPart::vision, "head.visual_projection.weight");
}

void read_siglip_vision_model(ConfigReader& config, ModelSpec& spec) {
  use_alone(read_siglip(config, spec), spec);
  config.ignore({"dropout"});
}

constexpr None kNoGguf("GGUF stores image encoders only with a text model");

}  // namespace

std::vector<Family> clip_families() {
  return {
      {.model_types = {"clip"},
       .classes = pair_classes("CLIP"),
       .reader = read_clip_model,
       .names = clip_names(),
       .gguf = kNoGguf},
      {.model_types = {"siglip"},
       .classes = pair_classes("Siglip"),
       .reader = read_siglip_model,
       .names = clip_names(),
       .gguf = kNoGguf},
      {.model_types = {"siglip2"},
       .classes = pair_classes("Siglip2"),
       .reader = read_siglip2_model,
       .names = clip_names(),
       .gguf = kNoGguf},
      {.model_types = {"clip_text_model"},
       .classes = either_of(one_class("CLIPTextModel"), one_class("CLIPTextModelWithProjection")),
       .reader = read_clip_text,
       .names = clip_text_names(),
       .gguf = kNoGguf},
      {.model_types = {"clip_vision_model"},
       .classes =
           either_of(one_class("CLIPVisionModel"), one_class("CLIPVisionModelWithProjection")),
       .reader = read_clip_vision_model,
       .names = clip_vision_names(),
       .gguf = kNoGguf},
      {.model_types = {"siglip_text_model"},
       .classes = one_class("SiglipTextModel"),
       .reader = read_siglip_text_model,
       .names = clip_text_names(),
       .gguf = kNoGguf},
      {.model_types = {"siglip_vision_model"},
       .classes = one_class("SiglipVisionModel"),
       .reader = read_siglip_vision_model,
       .names = clip_vision_names(),
       .gguf = kNoGguf}};
}

}  // namespace headroom::detail
