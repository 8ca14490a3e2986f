#include "deepseek_layers.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

namespace headroom::detail {
namespace {

constexpr NameRule kLatent[] = {
    {"decoder.layers.attention.query.%", "layers.{}.self_attn.q_b_proj.%"},
    {"decoder.layers.attention.query_a.%", "layers.{}.self_attn.q_a_proj.%"},
    {"decoder.layers.attention.query_a_norm.%", "layers.{}.self_attn.q_a_layernorm.%"},
    {"decoder.layers.attention.key_value_a.%", "layers.{}.self_attn.kv_a_proj_with_mqa.%"},
    {"decoder.layers.attention.key_value_a_norm.%", "layers.{}.self_attn.kv_a_layernorm.%"},
    {"decoder.layers.attention.key_value.%", "layers.{}.self_attn.kv_b_proj.%"},
};

// Indexer of sparse attention (GLM-5).
constexpr NameRule kIndexer[] = {
    {"decoder.layers.attention.indexer.query.%", "layers.{}.self_attn.indexer.wq_b.%"},
    {"decoder.layers.attention.indexer.key.%", "layers.{}.self_attn.indexer.wk.%"},
    {"decoder.layers.attention.indexer.key_norm.%", "layers.{}.self_attn.indexer.k_norm.%"},
    {"decoder.layers.attention.indexer.weights.%", "layers.{}.self_attn.indexer.weights_proj.%"},
};

constexpr NameRule kSharedExperts[] = {
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mlp.gate.e_score_correction_bias"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_experts.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_experts.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_experts.down_proj.%"},
};

}  // namespace

DecoderDefaults deepseek_defaults(std::int64_t positions) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = positions;
  defaults.rope.layout = RopeLayout::interleaved;
  defaults.bias = BiasRule::none;
  return defaults;
}

void read_latent_attention(ConfigReader& config, ModelSpec& spec, const LatentSizes& sizes) {
  AttentionSpec& attention = spec.decoder->self_attention;
  LatentAttentionSpec latent;
  const std::int64_t absent = config.is_null("q_lora_rank") ? 0 : sizes.q_lora_rank;
  latent.q_lora_rank = config.count_or({"q_lora_rank"}, absent);
  latent.kv_lora_rank = config.size_or({"kv_lora_rank"}, sizes.kv_lora_rank);
  latent.qk_nope_head_dim = config.size_or({"qk_nope_head_dim"}, sizes.qk_nope_head_dim);
  latent.qk_rope_head_dim = config.size_or({"qk_rope_head_dim"}, sizes.qk_rope_head_dim);
  latent.bias = config.flag_or({"attention_bias"}, false);
  attention.output_bias = latent.bias;
  // One latent vector yields K and V of every head, so there are as many KV heads as query heads.
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.head_dim = latent.qk_nope_head_dim + latent.qk_rope_head_dim;
  attention.value_head_dim = config.size_or({"v_head_dim"}, sizes.value_head_dim);
  config.expect_number("qk_head_dim", static_cast<double>(attention.head_dim));
  RopeSpec& rope = spec.position.rope;
  if (!config.flag_or({"rope_interleave"}, true)) rope.layout = RopeLayout::half_split;
  const bool widened = rope.scaling == RopeScalingKind::yarn && rope.mscale_all_dim != 0;
  if (widened && rope.factor > 1) {
    // Vendor's code: the scale grows with the RoPE factor (arXiv 2309.00071, 3.4).
    const double mscale = 0.1 * rope.mscale_all_dim * std::log(rope.factor) + 1;
    attention.scale = AttentionScale::fixed;
    attention.fixed_scale = mscale * mscale / std::sqrt(static_cast<double>(attention.head_dim));
  }
  attention.latent = latent;
}

ExpertsSpec read_shared_and_routed_experts(ConfigReader& config, const ExpertKeys& keys,
                                           const ExpertDefaults& absent) {
  ExpertsSpec experts = read_experts(config, keys);
  experts.intermediate_size =
      config.size_or_of_class({"moe_intermediate_size"}, absent.intermediate_size);
  const std::int64_t shared = config.is_null("n_shared_experts") ? 0 : absent.num_shared;
  experts.shared_intermediate_size =
      product(config, "n_shared_experts",
              config.count_or({"n_shared_experts", "num_shared_experts"}, shared),
              experts.intermediate_size);
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, absent.scaling_factor);
  return experts;
}

