#include "vision_transformer.h"

#include <fmt/format.h>

namespace headroom::detail {
namespace {

ImageSpec read_image(ConfigReader& config) {
  const ImageSpec image{config.size_or({"image_size"}, 224), config.size_or({"patch_size"}, 16),
                        config.size_or({"num_channels"}, 3)};
  if (image.patch_size > image.image_size) {
    config.fail("patch_size",
                fmt::format("a patch of {} is larger than an image of {}", image.patch_size,
                            image.image_size),
                "use a patch_size of at most image_size");
  }
  constexpr std::int64_t kLargestSide = std::int64_t{1} << 31U;  // its square fits 64 bits
  if (image.image_size / image.patch_size >= kLargestSide) {
    config.fail("image_size", "has too many patches to count", "use a smaller image_size");
  }
  return image;
}

constexpr NameRule kVit[] = {
    {"embeddings.patch_embeddings.%", "embeddings.patch_embeddings.projection.%"},
    {"embeddings.class_token", "embeddings.cls_token"},
    {"embeddings.position_embeddings.weight", "embeddings.position_embeddings"},
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.layernorm_before.%"},
    {"encoder.layers.attention.query.%", "encoder.layer.{}.attention.attention.query.%"},
    {"encoder.layers.attention.key.%", "encoder.layer.{}.attention.attention.key.%"},
    {"encoder.layers.attention.value.%", "encoder.layer.{}.attention.attention.value.%"},
    {"encoder.layers.attention.output.%", "encoder.layer.{}.attention.output.dense.%"},
    {"encoder.layers.mlp_norm.%", "encoder.layer.{}.layernorm_after.%"},
    {"encoder.layers.mlp.up.%", "encoder.layer.{}.intermediate.dense.%"},
    {"encoder.layers.mlp.down.%", "encoder.layer.{}.output.dense.%"},
    {"encoder.final_norm.%", "layernorm.%"},
    {"head.pooler.dense.%", "pooler.dense.%"},
    {"head.classifier.%", "classifier.%"},
};

}  // namespace

void read_vision_transformer(ConfigReader& config, ModelSpec& spec, PrefixTokens prefix) {
  spec.kind = ModelKind::encoder;
  spec.hidden_size = config.size({"hidden_size"});
  ImageSpec image = read_image(config);
  image.prefix = prefix;
  spec.embedding.input = InputKind::patches;
  spec.embedding.image = image;
  spec.position.kind = PositionKind::learned;
  spec.position.max_position_embeddings = image.num_tokens();

  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers"});
  stack.self_attention = multi_head_attention(
      config, "num_attention_heads", config.size({"num_attention_heads"}), spec.hidden_size);
  stack.self_attention.qkv_bias = config.flag_or({"qkv_bias"}, true);
  stack.self_attention.output_bias = true;
  stack.norm_placement = NormPlacement::pre;
  stack.norm = {NormKind::layer_norm, true, config.number_or({"layer_norm_eps"}, 1e-12)};
  stack.final_norm = stack.norm;
  const double hidden_dropout = config.probability_or({"hidden_dropout_prob"}, 0);
  stack.dropout.embedding = hidden_dropout;
  stack.dropout.attention_output = hidden_dropout;
  stack.dropout.ffn_output = hidden_dropout;
  stack.dropout.attention_probs = config.probability_or({"attention_probs_dropout_prob"}, 0);
  spec.encoder = stack;
}

std::span<const NameRule> vit_rules() { return kVit; }

}  // namespace headroom::detail
