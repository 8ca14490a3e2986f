// Towers whose features trained queries read, or that turn features into words: BLIP-2 (arXiv
// 2301.12597) and Aria (arXiv 2410.05993), which run, Granite Speech (arXiv 2505.08699), Molmo 2
// and Ovis 2 (arXiv 2405.20797), which are counted.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "../common_keys.h"
#include "encoder_specs.h"
#include "image_towers.h"
#include "tower_weights.h"
#include "towers.h"

namespace headroom::detail {
namespace {

constexpr auto kQueryRole = WeightRole::projector;
constexpr auto kQueryTable = WeightRole::embedding;
constexpr auto kQueryNorm = NormKind::layer_norm;

/// A Q-Former and the width of the features that it reads.
struct QueryFormer {
  QueryFormerStep step;
  std::int64_t features = 0;
};

constexpr std::int64_t kFormerFeatures = 1408;  // of Blip2QFormerConfig

/// As `layers_or`, but fewer: each layer is built on its own.
std::int64_t read_former_layers(ConfigReader& former) {
  constexpr std::int64_t kMost = 1000;
  const std::int64_t layers = former.layers_or({"num_hidden_layers"}, 12);
  if (layers <= kMost) return layers;
  former.fail("num_hidden_layers", "is more than 1000", "write the model's number of layers");
}

QueryFormer read_query_former(ConfigReader& former, std::int64_t queries, ModelSpec& spec) {
  QueryFormer read;
  QueryFormerStep& step = read.step;
  step.queries = queries;
  step.width = former.size_or({"hidden_size"}, 768);
  step.layers = read_former_layers(former);
  step.cross_frequency = former.size_or({"cross_attention_frequency"}, 2);
  step.attention = multi_head_attention(former, "num_attention_heads",
                                        former.size_or({"num_attention_heads"}, 12), step.width);
  step.ffn = {FfnKind::plain, former.size_or({"intermediate_size"}, 3072),
              read_activation(former, {"hidden_act"}, ActivationKind::gelu), true};
  step.norm = {kQueryNorm, true, former.number_or({"layer_norm_eps"}, 1e-12)};
  read.features = former.size_or({"encoder_hidden_size"}, kFormerFeatures);
  former.expect_flag("use_qformer_text_input", false);  // InstructBLIP's
  former.ignore(
      {"position_embedding_type", "pad_token_id", "attention_probs_dropout_prob", "use_cache"});
  ignore_tower_keys(former);
  read_common_keys(former, spec);
  former.finish();
  return read;
}

/// Counts a Q-Former and returns its width.
std::int64_t count_query_former(ConfigReader& former, std::int64_t queries, ModelSpec& spec) {
  const QueryFormer read = read_query_former(former, queries, spec);
  const std::int64_t width = read.step.width;
  const std::int64_t inner = read.step.ffn.intermediate_size;
  const std::int64_t layers = read.step.layers;
  const std::int64_t frequency = read.step.cross_frequency;
  const std::int64_t crossing = (layers + frequency - 1) / frequency;
  TowerWeights weights(spec, ModelPart::projector);
  weights.add("queries", {queries, width}, kQueryRole);
  weights.norm(kQueryNorm, "former.norm", width);
  const auto attention = [&](const std::string& name, std::int64_t keys, std::int64_t count) {
    weights.linear(name + ".query", width, width, kQueryRole, count);
    weights.linear(name + ".key", keys, width, kQueryRole, count);
    weights.linear(name + ".value", keys, width, kQueryRole, count);
    weights.linear(name + ".output", width, width, kQueryRole, count);
    weights.norm(kQueryNorm, name + ".norm", width, count);
  };
  attention("former.attention", width, layers);
  attention("former.cross_attention", read.features, crossing);
  weights.linear("former.mlp.up", width, inner, kQueryRole, layers);
  weights.linear("former.mlp.down", inner, width, kQueryRole, layers);
  weights.norm(kQueryNorm, "former.mlp.norm", width, layers);
  return width;
}

/// One of both networks of a Conformer's layer, after a norm.
void add_half_network(TowerWeights& tower, const std::string& name, std::int64_t width,
                      std::int64_t inner, std::int64_t layers) {
  tower.norm(kQueryNorm, name + ".norm", width, layers);
  tower.linear(name + ".up", width, inner, WeightRole::mlp, layers);
  tower.linear(name + ".down", inner, width, WeightRole::mlp, layers);
}

void count_granite_encoder(ConfigReader& encoder, ModelSpec& spec) {
  constexpr auto kMixRole = WeightRole::convolution;
  const std::int64_t width = encoder.size_or({"hidden_dim", "hidden_size"}, 1024);
  const std::int64_t layers = encoder.layers_or({"num_layers", "num_hidden_layers"}, 10);
  const std::int64_t heads = encoder.size_or({"num_heads", "num_attention_heads"}, 8);
  const std::int64_t head_dim =
      encoder.size_or({"dim_head", "head_dim"}, std::max<std::int64_t>(1, width / heads));
  const std::int64_t inner = product(encoder, "num_heads", heads, head_dim);
  const std::int64_t network =
      product(encoder, "feedforward_mult", encoder.size_or({"feedforward_mult"}, 4), width);
  const std::int64_t convolved = product(encoder, "conv_expansion_factor",
                                         encoder.size_or({"conv_expansion_factor"}, 2), width);
  const std::int64_t kernel = encoder.size_or({"conv_kernel_size"}, 15);
  const std::int64_t words = encoder.size_or({"output_dim"}, 42);
  const std::int64_t positions =
      product(encoder, "max_pos_emb", 2, encoder.size_or({"max_pos_emb"}, 512)) + 1;
  TowerWeights tower(spec, ModelPart::audio);
  tower.linear("input", encoder.size_or({"input_dim"}, 160), width, kQueryTable);
  add_half_network(tower, "layers.first_mlp", width, network, layers);
  tower.norm(kQueryNorm, "layers.attention.norm", width, layers);
  tower.linear_if(false, "layers.attention.query", width, inner, WeightRole::attention, layers);
  tower.linear_if(false, "layers.attention.key_value", width, 2 * inner, WeightRole::attention,
                  layers);
  tower.linear("layers.attention.output", inner, width, WeightRole::attention, layers);
  tower.add("layers.attention.positions", {positions, head_dim}, WeightRole::relative_position_bias,
            layers);
  tower.norm(kQueryNorm, "layers.convolution.norm", width, layers);
  tower.linear("layers.convolution.in", width, 2 * convolved, kMixRole, layers);
  tower.add("layers.convolution.weight", {convolved, kernel}, kMixRole, layers);
  tower.norm(kQueryNorm, "layers.convolution.batch_norm", convolved, layers);
  tower.linear("layers.convolution.out", convolved, width, kMixRole, layers);
  add_half_network(tower, "layers.second_mlp", width, network, layers);
  tower.norm(kQueryNorm, "layers.norm", width, layers);
  tower.linear("words", width, words, kQueryRole);
  tower.linear("words_to_states", words, width, kQueryRole);
  encoder.ignore({"context_size", "dropout"});
  ignore_tower_keys(encoder);
  read_common_keys(encoder, spec);
  encoder.finish();
}

/// Patches with trained positions, and layers.
void count_patches(ConfigReader& vision, const TowerLayers& layers, const PatchGrid& grid,
                   ModelSpec& spec) {
  TowerWeights tower(spec, ModelPart::vision);
  tower.linear("patch_embeddings", grid.elements, layers.width, kQueryTable);
  tower.add("position_embeddings.weight", {grid.patches, layers.width}, kQueryTable);
  tower.layers(layers);
  vision.ignore({"attention_bias", "mlp_bias", "qkv_bias"});
  ignore_tower_keys(vision);
  read_common_keys(vision, spec);
  vision.finish();
}

/// Counts BLIP-2's towers in front of an encoder, such as T5's, which would read the images.
void count_blip2_towers(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1408);
  layers.inner = vision.size_or({"intermediate_size"}, 6144);
  layers.count = vision.layers_or({"num_hidden_layers"}, 39);
  layers.qkv_bias = vision.flag_or({"qkv_bias"}, true);
  PatchGrid grid = read_patch_grid(vision, "num_channels", 224, 14);
  ++grid.patches;  // and the class token
  count_patches(vision, layers, grid, spec);
  TowerWeights tower(spec, ModelPart::vision);
  tower.add("class_embedding", {layers.width}, kQueryTable);
  tower.norm(kQueryNorm, "final_norm", layers.width);
  ConfigReader former = config.object_or_empty("qformer_config");
  const std::int64_t queries = config.size_or({"num_query_tokens"}, 32);
  const std::int64_t width = count_query_former(former, queries, spec);
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear("linear", width, spec.hidden_size, kQueryRole);
  spec.not_run = "an encoder does not read images yet";
  spec.assumptions.emplace_back("its images, which its encoder reads, are not counted");
}

/// BLIP-2's towers in front of a decoder, which run.
void read_running_blip2_towers(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_blip2_vision(vision);
  read_common_keys(vision, spec);
  vision.finish();
  ConfigReader former = config.object_or_empty("qformer_config");
  const std::int64_t queries = config.size_or({"num_query_tokens"}, 32);
  const QueryFormer read = read_query_former(former, queries, spec);
  if (read.features != tower.hidden_size) {
    config.fail("qformer_config", "has another encoder_hidden_size than the tower's hidden_size",
                "use the same width in both");
  }
  tower.projector.rows = FeatureRows::all;
  tower.projector.steps = {read.step, LinearStep{"linear", spec.hidden_size, true}};
  spec.tower = std::move(tower);
}

}  // namespace

