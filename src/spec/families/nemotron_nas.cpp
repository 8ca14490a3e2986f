// Nemotron-NAS (DeciLM): Llama whose layers differ in key-value heads and inner width, or lack
// attention or network, or have one matrix in their place (Puzzle, arXiv 2411.19146; vLLM,
// models/nemotron_nas.py; transformers does not have it).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// Returns whether a flag of a block is set; `null` and an absent key are false.
bool is_set(ConfigReader& block, std::string_view key) {
  return !block.is_null(key) && block.flag_or({key}, false);
}

/// Requires that a block has no sparse attention, sinks or window, whose code is not published.
void expect_plain_attention(ConfigReader& block) {
  for (const char* const key : {"unshifted_sink", "use_prefill_window_in_sink_attention"}) {
    block.expect_flag(key, false);
  }
}

/// The attention of a layer, or what stands in its place. `usual` is that of config.
AttentionSpec read_block_attention(ConfigReader& block, const AttentionSpec& usual) {
  AttentionSpec attention;
  attention.causal = true;
  expect_plain_attention(block);
  const auto group = block.optional_size({"n_heads_in_group"});
  const bool is_none = is_set(block, "no_op");
  const bool is_matrix = is_set(block, "replace_with_linear");
  if (is_none || is_matrix) {
    attention.kind = is_none ? AttentionKind::none : AttentionKind::matrix;
    return attention;
  }
  if (!group || usual.num_attention_heads % *group != 0) {
    block.fail("n_heads_in_group", "is missing, or does not divide num_attention_heads",
               "use a divisor of num_attention_heads, or \"no_op\": true");
  }
  attention = usual;
  attention.num_key_value_heads = usual.num_attention_heads / *group;
  return attention;
}

/// Two thirds of `multiplier` hidden sizes, rounded up to a multiple of 256.
std::int64_t inner_width(ConfigReader& block, double multiplier, std::int64_t hidden_size) {
  constexpr std::int64_t kMultiple = 256;
  const double exact = std::floor(2 * multiplier * static_cast<double>(hidden_size) / 3);
  if (!(exact >= 1 && exact < 1e15)) {
    block.fail("ffn_mult", fmt::format("{} gives no inner width", multiplier),
               "use a number above 0, such as 5.25");
  }
  return round_up(static_cast<std::int64_t>(exact), kMultiple);
}

FfnSpec read_block_network(ConfigReader& block, const FfnSpec& usual, std::int64_t hidden_size) {
  FfnSpec network = usual;
  const bool has_multiplier = block.has("ffn_mult");
  const double multiplier = has_multiplier ? block.number_or({"ffn_mult"}, 0) : 0;
  const auto width = block.optional_size({"intermediate_size"});
  network.activation = read_activation(block, {"hidden_act"}, usual.activation);
  const bool is_none = is_set(block, "no_op");
  const bool is_matrix = is_set(block, "replace_with_linear");
  if (is_none || is_matrix) {
    network.kind = is_none ? FfnKind::none : FfnKind::matrix;
    network.intermediate_size = 0;
    return network;
  }
  if (!has_multiplier && !width) {
    block.fail("ffn_mult", "is missing", "give ffn_mult, or \"no_op\": true");
  }
  network.intermediate_size = has_multiplier ? inner_width(block, multiplier, hidden_size) : *width;
  return network;
}

bool are_equal(const AttentionSpec& attention, const FfnSpec& ffn, const StackSpec& stack,
               std::size_t variant) {
  const AttentionSpec& other = stack.attention_of(variant);
  const FfnSpec& network = stack.ffn_of(variant);
  return attention.kind == other.kind &&
         attention.num_key_value_heads == other.num_key_value_heads && ffn.kind == network.kind &&
         ffn.intermediate_size == network.intermediate_size && ffn.activation == network.activation;
}

/// The variant of a layer, a new one unless an equal one exists.
std::size_t variant_of(const AttentionSpec& attention, const FfnSpec& ffn, StackSpec& stack) {
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    if (are_equal(attention, ffn, stack, variant)) return variant;
  }
  stack.variants.push_back({attention, ffn});
  return stack.variants.size();
}

struct LayerBlock {
  AttentionSpec attention;
  FfnSpec ffn;
};

