// DeepSeek V3.2 and GLM-5: DeepSeek V3 with sparse attention, in which an indexer chooses the keys
// of each query (arXiv 2512.02556).
#include "deepseek_sparse.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "../deepseek_layers.h"
#include "../family.h"
#include "../gguf/latent_form.h"

namespace headroom::detail {
namespace {

/// Balanced experts in all layers but the first three.
void read_experts_after_three(ConfigReader& config, ModelSpec& spec, ExpertGroups absent) {
  const ExpertsSpec experts = read_balanced_experts(
      config, {{"n_routed_experts", "num_experts", "num_local_experts"}, 256, 8},
      {2048, 2.5, absent});
  spread_experts(config, *spec.decoder, experts, 3);
}

void read_glm_moe_dsa(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek_defaults(202752);
  defaults.norm_eps = 1e-5;
  // The class reads qk_rope_head_dim and qk_nope_head_dim instead.
  config.ignore({"head_dim"});
  read_decoder(config, spec, defaults);
  read_latent_attention(config, spec, {2048, 192, 256});
  read_experts_after_three(config, spec, {});
  read_indexer(config, spec, {32, RopeLayout::interleaved});
}

void read_deepseek_v32(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, deepseek_defaults(163840));
  read_latent_attention(config, spec, {});
  read_experts_after_three(config, spec, {8, 4});
  read_indexer(config, spec, {});
}

/// Throws unless `key` has at least one entry for each layer; modules for multi-token prediction
/// may have more.
void require_all_layers(const ConfigReader& config, std::string_view key, std::size_t entries,
                        std::int64_t num_layers) {
  if (std::cmp_greater_equal(entries, num_layers)) return;
  config.fail(key, fmt::format("has {} entries for {} layers", entries, num_layers),
              "write one for each layer");
}

/// Layers with an indexer of their own, from a list of words; empty if `key` is none.
std::vector<bool> read_indexer_words(ConfigReader& config, std::string_view key,
                                     std::int64_t num_layers) {
  std::vector<bool> own;
  for (const std::string& word : config.texts(key)) {
    if (word != "full" && word != "shared") {
      config.fail(key, fmt::format("has the word \"{}\"", word), "use \"full\" or \"shared\"");
    }
    own.push_back(word == "full");
  }
  if (!own.empty()) require_all_layers(config, key, own.size(), num_layers);
  return own;
}

/// The list of words, whose name differs between writers; empty if there is none.
std::vector<bool> read_listed_indexers(ConfigReader& config, std::int64_t num_layers) {
  const std::vector<bool> types = read_indexer_words(config, "indexer_types", num_layers);
  const bool lists_pattern = types.empty() && config.is_list("index_topk_pattern");
  return lists_pattern ? read_indexer_words(config, "index_topk_pattern", num_layers) : types;
}

}  // namespace

std::vector<bool> read_own_indexers(ConfigReader& config, std::int64_t num_layers,
                                    std::int64_t absent) {
  const std::vector<bool> listed = read_listed_indexers(config, num_layers);
  const std::int64_t every =
      std::max<std::int64_t>(config.count_or({"index_topk_freq"}, absent), 1);
  const std::int64_t offset = config.count_or({"index_skip_topk_offset"}, 2);
  std::optional<std::string> pattern;
  if (!config.is_list("index_topk_pattern")) {
    pattern = config.optional_text({"index_topk_pattern"});
  }
  if (pattern) require_all_layers(config, "index_topk_pattern", pattern->size(), num_layers);
  std::vector<bool> own;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const auto entry = static_cast<std::size_t>(layer);
    if (!listed.empty()) {
      own.push_back(listed[entry]);
    } else if (pattern) {
      own.push_back((*pattern)[entry] == 'F');
    } else {
      own.push_back(std::max<std::int64_t>(layer - offset + 1, 0) % every == 0);
    }
  }
  return own;
}

IndexerSpec read_indexer_sizes(ConfigReader& config, const LatentAttentionSpec& latent,
                               const IndexerDefaults& absent) {
  IndexerSpec indexer;
  indexer.num_heads = config.size_or({"index_n_heads"}, absent.num_heads);
  indexer.head_dim = config.size_or({"index_head_dim"}, 128);
  indexer.top_k = config.size_or({"index_topk"}, 2048);
  if (indexer.head_dim < latent.qk_rope_head_dim) {
    config.fail("index_head_dim", "is less than qk_rope_head_dim", "use qk_rope_head_dim or more");
  }
  const bool interleaves = absent.rope_layout == RopeLayout::interleaved;
  indexer.rope_layout = config.flag_or({"indexer_rope_interleave"}, interleaves)
                            ? RopeLayout::interleaved
                            : RopeLayout::half_split;
  indexer.query_norm = absent.query_norm;
  indexer.temperature = absent.temperature;
  if (!indexer.query_norm && latent.q_lora_rank == 0) {
    config.fail("q_lora_rank", "is null, and the indexer reads the compressed queries",
                "give q_lora_rank a size");
  }
  return indexer;
}

void read_indexer(ConfigReader& config, ModelSpec& spec, const IndexerDefaults& absent) {
  StackSpec& stack = *spec.decoder;
  const IndexerSpec indexer = read_indexer_sizes(config, *stack.self_attention.latent, absent);
  stack.self_attention.indexer = indexer;
  for (LayerVariant& variant : stack.variants) variant.self_attention.indexer = indexer;
  const std::vector<bool> own = read_own_indexers(config, stack.num_layers, absent.every);
  if (!own.front()) {
    config.fail(config.has("indexer_types") ? "indexer_types" : "index_topk_pattern",
                "gives the first layer no indexer, and no layer before it has one",
                "begin with a layer that has an indexer");
  }
  vary_layers(stack, own, [](LayerVariant& variant) {
    variant.self_attention.indexer->place = IndexerPlace::earlier_layer;
  });
  // Later releases of transformers 5 write the second word.
  const auto is_sparse = [](const std::string& type) {
    return type == "deepseek_sparse_attention" || type == "indexed_attention";
  };
  if (!std::ranges::all_of(config.texts("layer_types"), is_sparse)) {
    config.fail("layer_types", "names a layer without sparse attention",
                "use deepseek_sparse_attention for every layer");
  }
  config.ignore({"num_nextn_predict_layers", "mlp_bias", "index_share_for_mtp_iteration",
                 "moe_router_dtype"});
}

std::vector<Family> deepseek_sparse_families() {
  return {{.model_types = {"deepseek_v32"},
           .classes = llama_classes("DeepseekV32"),
           .reader = read_deepseek_v32,
           .names = deepseek_names(),
           .gguf = GgufForm(GgufConversion::unknown, {indexed_architecture("deepseek32")})},
          {.model_types = {"glm_moe_dsa"},
           .classes = llama_classes("GlmMoeDsa"),
           .reader = read_glm_moe_dsa,
           .names = deepseek_names(),
           .gguf = GgufForm(GgufConversion::unknown, {indexed_architecture("glm-dsa")})}};
}

}  // namespace headroom::detail
