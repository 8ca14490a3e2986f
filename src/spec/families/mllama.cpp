// Llama 3.2 Vision: Llama with layers of cross-attention to an image, which a text without images
// skips (arXiv 2407.21783, section 7; transformers, models/mllama).
#include <fmt/format.h>

#include <algorithm>

#include "../decoder.h"
#include "../towers/tower_names.h"
#include "../towers/tower_weights.h"
#include "../towers/wrapper.h"

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

/// Counts a layer of cross-attention with its network.
void count_cross_layer(ModelSpec& spec, std::int64_t layer) {
  const StackSpec& stack = *spec.decoder;
  const AttentionSpec& attention = stack.self_attention;
  const std::int64_t width = spec.hidden_size;
  const std::int64_t query = attention.num_attention_heads * attention.head_dim;
  const std::int64_t key = attention.num_key_value_heads * attention.head_dim;
  const std::int64_t inner = stack.ffn.intermediate_size;
  const auto add = [&](const char* name, std::vector<std::int64_t> shape, WeightRole role) {
    spec.counted_only.push_back({fmt::format("decoder.image_layers.{}.{}", layer, name),
                                 std::move(shape), role, 1, ModelPart::text, CountedUse::loaded});
  };
  add("cross_attention.query.weight", {query, width}, WeightRole::attention);
  add("cross_attention.key.weight", {key, width}, WeightRole::attention);
  add("cross_attention.value.weight", {key, width}, WeightRole::attention);
  add("cross_attention.output.weight", {width, query}, WeightRole::attention);
  add("cross_attention.gate", {1}, WeightRole::attention);
  add("cross_attention.query_norm.weight", {attention.head_dim}, WeightRole::norm);
  add("cross_attention.key_norm.weight", {attention.head_dim}, WeightRole::norm);
  add("attention_norm.weight", {width}, WeightRole::norm);
  add("mlp_norm.weight", {width}, WeightRole::norm);
  add("mlp.gate.weight", {inner, width}, WeightRole::mlp);
  add("mlp.up.weight", {inner, width}, WeightRole::mlp);
  add("mlp.down.weight", {width, inner}, WeightRole::mlp);
  add("mlp.output_gate", {1}, WeightRole::mlp);
}

/// Counts the layers of cross-attention, which do nothing to a text: neither attention nor network.
void skip_cross_layers(ModelSpec& spec, const std::vector<std::int64_t>& layers) {
  StackSpec& stack = *spec.decoder;
  LayerVariant skipped;
  skipped.self_attention.causal = true;
  skipped.self_attention.kind = AttentionKind::none;
  skipped.ffn.kind = FfnKind::none;
  stack.variants.push_back(skipped);
  stack.variant_of_layer.assign(static_cast<std::size_t>(stack.num_layers), 0);
  for (const std::int64_t layer : layers) {
    count_cross_layer(spec, layer);
    stack.variant_of_layer[static_cast<std::size_t>(layer)] = 1;
  }
}

void read_mllama_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  defaults.rope.theta = 5e5;
  defaults.norm_eps = 1e-5;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  const std::vector<std::int64_t> layers = read_cross_layers(config, spec.decoder->num_layers);
  if (!layers.empty()) skip_cross_layers(spec, layers);
  constexpr std::int64_t kImageRows = 8;  // behind the vocabulary, for placeholders
  spec.counted_only.push_back({"embeddings.placeholders.weight",
                               {kImageRows, spec.hidden_size},
                               kEmbedding,
                               1,
                               ModelPart::text,
                               CountedUse::loaded});
  spec.assumptions.push_back("layers of cross-attention read images alone: a text skips them");
}

