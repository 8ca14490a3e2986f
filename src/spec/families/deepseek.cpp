// DeepSeek V2 and V3, Kimi K2 and GLM-5: multi-head latent attention, shared and routed experts
// (arXiv 2405.04434, 2412.19437, 2507.20534); GLM-4.5: the experts alone (arXiv 2508.06471).
#include <cmath>

#include "../decoder.h"

namespace headroom::detail {
namespace {

DecoderFamily deepseek(const std::string& prefix, std::int64_t positions) {
  DecoderFamily family;
  family.prefix = prefix;
  family.max_position_embeddings = positions;
  family.rope.layout = RopeLayout::interleaved;
  family.bias = BiasRule::none;
  return family;
}

/// Sizes of the attention that a config may leave out.
struct LatentSizes {
  std::int64_t q_lora_rank = 1536;
  std::int64_t qk_nope_head_dim = 128;
  std::int64_t value_head_dim = 128;
};

void read_latent_attention(ConfigReader& config, ModelSpec& spec, const LatentSizes& sizes) {
  AttentionSpec& attention = spec.decoder->self_attention;
  LatentAttentionSpec latent;
  const std::int64_t absent = config.is_null("q_lora_rank") ? 0 : sizes.q_lora_rank;
  latent.q_lora_rank = config.count_or({"q_lora_rank"}, absent);
  latent.kv_lora_rank = config.size_or({"kv_lora_rank"}, 512);
  latent.qk_nope_head_dim = config.size_or({"qk_nope_head_dim"}, sizes.qk_nope_head_dim);
  latent.qk_rope_head_dim = config.size_or({"qk_rope_head_dim"}, 64);
  latent.bias = config.flag_or({"attention_bias"}, false);
  attention.output_bias = latent.bias;
  // Keys and values of every head come from one latent vector, so that there are as many.
  attention.num_key_value_heads = attention.num_attention_heads;
  attention.head_dim = latent.qk_nope_head_dim + latent.qk_rope_head_dim;
  attention.value_head_dim = config.size_or({"v_head_dim"}, sizes.value_head_dim);
  config.expect("qk_head_dim", attention.head_dim);
  RopeSpec& rope = spec.position.rope;
  if (!config.flag_or({"rope_interleave"}, true)) rope.layout = RopeLayout::half_split;
  const bool widened = rope.scaling == RopeScalingKind::yarn && rope.mscale_all_dim != 0;
  if (widened && rope.factor > 1) {
    // Vendor's code: the scale grows with the stretch (arXiv 2309.00071, 3.4).
    const double mscale = 0.1 * rope.mscale_all_dim * std::log(rope.factor) + 1;
    attention.scale = AttentionScale::fixed;
    attention.fixed_scale = mscale * mscale / std::sqrt(static_cast<double>(attention.head_dim));
  }
  attention.latent = latent;
}

ExpertsSpec read_deepseek_experts(ConfigReader& config, const ExpertKeys& keys,
                                  std::int64_t size_when_absent, std::int64_t shared_when_absent,
                                  double scaling_when_absent) {
  ExpertsSpec experts = read_experts(config, keys);
  experts.intermediate_size = config.size_or({"moe_intermediate_size"}, size_when_absent);
  const std::int64_t absent = config.is_null("n_shared_experts") ? 0 : shared_when_absent;
  experts.shared_intermediate_size =
      product(config, "n_shared_experts", config.count_or({"n_shared_experts"}, absent),
              experts.intermediate_size);
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, scaling_when_absent);
  return experts;
}

/// Groups of experts, and how many of them a token may use.
struct Groups {
  std::int64_t num = 1;
  std::int64_t chosen = 1;
};

void read_groups(ConfigReader& config, ExpertsSpec& experts, bool limited, Groups absent) {
  const std::int64_t groups = config.size_or({"n_group"}, absent.num);
  const std::int64_t chosen = config.size_or({"topk_group"}, absent.chosen);
  if (!limited) return;
  if (experts.num_experts % groups != 0) {
    config.fail("n_group", "does not divide the number of experts", "use a number that does");
  }
  experts.num_groups = groups;
  experts.chosen_groups = chosen;
}

/// The first layers are dense.
void spread_experts(ConfigReader& config, StackSpec& stack, const ExpertsSpec& experts,
                    std::int64_t dense_when_absent) {
  const std::int64_t dense = config.count_or({"first_k_dense_replace"}, dense_when_absent);
  config.expect("moe_layer_freq", 1);
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) routed.push_back(layer >= dense);
  set_experts(stack, routed, experts);
  config.ignore({"ep_size"});
}

}  // namespace

