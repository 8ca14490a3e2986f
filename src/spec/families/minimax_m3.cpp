// MiniMax M3: grouped-query attention over blocks of keys that an indexer chooses, routed and
// shared experts, a vision tower (transformers, models/minimax_m3_vl).
#include <fmt/format.h>

#include <algorithm>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "../towers/tower_names.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

/// Layers that a list marks if the config lacks it.
enum class LayersWhenAbsent { none, all };

/// One entry per layer, from a list of 0 and 1.
std::vector<bool> read_layer_flags(ConfigReader& config, std::string_view key,
                                   std::int64_t num_layers) {
  const std::vector<std::int64_t> values = config.counts(key);
  if (std::ssize(values) != num_layers) {
    config.fail(key, "does not have an entry for every layer", "write 0 or 1 for each layer");
  }
  std::vector<bool> flags(values.size());
  for (std::size_t layer = 0; layer < values.size(); ++layer) flags[layer] = values[layer] != 0;
  return flags;
}

/// One entry per layer: true for the word `marked`, false for `other`; `absent` without the key.
std::vector<bool> read_layer_words(ConfigReader& config, std::string_view key,
                                   std::int64_t num_layers, std::string_view marked,
                                   std::string_view other, LayersWhenAbsent absent) {
  const std::vector<std::string> words = config.texts(key);
  if (words.empty()) {
    const bool all = absent == LayersWhenAbsent::all;
    config.note_of_class(key, fmt::format("({} in every layer)", all ? marked : other));
  }
  std::vector<bool> flags(static_cast<std::size_t>(num_layers), absent == LayersWhenAbsent::all);
  if (words.empty()) return flags;
  if (words.size() != flags.size()) {
    config.fail(key, "does not have an entry for every layer", "name each of num_hidden_layers");
  }
  for (std::size_t layer = 0; layer < words.size(); ++layer) {
    flags[layer] = words[layer] == marked;
    if (flags[layer] || words[layer] == other) continue;
    config.fail(key, fmt::format("\"{}\" is not supported", words[layer]),
                fmt::format("use {} or {}", marked, other));
  }
  return flags;
}

void read_minimax_experts(ConfigReader& config, StackSpec& stack) {
  ExpertsSpec experts = read_experts(config, {{"num_local_experts"}, 0, 0});
  experts.intermediate_size = stack.ffn.intermediate_size;
  const std::int64_t shared = config.count_or({"n_shared_experts"}, 1);
  const std::int64_t width = config.size({"shared_intermediate_size"});
  experts.shared_intermediate_size = product(config, "n_shared_experts", shared, width);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = config.flag_or({"use_routing_bias"}, true);
  experts.normalise = true;
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, 2);
  config.expect_text("scoring_func", "sigmoid");
  const std::vector<bool> routed =
      config.has("moe_layer_freq") ? read_layer_flags(config, "moe_layer_freq", stack.num_layers)
                                   : read_layer_words(config, "mlp_layer_types", stack.num_layers,
                                                      "sparse", "dense", LayersWhenAbsent::all);
  // Other names of what is read: intermediate_size and moe_layer_freq.
  config.expect_number("moe_intermediate_size", static_cast<double>(experts.intermediate_size));
  config.ignore({"first_k_dense_replace"});
  stack.ffn.intermediate_size = config.size({"dense_intermediate_size"});
  set_experts(stack, routed, experts);
}

/// The indexer, and the layers that have one.
struct BlockIndexer {
  std::vector<bool> layers{};
  IndexerSpec spec{4, 128, 2048};
};

/// Keys of the config that size an indexer of blocks.
struct BlockIndexerKeys {
  std::string_view num_heads;
  std::string_view head_dim;
  std::string_view block_size;
  std::string_view top_blocks;
  std::string_view local_blocks;
};

/// Reads the sizes of an indexer from `config`, of which `keys` are the names.
IndexerSpec read_block_sizes(ConfigReader& config, const BlockIndexerKeys& keys) {
  IndexerSpec spec{config.size_or({keys.num_heads}, 4), config.size_or({keys.head_dim}, 128)};
  spec.block_size = config.size_or({keys.block_size}, 128);
  const std::int64_t blocks = config.size_or({keys.top_blocks}, 16);
  spec.top_k = product(config, keys.top_blocks, blocks, spec.block_size);
  // With a block of its own in every choice, a query reads a number of keys that is known.
  spec.local_blocks = config.size_or({keys.local_blocks}, 1);
  if (spec.local_blocks > blocks) {
    config.fail(keys.local_blocks, "is more than the blocks that a query reads",
                fmt::format("at most {}", keys.top_blocks));
  }
  if (spec.block_size == 1) {
    config.fail(keys.block_size, "makes blocks of one key", "use blocks of several keys");
  }
  return spec;
}

