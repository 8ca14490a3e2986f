// CLIP and SigLIP: a text encoder and an image encoder whose outputs are compared (arXiv
// 2103.00020, 2303.15343). The text encoder is the graph; the image encoder is counted.
#include <array>

#include "../common_keys.h"
#include "../family.h"
#include "../towers/image_encoders.h"

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

void count(ModelSpec& spec, const std::string& path, std::vector<std::int64_t> shape) {
  spec.counted_only.push_back({path, std::move(shape), WeightRole::projector, 1,
                               ModelPart::projector, CountedUse::part_not_run});
}

void finish_pair(ConfigReader& text, ConfigReader& vision, ModelSpec& spec) {
  text.ignore({"model_type", "initializer_factor", "projection_dim", "projection_size", "dropout",
               "transformers_version", "torch_dtype", "dtype"});
  vision.ignore(
      {"model_type", "projection_dim", "dropout", "transformers_version", "torch_dtype", "dtype"});
  text.finish();
  vision.finish();
  spec.assumptions.emplace_back(
      "FLOPs, activations and time are those of the text encoder; the image encoder and both "
      "projections count as parameters");
  spec.not_run = "its image encoder and the comparison of both outputs are not in the graph";
}

void read_clip(ConfigReader& config, ModelSpec& spec) {
  ConfigReader text = config.object_or_empty("text_config");
  ConfigReader vision = config.object_or_empty("vision_config");
  config.ignore(
      {"logit_scale_init_value", "initializer_factor", "text_config_dict", "vision_config_dict"});
  const std::int64_t width = config.size_or({"projection_dim"}, 512);
  read_text(text, spec, kClipText);
  const std::int64_t vision_width = count_clip(vision, spec);
  count(spec, "text_projection.weight", {width, spec.hidden_size});
  count(spec, "visual_projection.weight", {width, vision_width});
  count(spec, "logit_scale", {1});
  finish_pair(text, vision, spec);
}

void read_siglip(ConfigReader& config, ModelSpec& spec) {
  ConfigReader text = config.object_or_empty("text_config");
  ConfigReader vision = config.object_or_empty("vision_config");
  config.ignore({"initializer_factor"});
  read_text(text, spec, kSiglipText);
  const std::int64_t width = text.size_or({"projection_size"}, spec.hidden_size);
  static_cast<void>(count_siglip(vision, spec));
  count(spec, "head.weight", {width, spec.hidden_size});
  count(spec, "head.bias", {width});
  count(spec, "logit_scale", {1});
  count(spec, "logit_bias", {1});
  finish_pair(text, vision, spec);
}

constexpr None kNoNames("the names of its two encoders' tensors are not listed yet");
constexpr None kNoGguf("GGUF stores image encoders only with a text model");

}  // namespace

std::vector<Family> clip_families() {
  return {{.model_types = {"clip"},
           .classes = one_class("CLIPModel"),
           .reader = read_clip,
           .names = kNoNames,
           .gguf = kNoGguf},
          {.model_types = {"siglip"},
           .classes = one_class("SiglipModel"),
           .reader = read_siglip,
           .names = kNoNames,
           .gguf = kNoGguf}};
}

}  // namespace headroom::detail
