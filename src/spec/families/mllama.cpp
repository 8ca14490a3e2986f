// Llama 3.2 Vision: Llama with layers of cross-attention to an image, which a text without images
// skips, and a tower that reads all tiles of an image at once (arXiv 2407.21783, section 7;
// transformers, models/mllama).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "../decoder.h"
#include "../towers/tower_names.h"
#include "../towers/tower_weights.h"
#include "../towers/wrapper.h"
#include "headroom/tiled_tower.h"

namespace headroom::detail {
namespace {

constexpr auto kEmbedding = WeightRole::embedding;

/// The layers of cross-attention, in a model of `num_layers`.
std::vector<std::int64_t> read_cross_layers(ConfigReader& config, std::int64_t num_layers) {
  std::vector<std::int64_t> layers = config.counts("cross_attention_layers");
  const bool is_listed = config.is_list("cross_attention_layers");
  if (!is_listed) layers = {3, 8, 13, 18, 23, 28, 33, 38};  // MllamaTextConfig's
  std::ranges::sort(layers);
  const bool repeats = std::ranges::adjacent_find(layers) != layers.end();
  const bool fits = layers.empty() || layers.back() < num_layers;
  if (repeats || !fits || std::ssize(layers) == num_layers) {
    config.fail("cross_attention_layers", "does not name some of the layers",
                "list layers from 0 to num_hidden_layers - 1, each once");
  }
  return layers;
}

/// Attention of a layer to images: norms of queries and keys, no positions.
AttentionSpec attention_to_images(const StackSpec& stack) {
  AttentionSpec attention = stack.self_attention;
  attention.causal = false;
  attention.rotary = false;
  attention.query_key_norm = QueryKeyNormSpec{stack.norm, QueryKeyNormScope::each_head};
  return attention;
}

/// Gives the layers of cross-attention, which a text without images skips, no self-attention.
void set_cross_layers(ModelSpec& spec, const std::vector<std::int64_t>& layers) {
  StackSpec& stack = *spec.decoder;
  stack.cross_attention = attention_to_images(stack);
  LayerVariant crossing{stack.self_attention, stack.ffn};
  crossing.self_attention.kind = AttentionKind::none;
  stack.variants.push_back(crossing);
  stack.variant_of_layer.assign(static_cast<std::size_t>(stack.num_layers), 0);
  for (const std::int64_t layer : layers) {
    stack.variant_of_layer[static_cast<std::size_t>(layer)] = 1;
  }
}

constexpr const char* kPlaceholders = "embeddings.placeholders.weight";

void read_mllama_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  defaults.rope.theta = 5e5;
  defaults.norm_eps = 1e-5;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  const std::vector<std::int64_t> layers = read_cross_layers(config, spec.decoder->num_layers);
  if (!layers.empty()) set_cross_layers(spec, layers);
  spec.counted_only.push_back({kPlaceholders,
                               {kPlaceholderRows, spec.hidden_size},
                               kEmbedding,
                               1,
                               ModelPart::text,
                               CountedUse::loaded});
  spec.assumptions.push_back("layers of cross-attention read images alone: a text skips them");
}

/// Canvases of an image in tiles of `side` pixels: supported_aspect_ratios, rows first.
TileList read_canvases(ConfigReader& vision, std::int64_t side, std::int64_t most_tiles) {
  // MllamaVisionConfig's, of at most 4 tiles.
  std::vector<std::array<std::int64_t, 2>> ratios{{1, 1}, {1, 2}, {1, 3}, {1, 4},
                                                  {2, 1}, {2, 2}, {3, 1}, {4, 1}};
  if (vision.is_list("supported_aspect_ratios")) {
    ratios.clear();
    for (const auto& [rows, columns] : vision.pairs("supported_aspect_ratios")) {
      ratios.push_back({rows, columns});
    }
  }
  TileList canvases;
  for (const auto& [rows, columns] : ratios) {
    if (rows > most_tiles / columns) {
      vision.fail("supported_aspect_ratios", "has an image of more than max_num_tiles",
                  "list rows and columns of tiles, as many as max_num_tiles or fewer");
    }
    canvases.heights.push_back(product(vision, "image_size", rows, side));
    canvases.widths.push_back(product(vision, "image_size", columns, side));
  }
  return canvases;
}

/// Layers whose output the projector reads beside that of the last.
std::vector<std::int64_t> read_joined_layers(ConfigReader& vision, std::int64_t num_layers) {
  std::vector<std::int64_t> layers = vision.counts("intermediate_layers_indices");
  if (!vision.is_list("intermediate_layers_indices")) layers = {3, 7, 15, 23, 30};
  for (std::int64_t& layer : layers) {
    if (layer >= num_layers) {
      vision.fail("intermediate_layers_indices", "names a layer that the tower lacks",
                  "list layers from 0 to num_hidden_layers - 1");
    }
    ++layer;
  }
  return layers;
}

/// Layers of the tower, and those with gates behind them.
StackSpec read_tower_layers(ConfigReader& vision, std::int64_t width) {
  StackSpec stack;
  const std::int64_t local = vision.layers_or({"num_hidden_layers"}, 32);
  const bool has_gated = vision.count_or({"num_global_layers"}, 8) > 0;
  const std::int64_t gated = has_gated ? vision.layers_or({"num_global_layers"}, 8) : 0;
  stack.num_layers = local + gated;
  stack.self_attention = multi_head_attention(vision, "attention_heads",
                                              vision.size_or({"attention_heads"}, 16), width);
  stack.ffn = {FfnKind::plain, vision.size_or({"intermediate_size"}, 5120),
               read_activation(vision, {"hidden_act"}, ActivationKind::gelu), true};
  stack.norm = {NormKind::layer_norm, true, vision.number_or({"norm_eps"}, 1e-5)};
  stack.final_norm = NormSpec{NormKind::layer_norm, true, 1e-5};  // of the class
  if (gated == 0) return stack;
  stack.variants.push_back({stack.self_attention, stack.ffn});
  stack.variant_of_layer.assign(static_cast<std::size_t>(stack.num_layers), 1);
  std::fill_n(stack.variant_of_layer.begin(), local, 0);
  return stack;
}

ImageSpec read_tile(ConfigReader& vision) {
  ImageSpec image = read_square_image(vision, "num_channels", 448, 14);
  image.prefix = PrefixTokens::class_token;
  image.patch_bias = false;
  return image;
}

std::int64_t read_most_tiles(ConfigReader& vision) {
  constexpr std::int64_t kMost = 1024;  // published towers have 4; each is listed
  const std::int64_t tiles = vision.size_or({"max_num_tiles"}, 4);
  if (tiles <= kMost) return tiles;
  vision.fail("max_num_tiles", "is above 1024", "use fewer tiles");
}

TowerSpec read_canvas_tower(ConfigReader& vision) {
  TowerSpec tower;
  tower.hidden_size = vision.size_or({"hidden_size"}, 1280);
  tower.embedding.input = InputKind::patches;
  tower.embedding.image = read_tile(vision);
  tower.embedding.norm = NormSpec{NormKind::layer_norm, true, 1e-5};  // of the class
  tower.position.kind = PositionKind::learned;
  tower.position.max_position_embeddings = tower.embedding.image->num_tokens();
  tower.stack = read_tower_layers(vision, tower.hidden_size);
  tower.rule = ImageRule::tiles_of_best_fit;
  tower.most_tiles = read_most_tiles(vision);
  tower.tiles = read_canvases(vision, tower.embedding.image->image_size, tower.most_tiles);
  tower.projector.feature_layers = read_joined_layers(vision, local_layers(tower));
  tower.projector.rows = FeatureRows::all;
  return tower;
}

/// Throws if a row of the tower's features has not the width that the config states, or if the
/// tables of positions have too many numbers to count.
void require_sizes(ConfigReader& vision, const TowerSpec& tower) {
  const auto features = std::ssize(tower.projector.feature_layers) + 1;
  const std::int64_t width = product(vision, "hidden_size", features, tower.hidden_size);
  if (vision.size_or({"vision_output_dim"}, 7680) != width) {
    vision.fail("vision_output_dim", "is not that of the layers that it joins",
                fmt::format("write {} for {} layers of hidden_size", width, features));
  }
  const std::int64_t rows =
      product(vision, "max_num_tiles", tower.most_tiles, padded_rows_of_tile(tower));
  const std::int64_t row = product(vision, "hidden_size", rows, tower.hidden_size);
  static_cast<void>(
      product(vision, "supported_aspect_ratios", std::ssize(tower.tiles.heights) + 1, row));
}

/// The placeholder of images: a token, or the first row behind the vocabulary.
void read_placeholder(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kToken = 128256;  // MllamaConfig's
  const std::int64_t token = config.count_or({"image_token_index"}, kToken);
  if (!config.has("image_token_index")) spec.tower_tokens.push_back(token);
  if (token < spec.embedding.vocab_size) return;
  if (attends_to_images(spec)) {
    std::erase_if(spec.counted_only,
                  [](const CountedWeight& weight) { return weight.path == kPlaceholders; });
  }
  spec.embedding.placeholder_id = 0;  // whose row those behind the vocabulary replace
  if (token > spec.embedding.vocab_size) {
    spec.not_run = "its images' placeholder is not the first row behind the vocabulary";
  }
}

void read_mllama_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_canvas_tower(vision);
  require_sizes(vision, tower);
  ignore_tower_keys(vision);
  vision.finish();
  tower.projector.steps.emplace_back(LinearStep{"linear", spec.hidden_size, true});
  if (tower.most_tiles == 1) spec.not_run = "its images are single tiles";
  spec.tower = std::move(tower);
  read_placeholder(config, spec);
}