void read_deepseek_v2(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family = deepseek("DeepseekV2", 2048);
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  read_latent_attention(config, spec, {});
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  ExpertsSpec experts = read_deepseek_experts(config, {{"n_routed_experts"}, 64, 0}, 1407, 2, 1);
  config.expect("scoring_func", "softmax");
  const bool limited = config.choice_or<bool>(
      {"topk_method"}, {{"greedy", false}, {"group_limited_greedy", true}}, false);
  read_groups(config, experts, limited, {});
  config.ignore({"norm_topk_prob"});  // the class never divides by the sum
  spread_experts(config, stack, experts, 0);
}

void read_deepseek_v3(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, deepseek("DeepseekV3", 4096));
  read_latent_attention(config, spec, {});
  ExpertsSpec experts = read_deepseek_experts(config, {{"n_routed_experts"}, 256, 8}, 2048, 1, 2.5);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.group_score = GroupScore::two_best;
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  config.expect("scoring_func", "sigmoid");
  config.expect("topk_method", "noaux_tc");
  read_groups(config, experts, true, {8, 4});
  spread_experts(config, *spec.decoder, experts, 3);
  config.ignore({"num_nextn_predict_layers"});  // a module beside the model, for training
}

void read_glm4_moe(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "Glm4Moe";
  family.num_key_value_heads = 8;
  family.max_position_embeddings = 131072;
  family.norm_eps = 1e-5;
  family.rope.partial_rotary_factor = 0.5;
  family.bias = BiasRule::key_for_query_key_value;
  read_decoder(config, spec, family);
  StackSpec& stack = *spec.decoder;
  if (config.flag_or({"use_qk_norm"}, false)) {
    stack.self_attention.query_key_norm =
        QueryKeyNormSpec{stack.norm, QueryKeyNormScope::each_head};
  }
  ExpertsSpec experts = read_deepseek_experts(config, {{"n_routed_experts"}, 128, 8}, 1408, 1, 1);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.group_score = GroupScore::two_best;
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  read_groups(config, experts, true, {});
  spread_experts(config, stack, experts, 1);
  config.ignore({"num_nextn_predict_layers"});  // a layer beside the model, for speculation
}

void read_glm_moe_dsa(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family = deepseek("GlmMoeDsa", 202752);
  family.norm_eps = 1e-5;
  read_decoder(config, spec, family);
  read_latent_attention(config, spec, {2048, 192, 256});
  LatentAttentionSpec& latent = *spec.decoder->self_attention.latent;
  ExpertsSpec experts = read_deepseek_experts(
      config, {{"n_routed_experts", "num_experts", "num_local_experts"}, 256, 8}, 2048, 1, 2.5);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.group_score = GroupScore::two_best;
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  config.expect("scoring_func", "sigmoid");
  config.expect("topk_method", "noaux_tc");
  read_groups(config, experts, true, {});
  spread_experts(config, *spec.decoder, experts, 3);
  // The indexer that chooses which keys a query sees (arXiv 2512.02556): counted, not in the graph.
  const std::int64_t heads = config.size_or({"index_n_heads"}, 32);
  const std::int64_t dim = config.size_or({"index_head_dim"}, 128);
  const std::int64_t layers = spec.decoder->num_layers;
  const auto count = [&](const std::string& name, std::vector<std::int64_t> shape,
                         WeightRole role) {
    spec.counted_only.push_back(
        {"decoder.layers.attention.indexer." + name, std::move(shape), role, layers});
  };
  count("query.weight", {product(config, "index_n_heads", heads, dim), latent.q_lora_rank},
        WeightRole::attention);
  count("key.weight", {dim, spec.hidden_size}, WeightRole::attention);
  count("key_norm.weight", {dim}, WeightRole::norm);
  count("key_norm.bias", {dim}, WeightRole::norm);
  count("weights.weight", {heads, spec.hidden_size}, WeightRole::attention);
  config.expect("index_topk_freq", 1);
  config.ignore({"index_topk", "num_nextn_predict_layers", "mlp_layer_types", "mlp_bias",
                 "indexer_rope_interleave"});
}

}  // namespace headroom::detail