void require_groups(ConfigReader& config, const ExpertsSpec& experts) {
  if (experts.num_experts % experts.num_groups != 0) {
    config.fail("n_group", "does not divide the number of experts",
                "use a divisor of the number of experts");
  }
  if (experts.chosen_groups > experts.num_groups) {
    config.fail("topk_group", "is more than the number of groups", "use at most n_group");
  }
  const std::int64_t eligible = experts.num_experts / experts.num_groups * experts.chosen_groups;
  if (experts.num_experts_per_tok > eligible) {
    config.fail("topk_group", fmt::format("leaves {} experts, fewer than a token has", eligible),
                "raise it, or lower num_experts_per_tok");
  }
}

void read_groups(ConfigReader& config, ExpertsSpec& experts, GroupLimit limit,
                 ExpertGroups absent) {
  const std::int64_t groups = config.size_or({"n_group"}, absent.num);
  const std::int64_t chosen = config.size_or({"topk_group"}, absent.chosen);
  if (limit == GroupLimit::none) return;
  experts.num_groups = groups;
  experts.chosen_groups = chosen;
  require_groups(config, experts);
}

void balance_experts(ConfigReader& config, ExpertsSpec& experts, ExpertGroups absent) {
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.group_score = GroupScore::two_best;
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  read_groups(config, experts, GroupLimit::groups, absent);
}

ExpertsSpec read_balanced_experts(ConfigReader& config, const ExpertKeys& keys,
                                  const BalancedDefaults& absent) {
  ExpertsSpec experts = read_shared_and_routed_experts(
      config, keys, {absent.intermediate_size, 1, absent.scaling_factor});
  const bool renamed = config.is_text("scoring_func", absent.sigmoid_scores);
  config.expect_text("scoring_func", renamed ? absent.sigmoid_scores : "sigmoid");
  config.expect_text("topk_method", "noaux_tc");
  balance_experts(config, experts, absent.groups);
  return experts;
}

void spread_experts(ConfigReader& config, StackSpec& stack, const ExpertsSpec& experts,
                    std::int64_t dense_when_absent) {
  set_sparse_layers(config, stack, experts,
                    config.count_or({"first_k_dense_replace"}, dense_when_absent));
}

void set_sparse_layers(ConfigReader& config, StackSpec& stack, const ExpertsSpec& experts,
                       std::int64_t dense) {
  const std::vector<std::string> types = config.texts("mlp_layer_types");
  if (!types.empty())
    config.require_one_per_layer("mlp_layer_types", types.size(), stack.num_layers,
                                 "write \"dense\" or \"sparse\" for each of num_hidden_layers");
  // Beside mlp_layer_types, a list marks the layers in the published form of the same config.
  const bool marks_again = !types.empty() && config.is_list("moe_layer_freq");
  if (!marks_again) config.expect_number("moe_layer_freq", 1);
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    const bool listed = !types.empty();
    routed.push_back(listed ? types[static_cast<std::size_t>(layer)] == "sparse" : layer >= dense);
  }
  set_experts(stack, routed, experts);
  config.ignore({"ep_size"});
}

HyperConnectionSpec read_streams(ConfigReader& config) {
  HyperConnectionSpec connections;
  connections.streams = config.size_or({"hc_mult"}, 4);
  connections.eps = config.number_or({"hc_eps"}, 1e-6);
  if (connections.eps <= 0 || connections.eps >= 1) {
    config.fail("hc_eps", "expected a number between 0 and 1", "write the class's 1e-6");
  }
  return connections;
}

HyperConnectionSpec read_mixed_streams(ConfigReader& config) {
  constexpr std::int64_t kMostIterations = 1000;
  HyperConnectionSpec connections = read_streams(config);
  connections.sinkhorn_iterations = config.size_or({"hc_sinkhorn_iters"}, 20);
  if (connections.sinkhorn_iterations > kMostIterations) {
    config.fail("hc_sinkhorn_iters", "expected at most 1000 iterations", "write fewer");
  }
  return connections;
}

std::span<const NameRule> shared_expert_rules() { return kSharedExperts; }

NameTable deepseek_names(std::span<const NameRule> own) {
  return llama_names({own, kIndexer, kLatent, kSharedExperts, routed_expert_rules()});
}

}  // namespace headroom::detail
