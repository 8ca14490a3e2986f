// Qwen2-MoE and Qwen3-MoE: Qwen with routed experts, the former with a gated expert for every token
// (arXiv 2407.10671, 2505.09388).
#include <algorithm>

#include "../decoder.h"

namespace headroom::detail {
namespace {

ExpertsSpec read_qwen_experts(ConfigReader& config, const ExpertKeys& keys,
                              std::int64_t size_when_absent) {
  ExpertsSpec experts = read_experts(config, keys);
  experts.intermediate_size = config.size_or({"moe_intermediate_size"}, size_when_absent);
  experts.normalise = config.flag_or({"norm_topk_prob"}, false);
  return experts;
}

/// Every `decoder_sparse_step`-th layer has experts, unless it is named in `mlp_only_layers`.
void spread_experts(ConfigReader& config, StackSpec& stack, const ExpertsSpec& experts) {
  const std::int64_t step = config.size_or({"decoder_sparse_step"}, 1);
  const std::vector<std::int64_t> dense = config.counts("mlp_only_layers");
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    const bool named = std::ranges::find(dense, layer) != dense.end();
    routed.push_back(!named && (layer + 1) % step == 0);
  }
  set_experts(stack, routed, experts);
}

}  // namespace

void read_qwen2_moe(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kSharedWhenAbsent = 5632;
  DecoderFamily family;
  family.prefix = "Qwen2Moe";
  family.max_position_embeddings = 32768;
  family.bias = BiasRule::none;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.qkv_bias = config.flag_or({"qkv_bias"}, true);
  ExpertsSpec experts =
      read_qwen_experts(config, {{"num_experts", "num_local_experts"}, 60, 4}, 1408);
  experts.shared_intermediate_size =
      config.size_or({"shared_expert_intermediate_size"}, kSharedWhenAbsent);
  experts.shared_gate = true;
  spread_experts(config, stack, experts);
  read_qwen_windows(config, stack);
}

void read_qwen3_moe(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Qwen3Moe";
  family.max_position_embeddings = 32768;
  family.num_key_value_heads = 4;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  spread_experts(config, stack,
                 read_qwen_experts(config, {{"num_experts", "num_local_experts"}, 128, 8}, 768));
  const bool windowed = config.flag_or({"use_sliding_window"}, false);
  const WindowSpec window = read_window(config, 4096);
  if (windowed) stack.self_attention.window = window;
  // Of no effect in this class.
  config.ignore({"max_window_layers", "layer_types", "shared_expert_intermediate_size", "qkv_bias",
                 "use_qk_norm"});
}

}  // namespace headroom::detail