void read_blip2_towers(ConfigReader& config, ModelSpec& spec) {
  config.ignore(
      {"image_text_hidden_size", "use_decoder_only_language_model", "initializer_factor"});
  if (spec.kind == ModelKind::encoder_decoder) {
    count_blip2_towers(config, spec);
  } else {
    read_running_blip2_towers(config, spec);
  }
}

namespace {

/// Granite Speech's projector reads the encoder's last states; that of Granite Speech Plus those of
/// further layers beside them.
enum class ProjectedStates { last, of_layers };

/// Requires that the Q-Former reads the states of the layers of cat_hidden_layers and the last
/// ones.
void require_projected_states(ConfigReader& config, ConfigReader& encoder) {
  const std::int64_t layers = encoder.layers_or({"num_layers", "num_hidden_layers"}, 10);
  const std::vector<std::int64_t> joined = encoder.counts("cat_hidden_layers");
  if (std::ranges::any_of(joined, [&](std::int64_t layer) { return layer >= layers; })) {
    encoder.fail("cat_hidden_layers", fmt::format("names a layer beyond the last of {}", layers),
                 "write numbers below num_layers");
  }
  const std::int64_t width = product(encoder, "hidden_dim", std::ssize(joined) + 1,
                                     encoder.size_or({"hidden_dim", "hidden_size"}, 1024));
  ConfigReader former = config.object_or_empty("projector_config");
  if (joined.empty() || former.size_or({"encoder_hidden_size"}, kFormerFeatures) == width) return;
  former.fail("encoder_hidden_size", fmt::format("is not {}, the width of the states", width),
              "write hidden_dim times one more than the entries of cat_hidden_layers");
}

void count_granite_speech(ConfigReader& config, ModelSpec& spec, ProjectedStates states) {
  ConfigReader encoder = config.object_or_empty("encoder_config");
  if (states == ProjectedStates::of_layers) require_projected_states(config, encoder);
  count_granite_encoder(encoder, spec);
  const std::int64_t window = config.size_or({"window_size"}, 15);
  const std::int64_t rate = config.size_or({"downsample_rate"}, 5);
  if (rate > window) {
    config.fail("downsample_rate", "is larger than window_size", "use a smaller rate");
  }
  const std::int64_t queries = window / rate;
  ConfigReader former = config.object_or_empty("projector_config");
  const std::int64_t width = count_query_former(former, queries, spec);
  TowerWeights projector(spec, ModelPart::projector);
  projector.linear("linear", width, spec.hidden_size, kQueryRole);
  if (config.flag_or({"has_lora_adapter"}, true)) {
    spec.assumptions.emplace_back("its LoRA adapter, which speech needs, is not counted");
  }
}

}  // namespace