constexpr BlockIndexerKeys kPublishedKeys{"sparse_num_index_heads", "sparse_index_dim",
                                          "sparse_block_size", "sparse_topk_blocks",
                                          "sparse_local_block"};
constexpr BlockIndexerKeys kTransformersKeys{"index_n_heads", "index_head_dim", "index_block_size",
                                             "index_topk_blocks", "index_local_blocks"};

/// As published, in an object of its own; or as transformers 5 writes it.
BlockIndexer read_block_indexer(ConfigReader& config, std::int64_t num_layers) {
  BlockIndexer indexer;
  auto sparse = config.object("sparse_attention_config");
  if (!sparse) {
    indexer.spec = read_block_sizes(config, kTransformersKeys);
    indexer.layers = read_layer_words(config, "layer_types", num_layers, "minimax_m3_sparse",
                                      "full_attention", LayersWhenAbsent::none);
    return indexer;
  }
  indexer.spec = read_block_sizes(*sparse, kPublishedKeys);
  indexer.layers = read_layer_flags(*sparse, "sparse_attention_freq", num_layers);
  sparse->expect_flag("use_sparse_attention", true);
  sparse->expect_text("sparse_score_type", "max");
  sparse->expect_number("sparse_init_block", 0);
  sparse->ignore({"sparse_disable_index_value"});  // of every sparse layer
  sparse->finish();
  return indexer;
}

/// Throws unless the indexer's sizes fit the heads that it chooses for, and their RoPE.
void require_fitting_indexer(ConfigReader& config, const IndexerSpec& indexer,
                             const ModelSpec& spec) {
  const AttentionSpec& attention = spec.decoder->self_attention;
  if (attention.num_attention_heads % indexer.num_heads != 0) {
    config.fail(kTransformersKeys.num_heads, "does not divide the attention heads",
                "use as many heads of the indexer as of keys and values");
  }
  const std::int64_t rotary = spec.position.rope.rotary_dim;
  if (indexer.head_dim < (rotary == 0 ? attention.head_dim : rotary)) {
    config.fail(kTransformersKeys.head_dim, "is less than the dimensions that RoPE rotates",
                "use a wider head of the indexer");
  }
}

void add_block_indexer(ConfigReader& config, ModelSpec& spec) {
  BlockIndexer indexer = read_block_indexer(config, spec.decoder->num_layers);
  if (std::ranges::count(indexer.layers, true) == 0) return;
  require_fitting_indexer(config, indexer.spec, spec);
  indexer.layers.flip();
  vary_layers(*spec.decoder, indexer.layers,
              [&](LayerVariant& variant) { variant.self_attention.indexer = indexer.spec; });
}

/// The class rotates as many dimensions as partial_rotary_factor says, all without that key,
/// whatever `rotary_dim` says.
void note_rotary_dim(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t turned = spec.position.rope.rotary_dim == 0
                                  ? spec.decoder->self_attention.head_dim
                                  : spec.position.rope.rotary_dim;
  const std::int64_t stated = config.size_or({"rotary_dim"}, turned);
  if (stated == turned) return;
  spec.assumptions.push_back(fmt::format(
      "RoPE rotates {} dimensions, as in transformers, which does not read rotary_dim ({})", turned,
      stated));
}

void read_minimax_m3_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 1048576;
  defaults.num_key_value_heads = 4;
  defaults.head_dim = 128;
  defaults.norm = {NormKind::rms_norm, false, 1e-6, NormWeight::one_plus};
  defaults.rope.theta = 5e6;
  defaults.bias = BiasRule::none;
  defaults.fixed_activation = ActivationKind::clamped_swiglu;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  config.expect_flag("use_gemma_norm", true);
  config.expect_flag("use_qk_norm", true);
  config.expect_text("qk_norm_type", "per_head");
  config.expect_flag("attention_output_gate", false);
  config.expect_number("swiglu_alpha", 1.702);
  config.expect_number("swiglu_limit", 7);
  note_rotary_dim(config, spec);
  config.ignore({"num_mtp_modules", "num_nextn_predict_layers"});  // for speculative decoding
  read_minimax_experts(config, stack);
  add_block_indexer(config, spec);
}

