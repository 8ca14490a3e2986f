// MiniMax M3: grouped-query attention over blocks of keys that an indexer chooses, routed and
// shared experts, a vision tower (transformers, models/minimax_m3_vl).
#include <algorithm>

#include "../decoder.h"
#include "../family.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

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
  const std::vector<bool> routed = read_layer_flags(config, "moe_layer_freq", stack.num_layers);
  stack.ffn.intermediate_size = config.size({"dense_intermediate_size"});
  set_experts(stack, routed, experts);
}

/// The indexer of the sparse layers: its weights are counted, it is not in the graph.
void count_block_indexer(ConfigReader& config, ModelSpec& spec) {
  auto sparse = config.object("sparse_attention_config");
  if (!sparse) return;
  const std::vector<bool> used =
      read_layer_flags(*sparse, "sparse_attention_freq", spec.decoder->num_layers);
  const std::int64_t heads = sparse->size_or({"sparse_num_index_heads"}, 4);
  const std::int64_t dim = sparse->size_or({"sparse_index_dim"}, 128);
  sparse->expect_flag("use_sparse_attention", true);
  sparse->ignore({"sparse_topk_blocks", "sparse_block_size", "sparse_disable_index_value",
                  "sparse_score_type", "sparse_init_block", "sparse_local_block"});
  sparse->finish();
  const std::int64_t layers = std::ranges::count(used, true);
  const auto count = [&](const std::string& name, std::vector<std::int64_t> shape,
                         WeightRole role) {
    spec.counted_only.push_back({"decoder.layers.attention.indexer." + name, std::move(shape), role,
                                 layers, ModelPart::text});
  };
  count("query.weight", {product(config, "sparse_num_index_heads", heads, dim), spec.hidden_size},
        WeightRole::attention);
  count("key.weight", {dim, spec.hidden_size}, WeightRole::attention);
  count("query_norm.weight", {dim}, WeightRole::norm);
  count("key_norm.weight", {dim}, WeightRole::norm);
  spec.assumptions.emplace_back(
      "the indexer of sparse attention counts as parameters only: attention counts all keys, "
      "without the indexer's FLOPs and cache");
}

void read_minimax_m3_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 1048576;
  defaults.head_dim = 128;
  defaults.norm = {NormKind::rms_norm, false, 1e-6, NormWeight::one_plus};
  defaults.rope.theta = 5e6;
  defaults.rope.partial_rotary_factor = 0.5;
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
  config.expect_number("rotary_dim", static_cast<double>(spec.position.rope.rotary_dim));
  config.ignore({"num_mtp_modules"});  // modules for speculative decoding
  read_minimax_experts(config, stack);
  count_block_indexer(config, spec);
  spec.not_run = "its sparse attention has no kernel yet";
}

}  // namespace

std::vector<Family> minimax_m3_families() {
  return {{.model_types = {"minimax_m3_vl_text"},
           .classes = either_of(llama_classes("MiniMaxM3Sparse"),
                                either_of(decoder_classes("MiniMaxM3VL", {.float32_logits = true}),
                                          one_class("MiniMaxM3VLTextModel"))),
           .reader = read_minimax_m3_text,
           .names = None("headroom counts this model but cannot run it"),
           .gguf = None("not supported yet")},
          wrapper_family({.model_types = {"minimax_m3_vl"},
                          .classes = {"MiniMaxM3SparseForConditionalGeneration",
                                      "MiniMaxM3VLForConditionalGeneration"},
                          .bare_classes = {"MiniMaxM3VLModel"},
                          .text_type = "minimax_m3_vl_text",
                          .count_towers = count_minimax_m3_tower,
                          .tying = HeadTying::whole_else_text})};
}

}  // namespace headroom::detail