void count_granite_speech_tower(ConfigReader& config, ModelSpec& spec) {
  count_granite_speech(config, spec, ProjectedStates::last);
}

void count_granite_speech_plus_tower(ConfigReader& config, ModelSpec& spec) {
  count_granite_speech(config, spec, ProjectedStates::of_layers);
}

namespace {

/// The number of patches that a key of Aria's table writes.
std::int64_t patches_of_key(const ConfigReader& table, const std::string& key) {
  std::int64_t patches = 0;
  const char* const end = key.data() + key.size();
  const auto [read, error] = std::from_chars(key.data(), end, patches);
  if (error == std::errc{} && read == end && patches > 0) return patches;
  table.fail(key, "is not a number of patches", "write the patches of an image, such as \"1225\"");
}

/// Queries by the number of an image's patches.
std::map<std::int64_t, std::int64_t> read_query_table(ConfigReader& config) {
  // The table of AriaConfig.
  std::map<std::int64_t, std::int64_t> absent{{1225, 128}, {4900, 256}};
  std::map<std::int64_t, std::int64_t> queries;
  if (auto stated = config.object("projector_patch_to_query_dict")) {
    for (const std::string& patches : stated->keys()) {
      const std::int64_t number = patches_of_key(*stated, patches);
      if (!queries.emplace(number, stated->size({patches})).second) {
        stated->fail(patches, "is a number of patches that another key writes, too", "remove one");
      }
    }
    stated->finish();
  }
  return queries.empty() ? absent : queries;
}

/// The queries of an image of the tower's size, by the number of its patches.
QueryAttentionStep read_aria_queries(ConfigReader& config, const TowerSpec& tower,
                                     ModelSpec& spec) {
  const std::map<std::int64_t, std::int64_t> queries = read_query_table(config);
  QueryAttentionStep step;
  step.attention = tower.stack.self_attention;
  step.norm = {kQueryNorm, true, 1e-5};  // as PyTorch's LayerNorm
  for (const auto& [patches, count] : queries) {
    step.stored_queries = std::max(step.stored_queries, count);
  }
  config.expect_number("max_value_projector_patch_to_query_dict",
                       static_cast<double>(step.stored_queries));
  const auto own = queries.find(tower.embedding.image->num_patches());
  step.queries = own == queries.end() ? step.stored_queries : own->second;
  if (own == queries.end())
    spec.not_run = "its class has no queries for images of its tower's size";
  return step;
}

}  // namespace