// As published, and as transformers 5 writes a text model.
constexpr NameRule kMiniMaxM3[] = {
    {"decoder.layers.attention.indexer.query.%", "layers.{}.self_attn.index_q_proj.%"},
    {"decoder.layers.attention.indexer.key.%", "layers.{}.self_attn.index_k_proj.%"},
    {"decoder.layers.attention.indexer.query_norm.%", "layers.{}.self_attn.index_q_norm.%"},
    {"decoder.layers.attention.indexer.key_norm.%", "layers.{}.self_attn.index_k_norm.%"},
    {"decoder.layers.mlp.shared_expert.gate.%",
     "layers.{}.block_sparse_moe.shared_experts.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%",
     "layers.{}.block_sparse_moe.shared_experts.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%",
     "layers.{}.block_sparse_moe.shared_experts.down_proj.%"},
    {"decoder.layers.attention.indexer.query.%", "layers.{}.self_attn.indexer.q_proj.%"},
    {"decoder.layers.attention.indexer.key.%", "layers.{}.self_attn.indexer.k_proj.%"},
    {"decoder.layers.attention.indexer.query_norm.%", "layers.{}.self_attn.indexer.q_norm.%"},
    {"decoder.layers.attention.indexer.key_norm.%", "layers.{}.self_attn.indexer.k_norm.%"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_experts.gate_up_proj.%",
     part(0)},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_experts.gate_up_proj.%",
     part(1)},
    {"decoder.layers.mlp.gate.%", "layers.{}.mlp.gate_up_proj.%", part(0)},
    {"decoder.layers.mlp.up.%", "layers.{}.mlp.gate_up_proj.%", part(1)},
};

/// Layers with an indexer, and with experts, have their tensors; dense layers come first.
void finish_minimax_m3(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::int64_t layers = metadata.blocks();
  const std::int64_t dense = metadata.count("leading_dense_block_count").value_or(0);
  std::vector<std::string> attentions;
  std::vector<std::string> networks;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const bool indexed = metadata.has_tensor(fmt::format("blk.{}.indexer.q_proj.weight", layer));
    attentions.emplace_back(indexed ? "minimax_m3_sparse" : "full_attention");
    networks.emplace_back(layer < dense ? "dense" : "sparse");
  }
  config.set_texts("layer_types", attentions);
  config.set_texts("mlp_layer_types", networks);
  config.copy(metadata, "expert_feed_forward_length", "shared_intermediate_size");
  finish_partial_rotary(metadata, config);
}

GgufForm minimax_m3_form() {
  return GgufForm(GgufConversion::unknown,
                  {{.name = "minimax-m3",
                    .common = gguf_expert_keys(),
                    .own = {{"feed_forward_length", "dense_intermediate_size"},
                            {"expert_feed_forward_length", "intermediate_size"},
                            {"expert_count", "num_local_experts"},
                            {"expert_shared_count", "n_shared_experts"},
                            {"expert_weights_scale", "routed_scaling_factor"},
                            {"attention.indexer.head_count", "index_n_heads"},
                            {"attention.indexer.key_length", "index_head_dim"}},
                    .head_dim = GgufHeadDim::always,
                    .finish = finish_minimax_m3}});
}

}  // namespace

std::vector<Family> minimax_m3_families() {
  return {{.model_types = {"minimax_m3_vl_text", "minimax_m3"},
           .classes = either_of(
               llama_classes("MiniMaxM3Sparse"),
               either_of(decoder_classes("MiniMaxM3VL", {.float32_logits = true}),
                         either_of(llama_classes("MiniMaxM3"), one_class("MiniMaxM3VLTextModel")))),
           .reader = read_minimax_m3_text,
           .names = llama_names(
               {kMiniMaxM3, query_key_norm_rules(), mixtral_expert_rules(), shared_expert_rules()}),
           .gguf = minimax_m3_form()},
          wrapper_family({.model_types = {"minimax_m3_vl"},
                          .classes = {"MiniMaxM3SparseForConditionalGeneration",
                                      "MiniMaxM3VLForConditionalGeneration"},
                          .bare_classes = {"MiniMaxM3VLModel"},
                          .text_type = "minimax_m3_vl_text",
                          .count_towers = read_minimax_m3_tower,
                          .tying = HeadTying::either,
                          .names = wrapped_minimax_m3_names()})};
}

}  // namespace headroom::detail