std::vector<LayerBlock> read_blocks(ConfigReader& config, const ModelSpec& spec) {
  const StackSpec& stack = *spec.decoder;
  std::vector<LayerBlock> layers;
  for (ConfigReader& block : config.objects("block_configs")) {
    ConfigReader attention = block.object_or_empty("attention");
    ConfigReader ffn = block.object_or_empty("ffn");
    layers.push_back({read_block_attention(attention, stack.self_attention),
                      read_block_network(ffn, stack.ffn, spec.hidden_size)});
    if (layers.back().ffn.kind == FfnKind::gated) {
      layers.back().ffn.bias = stack.ffn.bias;
    }
    attention.finish();
    ffn.finish();
    block.finish();
  }
  config.require_one_per_layer("block_configs", layers.size(), stack.num_layers,
                               "write one for each of num_hidden_layers");
  return layers;
}

void read_nemotron_nas(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm_eps = 1e-6;
  defaults.intermediate_size = 1;  // layers have their own
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  const std::vector<LayerBlock> layers = read_blocks(config, spec);
  // The first variant has attention and a network, whose sizes the symbols name.
  for (const LayerBlock& layer : layers) {
    const bool whole =
        layer.attention.kind == AttentionKind::softmax && layer.ffn.kind == FfnKind::gated;
    if (!whole) continue;
    stack.self_attention = layer.attention;
    stack.ffn = layer.ffn;
    break;
  }
  for (const LayerBlock& layer : layers) {
    stack.variant_of_layer.push_back(variant_of(layer.attention, layer.ffn, stack));
  }
  config.ignore({"pretraining_tp"});
}

constexpr NameRule kNemotronNas[] = {
    {"decoder.layers.attention.matrix.%", "layers.{}.self_attn.linear_attn.%"},
    {"decoder.layers.mlp.matrix.%", "layers.{}.mlp.linear_mlp.%"},
};

constexpr NameRule kNemotronNasGguf[] = {
    {"decoder.layers.attention.matrix.%", "blk.{}.attn_output.%"},
};

constexpr GgufKey kNemotronNasKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.key_length", "head_dim"},
    {"rope.freq_base", "rope_theta"},
};

/// A block of block_configs, from the counts that the file lists for its layer: no query heads mean
/// no attention, no key-value heads a matrix in its place (llama.cpp, LLM_ARCH_DECI).
std::string block_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t width) {
  std::string attention = R"("no_op": true)";
  if (heads > 0) {
    attention = kv_heads > 0 ? fmt::format(R"("n_heads_in_group": {})", heads / kv_heads)
                             : std::string(R"("replace_with_linear": true)");
  }
  const std::string network =
      width > 0 ? fmt::format(R"("intermediate_size": {})", width) : R"("no_op": true)";
  return fmt::format(R"({{"attention": {{{}}}, "ffn": {{{}}}}})", attention, network);
}

void finish_nemotron_nas(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::vector<std::int64_t> heads = metadata.counts_by_layer("attention.head_count");
  const std::vector<std::int64_t> kv_heads = metadata.counts_by_layer("attention.head_count_kv");
  const std::vector<std::int64_t> widths = metadata.counts_by_layer("feed_forward_length");
  std::int64_t most = 0;
  std::string blocks;
  for (std::size_t layer = 0; layer < heads.size(); ++layer) {
    if (kv_heads[layer] > 0 && heads[layer] % kv_heads[layer] != 0) {
      metadata.fail("attention.head_count_kv", "does not divide attention.head_count");
    }
    most = std::max(most, heads[layer]);
    blocks += (layer == 0 ? "" : ", ") + block_of(heads[layer], kv_heads[layer], widths[layer]);
  }
  config.set_count("num_attention_heads", most);
  config.set_json("block_configs", "[" + blocks + "]");
}

}  // namespace

std::vector<Family> nemotron_nas_families() {
  return {{.model_types = {"nemotron-nas"},
           .classes = llama_classes("DeciLM"),
           .reader = read_nemotron_nas,
           .names = llama_names({kNemotronNas}),
           .gguf = GgufForm(GgufConversion::interleaved_heads,
                            {{.name = "deci",
                              .common = kNemotronNasKeys,
                              .flags = gguf_llama_biases(),
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_nemotron_nas}},
                            {kNemotronNasGguf})}};
}

}  // namespace headroom::detail