void read_aria_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerSpec tower = read_idefics3_vision(vision, spec);
  read_common_keys(vision, spec);
  vision.finish();
  const QueryAttentionStep queries = read_aria_queries(config, tower, spec);
  tower.projector.steps = {
      queries, NormStep{"norm", queries.norm}, LinearStep{"up", spec.hidden_size, false},
      ActivationStep{ActivationKind::gelu_new}, LinearStep{"down", spec.hidden_size, false}};
  read_feature_layers(config, tower, -1);
  spec.tower = std::move(tower);
}

namespace {

/// Attention of Molmo 2 whose keys have as many heads as its queries: 16 in the class.
void require_equal_heads(ConfigReader& config) {
  const std::int64_t heads = config.size_or({"num_attention_heads"}, 16);
  if (config.size_or({"num_key_value_heads"}, 16) == heads) return;
  config.fail("num_key_value_heads", "is not num_attention_heads, which is not supported here",
              "use as many of both");
}

}  // namespace

void count_molmo2_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1152);
  layers.inner = vision.size_or({"intermediate_size"}, 4304);
  layers.count = vision.layers_or({"num_hidden_layers"}, 25);
  layers.heads_width = product(vision, "head_dim", vision.size_or({"num_attention_heads"}, 16),
                               vision.size_or({"head_dim"}, 72));
  layers.qkv_bias = vision.flag_or({"attention_bias"}, true);
  layers.output_bias = layers.qkv_bias;
  require_equal_heads(vision);
  PatchGrid grid = read_patch_grid(vision, "num_channels", 378, 14);
  grid.patches = vision.size_or({"num_position_embeddings"}, grid.patches);
  count_patches(vision, layers, grid, spec);
  ConfigReader adapter = config.object_or_empty("adapter_config");
  const std::int64_t pooled = adapter.size_or({"hidden_size"}, 1152);
  if (pooled != layers.width) {
    adapter.fail("hidden_size", "is not that of the tower, whose states it pools",
                 "use vision_config.hidden_size");
  }
  require_equal_heads(adapter);
  const std::int64_t heads =
      product(adapter, "head_dim", adapter.size_or({"num_attention_heads"}, 16),
              adapter.size_or({"head_dim"}, 72));
  const std::int64_t read = adapter.is_list("vision_feature_layer")
                                ? std::ssize(adapter.integers_or("vision_feature_layer", -1))
                                : 2;
  const std::int64_t features = product(adapter, "vision_feature_layer", read, layers.width);
  const bool bias = adapter.flag_or({"attention_bias"}, true);
  const std::int64_t inner = adapter.size_or({"intermediate_size"}, 18944);
  const std::int64_t out = adapter.size_or({"text_hidden_size"}, 3584);
  TowerWeights projector(spec, ModelPart::projector);
  for (const char* const name : {"query", "key", "value"}) {
    projector.linear_if(bias, std::string("pooling.") + name, features, heads, kQueryRole);
  }
  projector.linear_if(bias, "pooling.output", heads, pooled, kQueryRole);
  const bool mlp_bias = adapter.flag_or({"mlp_bias"}, false);
  projector.linear_if(mlp_bias, "gate", pooled, inner, kQueryRole);
  projector.linear_if(mlp_bias, "up", pooled, inner, kQueryRole);
  projector.linear_if(false, "down", inner, out, kQueryRole);
  ignore_tower_keys(adapter);
  read_common_keys(adapter, spec);
  adapter.finish();
  config.ignore({"image_patch_id", "low_res_image_start_token_id", "frame_start_token_id",
                 "frame_end_token_id", "image_col_id", "image_low_res_id",
                 "use_frame_special_tokens"});
}