/// Tables of positions of Llama 3.2's tower: of patches, of tiles, and of patches in tiles. Gates
/// of one number each scale them.
void count_positions(ConfigReader& vision, const PatchGrid& grid, std::int64_t width,
                     TowerWeights& tower) {
  const std::int64_t tiles = vision.size_or({"max_num_tiles"}, 4);
  constexpr std::int64_t kRatios = 8;  // MllamaVisionConfig's supported_aspect_ratios
  const std::int64_t ratios = vision.is_list("supported_aspect_ratios")
                                  ? vision.entries_or_one("supported_aspect_ratios")
                                  : kRatios;
  const std::int64_t rows = grid.patches + 1;
  tower.add("position_embeddings.weight", {rows, width}, kEmbedding);
  tower.add("position_embeddings.gate", {1}, kEmbedding);
  const std::int64_t placed = product(vision, "max_num_tiles", tiles, rows);
  tower.add("tile_position_embeddings.weight",
            {ratios + 1, product(vision, "hidden_size", placed, width)}, kEmbedding);
  for (const std::string name : {"first_tile_embeddings", "last_tile_embeddings"}) {
    tower.add(name + ".weight", {ratios + 1, product(vision, "max_num_tiles", tiles, width)},
              kEmbedding);
    tower.add(name + ".gate", {1}, kEmbedding);
  }
}

void count_mllama_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1280);
  layers.inner = vision.size_or({"intermediate_size"}, 5120);
  layers.count = vision.layers_or({"num_hidden_layers"}, 32);
  layers.qkv_bias = false;
  layers.output_bias = false;
  const std::int64_t global = vision.count_or({"num_global_layers"}, 8);
  const std::int64_t output = vision.size_or({"vision_output_dim"}, 7680);
  const PatchGrid grid = read_patch_grid(vision, "num_channels", 448, 14);
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("patch_embeddings.weight", {layers.width, grid.elements}, kEmbedding);
  tower.add("class_token", {layers.width}, kEmbedding);
  count_positions(vision, grid, layers.width, tower);
  tower.norm(NormKind::layer_norm, "first_norm", layers.width);
  tower.norm(NormKind::layer_norm, "final_norm", layers.width);
  tower.layers(layers);
  if (global > 0) {
    layers.path = "global_layers";
    layers.count = global;
    tower.layers(layers);
    tower.add("global_layers.attention_gate", {1}, WeightRole::attention, global);
    tower.add("global_layers.mlp_gate", {1}, WeightRole::mlp, global);
  }
  vision.ignore({"attention_heads", "intermediate_layers_indices", "norm_eps"});
  ignore_tower_keys(vision);
  vision.finish();
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear("linear", output, spec.hidden_size, WeightRole::projector);
}

// Eight rows of placeholders follow those of the vocabulary.
constexpr NameRule kMllamaText[] = {
    {"embeddings.word_embeddings.%", "embed_tokens.%", part(0)},
    {"embeddings.placeholders.%", "embed_tokens.%", part(1)},
    {"decoder.image_layers.{i}.attention_norm.%", "layers.{i}.input_layernorm.%"},
    {"decoder.image_layers.{i}.cross_attention.query.%", "layers.{i}.cross_attn.q_proj.%"},
    {"decoder.image_layers.{i}.cross_attention.key.%", "layers.{i}.cross_attn.k_proj.%"},
    {"decoder.image_layers.{i}.cross_attention.value.%", "layers.{i}.cross_attn.v_proj.%"},
    {"decoder.image_layers.{i}.cross_attention.output.%", "layers.{i}.cross_attn.o_proj.%"},
    {"decoder.image_layers.{i}.cross_attention.query_norm.%", "layers.{i}.cross_attn.q_norm.%"},
    {"decoder.image_layers.{i}.cross_attention.key_norm.%", "layers.{i}.cross_attn.k_norm.%"},
    {"decoder.image_layers.{i}.cross_attention.gate", "layers.{i}.cross_attn_attn_gate"},
    {"decoder.image_layers.{i}.mlp_norm.%", "layers.{i}.post_attention_layernorm.%"},
    {"decoder.image_layers.{i}.mlp.gate.%", "layers.{i}.mlp.gate_proj.%"},
    {"decoder.image_layers.{i}.mlp.up.%", "layers.{i}.mlp.up_proj.%"},
    {"decoder.image_layers.{i}.mlp.down.%", "layers.{i}.mlp.down_proj.%"},
    {"decoder.image_layers.{i}.mlp.output_gate", "layers.{i}.cross_attn_mlp_gate"},
};

}  // namespace

std::vector<Family> mllama_families() {
  return {wrapper_family({.model_types = {"mllama"},
                          .classes = {"MllamaForConditionalGeneration"},
                          .bare_classes = {"MllamaModel"},
                          .text_type = "mllama_text_model",
                          .count_towers = count_mllama_tower,
                          .tying = HeadTying::text,
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
