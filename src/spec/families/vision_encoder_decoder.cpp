// Image encoders with a decoder of text that attends to them, as TrOCR and image captioners are
// stored (arXiv 2109.10282; transformers, models/vision_encoder_decoder). The decoder runs through
// the graph without images; the encoder and the attention to it are counted.
#include <fmt/format.h>

#include "../decoder.h"
#include "../family.h"
#include "../towers/tower_weights.h"

namespace headroom::detail {
namespace {

/// Counts ViT or DeiT with the pooler of its class. Returns its width.
std::int64_t count_image_encoder(ConfigReader& encoder, ModelSpec& spec) {
  const bool distilled = encoder.is_text("model_type", "deit");
  if (!distilled && !encoder.is_text("model_type", "vit")) {
    encoder.fail("model_type", "is an image encoder that is not supported here", "use vit or deit");
  }
  encoder.use_class_sizes(distilled ? "deit" : "vit");
  TowerLayers layers;
  layers.width = encoder.size({"hidden_size"});
  layers.inner = encoder.size({"intermediate_size"});
  layers.count = encoder.layers({"num_hidden_layers"});
  layers.qkv_bias = encoder.flag_or({"qkv_bias"}, true);
  const PatchGrid grid = read_patch_grid(encoder, "num_channels", 224, 16);
  const std::int64_t prefix = distilled ? 2 : 1;  // class and distillation tokens
  TowerWeights tower(spec, ModelPart::vision, CountedUse::loaded);
  tower.linear("patch_embeddings", grid.elements, layers.width, WeightRole::embedding);
  tower.add("prefix_tokens", {prefix, layers.width}, WeightRole::embedding);
  tower.add("position_embeddings.weight", {grid.patches + prefix, layers.width},
            WeightRole::embedding);
  tower.layers(layers);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  tower.linear("pooler", layers.width, encoder.size_or({"pooler_output_size"}, layers.width),
               WeightRole::head);
  encoder.ignore({"encoder_stride", "pooler_act", "attention_probs_dropout_prob"});
  ignore_tower_keys(encoder);
  read_common_keys(encoder, spec);
  encoder.finish();
  return layers.width;
}

/// Reads the decoder with its family, whose first class has its head.
void read_text_decoder(ConfigReader& decoder, ModelSpec& spec) {
  const std::string type = decoder.text_or({"model_type"}, "");
  if (type != "trocr" && type != "gpt2") {
    decoder.fail("model_type", fmt::format("the decoder \"{}\" is not supported here", type),
                 "use trocr or gpt2");
  }
  const Family& family = *find_family(type);
  decoder.use_class_sizes(type);
  decoder.ignore({"architectures", "is_decoder", "add_cross_attention"});
  const std::string whole = spec.architecture;
  spec.text_type = type;
  spec.architecture = family.classes.list.front().name;
  spec.head = family.classes.list.front().head(decoder);
  family.reader.read(decoder, spec);
  read_common_keys(decoder, spec);
  decoder.finish();
  spec.architecture = whole;
}

void read_vision_encoder_decoder(ConfigReader& config, ModelSpec& spec) {
  auto encoder = config.object("encoder");
  auto decoder = config.object("decoder");
  if (!encoder) config.fail("encoder", "is missing", "add the image encoder's config");
  if (!decoder) config.fail("decoder", "is missing", "add the text decoder's config");
  const bool own_width = decoder->has("cross_attention_hidden_size");
  // The class turns it on whatever the config says; TrOCR's decoder always has it.
  if (decoder->is_text("model_type", "gpt2") && !decoder->flag_or({"add_cross_attention"}, false)) {
    decoder->fail("add_cross_attention", "is not true", "write true, as the class sets it");
  }
  read_text_decoder(*decoder, spec);
  const std::int64_t width = count_image_encoder(*encoder, spec);
  if (width != spec.hidden_size && !own_width) {
    TowerWeights projector(spec, ModelPart::projector, CountedUse::loaded);
    projector.linear("linear", width, spec.hidden_size, WeightRole::projector);
  }
  config.ignore(
      {"processor_class", "tie_word_embeddings", "vocab_size", "max_position_embeddings"});
  spec.assumptions.emplace_back(
      "the image encoder and the attention to it count as parameters only");
  spec.not_run = "its image encoder does not run beside a decoder yet";
}

}  // namespace

std::vector<Family> vision_encoder_decoder_families() {
  return {{.model_types = {"vision-encoder-decoder"},
           .classes = one_class("VisionEncoderDecoderModel"),
           .reader = read_vision_encoder_decoder,
           .names = None("its image encoder does not run beside a decoder yet"),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