void count_ovis2_tower(ConfigReader& config, ModelSpec& spec) {
  ConfigReader vision = config.object_or_empty("vision_config");
  TowerLayers layers;
  layers.width = vision.size_or({"hidden_size"}, 1024);
  layers.inner = vision.size_or({"intermediate_size"}, 2816);
  layers.count = vision.layers_or({"num_hidden_layers"}, 24);
  layers.ffn = FfnKind::gated;
  layers.norm = NormKind::rms_norm;
  layers.qkv_bias = vision.flag_or({"qkv_bias"}, false);
  layers.output_bias = layers.qkv_bias;
  layers.ffn_bias = vision.flag_or({"mlp_bias"}, false);
  const std::int64_t words = vision.size_or({"vocab_size"}, 16384);
  const std::int64_t marks = vision.count_or({"num_visual_indicator_tokens"}, 5);
  if (marks >= words) {
    vision.fail("num_visual_indicator_tokens", "is not smaller than vocab_size",
                "use fewer of these tokens");
  }
  const std::int64_t stride = vision.size_or({"hidden_stride"}, 1);
  const std::int64_t merged = product(vision, "hidden_stride", stride, stride);
  const std::int64_t features = product(vision, "hidden_stride", merged, layers.width);
  vision.ignore({"tokenize_function"});
  count_patches(vision, layers, read_patch_grid(vision, "num_channels", 224, 14), spec);
  TowerWeights tower(spec, ModelPart::vision);
  tower.norm(NormKind::rms_norm, "norms", layers.width, 2);
  tower.linear_if(false, "head", features, words - marks, kQueryRole);
  tower.norm(kQueryNorm, "head_norm", words - marks);
  TowerWeights projector(spec, ModelPart::projector);
  const std::int64_t out = config.size_or_of_class({"hidden_size"}, 1536);
  projector.add("table.weight", {words, out}, kQueryTable);
  config.ignore({"visual_indicator_token_ids", "vocab_size"});
}

}  // namespace headroom::detail