// Eight rows of placeholders follow those of the vocabulary.
constexpr NameRule kMllamaText[] = {
    {"embeddings.word_embeddings.%", "embed_tokens.%", part(0)},
    {"embeddings.placeholders.%", "embed_tokens.%", part(1)},
    {"decoder.layers.cross_attention_norm.%", "layers.{}.input_layernorm.%"},
    {"decoder.layers.cross_attention.query.%", "layers.{}.cross_attn.q_proj.%"},
    {"decoder.layers.cross_attention.key.%", "layers.{}.cross_attn.k_proj.%"},
    {"decoder.layers.cross_attention.value.%", "layers.{}.cross_attn.v_proj.%"},
    {"decoder.layers.cross_attention.output.%", "layers.{}.cross_attn.o_proj.%"},
    {"decoder.layers.cross_attention.query_norm.%", "layers.{}.cross_attn.q_norm.%"},
    {"decoder.layers.cross_attention.key_norm.%", "layers.{}.cross_attn.k_norm.%"},
    {"decoder.layers.cross_attention_gate", "layers.{}.cross_attn_attn_gate"},
    {"decoder.layers.mlp_gate", "layers.{}.cross_attn_mlp_gate"},
};

}  // namespace

std::vector<Family> mllama_families() {
  return {wrapper_family({.model_types = {"mllama"},
                          .classes = {"MllamaForConditionalGeneration"},
                          .bare_classes = {"MllamaModel"},
                          .text_type = "mllama_text_model",
                          .count_towers = read_mllama_tower,
                          .tying = HeadTying::never,
                          .names = wrapped_mllama_names()}),
          {.model_types = {"mllama_text_model"},
           .classes = {{{"MllamaForCausalLM",
                         [](ConfigReader& config) {
                           return language_model_head(language_model_of(config, {}));
                         }},
                        {"MllamaTextModel", no_head}}},
           .reader = read_mllama_text,
           .names = llama_names({kMllamaText}),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
