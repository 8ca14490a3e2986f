// LayoutLMv3: RoBERTa over the words of a page, their places on it, and the patches of its image,
// with biases by distance (arXiv 2204.08387; transformers, models/layoutlmv3).
#include <string>

#include "../bert.h"
#include "../encoder_heads.h"
#include "../family.h"
#include "../towers/tower_weights.h"

namespace headroom::detail {
namespace {

/// The embeddings of four coordinates and of two extents stand side by side.
void require_whole_width(ConfigReader& config, std::int64_t coordinates, std::int64_t shapes,
                         std::int64_t width) {
  const std::int64_t half =
      config.sum("shape_size", product(config, "coordinate_size", 2, coordinates), shapes);
  if (width % 2 == 0 && width / 2 == half) return;
  config.fail("coordinate_size", "times 4 and shape_size times 2 do not add up to hidden_size",
              "use sizes whose sum is hidden_size");
}

void count_places(ConfigReader& config, std::int64_t hidden_size, TowerWeights& tables) {
  const std::int64_t places = config.size_or({"max_2d_position_embeddings"}, 1024);
  const std::int64_t coordinates = config.size_or({"coordinate_size"}, 128);
  const std::int64_t shapes = config.size_or({"shape_size"}, 128);
  require_whole_width(config, coordinates, shapes, hidden_size);
  const auto add = [&](const char* name, std::int64_t width) {
    tables.add(std::string("embeddings.") + name + "_position_embeddings.weight", {places, width},
               WeightRole::embedding);
  };
  add("x", coordinates);
  add("y", coordinates);
  add("h", shapes);
  add("w", shapes);
}

/// Patches of the page's image behind the words, with positions and two norms of their own.
void count_page_patches(ConfigReader& config, ModelSpec& spec, TowerWeights& patches) {
  const std::int64_t side = config.size_or({"patch_size"}, 16);
  const std::int64_t pixels = config.size_or({"input_size"}, 224);
  const std::int64_t channels = config.size_or({"num_channels"}, 3);
  if (!config.flag_or({"visual_embed"}, true)) return;
  const std::int64_t of_side = pixels / side;
  if (of_side == 0) {
    config.fail("patch_size", "exceeds input_size", "use a smaller patch_size");
  }
  const std::int64_t rows = product(config, "input_size", of_side, of_side) + 1;
  const std::int64_t area = product(config, "patch_size", side, side);
  const std::int64_t width = spec.hidden_size;
  patches.linear("patches.projection", product(config, "patch_size", channels, area), width,
                 WeightRole::embedding);
  patches.add("patches.class_token", {1, 1, width}, WeightRole::embedding);
  patches.add("patches.positions", {1, rows, width}, WeightRole::embedding);
  patches.norm(NormKind::layer_norm, "patches.words_and_patches_norm", width);
  patches.norm(NormKind::layer_norm, "patches.norm", width);
}

/// Biases that all layers share, by bins of distance in the text and on the page.
void count_distances(ConfigReader& config, const ModelSpec& spec, TowerWeights& biases) {
  const std::int64_t heads = spec.encoder->self_attention.num_attention_heads;
  const std::int64_t bins = config.size_or({"rel_pos_bins"}, 32);
  const std::int64_t page_bins = config.size_or({"rel_2d_pos_bins"}, 64);
  if (config.flag_or({"has_relative_attention_bias"}, true)) {
    biases.add("distance_bias.weight", {heads, bins}, WeightRole::relative_position_bias);
  }
  if (!config.flag_or({"has_spatial_attention_bias"}, true)) return;
  biases.add("distance_x_bias.weight", {heads, page_bins}, WeightRole::relative_position_bias);
  biases.add("distance_y_bias.weight", {heads, page_bins}, WeightRole::relative_position_bias);
}

void read_layoutlmv3(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
  config.expect_flag("text_embed", true);
  TowerWeights added(spec, ModelPart::text, CountedUse::loaded);
  count_places(config, spec.hidden_size, added);
  count_page_patches(config, spec, added);
  count_distances(config, spec, added);
  spec.not_run = "its places on a page have no kernel yet";
  spec.assumptions.emplace_back("a sequence counts its words and its patches as tokens");
  config.ignore({"max_rel_pos", "max_rel_2d_pos"});
}

ClassifierSpec dense_head(ConfigReader& config, ClassifierInput input) {
  ClassifierSpec head = encoder_classifier(config, input);
  head.dense = ActivationKind::tanh;
  head.dense_dropout = head.dropout;
  return head;
}

/// With ten labels or more, tokens have a dense layer before their projection.
HeadSpec token_head(ConfigReader& config) {
  constexpr std::int64_t kFewest = 10;
  const std::int64_t labels = label_count(config, kDefaultLabels);
  if (labels < kFewest) {
    return classifier_head(encoder_classifier(config, ClassifierInput::every_token));
  }
  return classifier_head(dense_head(config, ClassifierInput::every_token));
}

ModelClasses layoutlmv3_classes() {
  const auto sequence = [](ConfigReader& config) {
    return classifier_head(dense_head(config, ClassifierInput::first_token));
  };
  const auto spans = [](ConfigReader& config) {
    ClassifierSpec head = dense_head(config, ClassifierInput::every_token);
    head.spans = true;
    return classifier_head(head);
  };
  return ModelClasses{{{"LayoutLMv3Model", no_head},
                       {"LayoutLMv3ForTokenClassification", token_head},
                       {"LayoutLMv3ForSequenceClassification", sequence},
                       {"LayoutLMv3ForQuestionAnswering", spans}}};
}

}  // namespace

std::vector<Family> layoutlmv3_families() {
  return {{.model_types = {"layoutlmv3"},
           .classes = layoutlmv3_classes(),
           .reader = read_layoutlmv3,
           .names = None("its tensors have no stored names yet"),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
