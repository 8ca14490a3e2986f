// DeepSeek V2 and V3, Kimi K2 and GLM-5: multi-head latent attention, shared and routed experts
// (arXiv 2405.04434, 2412.19437, 2507.20534). GLM-4.5: their experts with grouped-query attention
// (arXiv 2508.06471). DeepSeekMoE and dots.llm1: such experts with other attention.
#include <algorithm>
#include <cmath>

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

DecoderDefaults deepseek(std::int64_t positions) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = positions;
  defaults.rope.layout = RopeLayout::interleaved;
  defaults.bias = BiasRule::none;
  return defaults;
}

/// Default sizes of latent attention.
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

ExpertsSpec read_deepseek_experts(ConfigReader& config, const ExpertKeys& keys,
                                  std::int64_t size_when_absent, std::int64_t shared_when_absent,
                                  double scaling_when_absent) {
  ExpertsSpec experts = read_experts(config, keys);
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, size_when_absent);
  const std::int64_t absent = config.is_null("n_shared_experts") ? 0 : shared_when_absent;
  experts.shared_intermediate_size =
      product(config, "n_shared_experts",
              config.count_or({"n_shared_experts", "num_shared_experts"}, absent),
              experts.intermediate_size);
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, scaling_when_absent);
  return experts;
}

/// Expert groups, and the number of groups that a token may use.
struct Groups {
  std::int64_t num = 1;
  std::int64_t chosen = 1;
};

void read_groups(ConfigReader& config, ExpertsSpec& experts, bool limited, Groups absent) {
  const std::int64_t groups = config.size_or({"n_group"}, absent.num);
  const std::int64_t chosen = config.size_or({"topk_group"}, absent.chosen);
  if (!limited) return;
  if (experts.num_experts % groups != 0) {
    config.fail("n_group", "does not divide the number of experts",
                "use a divisor of the number of experts");
  }
  experts.num_groups = groups;
  experts.chosen_groups = chosen;
}

/// The first layers keep a dense FFN.
void spread_experts(ConfigReader& config, StackSpec& stack, const ExpertsSpec& experts,
                    std::int64_t dense_when_absent) {
  const std::int64_t dense = config.count_or({"first_k_dense_replace"}, dense_when_absent);
  config.expect_number("moe_layer_freq", 1);
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) routed.push_back(layer >= dense);
  set_experts(stack, routed, experts);
  config.ignore({"ep_size"});
}

void read_deepseek_v2(ConfigReader& config, ModelSpec& spec) {
  const DecoderDefaults defaults = deepseek(2048);
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  read_latent_attention(config, spec, {});
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  ExpertsSpec experts = read_deepseek_experts(config, {{"n_routed_experts"}, 64, 0}, 1407, 2, 1);
  config.expect_text("scoring_func", "softmax");
  const bool limited = config.choice_or<bool>(
      {"topk_method"}, {{"greedy", false}, {"group_limited_greedy", true}}, false);
  read_groups(config, experts, limited, {});
  config.ignore({"norm_topk_prob"});  // the class never normalises
  spread_experts(config, stack, experts, 0);
}

void read_deepseek_v3(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, deepseek(4096));
  read_latent_attention(config, spec, {});
  ExpertsSpec experts = read_deepseek_experts(
      config, {{"n_routed_experts", "num_routed_experts"}, 256, 8}, 2048, 1, 2.5);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.group_score = GroupScore::two_best;
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  config.expect_text("scoring_func", "sigmoid");
  config.expect_text("topk_method", "noaux_tc");
  read_groups(config, experts, true, {8, 4});
  spread_experts(config, *spec.decoder, experts, 3);
  config.ignore({"num_nextn_predict_layers"});  // an extra module for training
}

DecoderDefaults glm4_moe_defaults() {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.partial_rotary_factor = 0.5;
  defaults.bias = BiasRule::key_for_query_key_value;
  return defaults;
}

void read_glm4_moe_with(ConfigReader& config, ModelSpec& spec, const DecoderDefaults& defaults) {
  read_decoder(config, spec, defaults);
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
  config.ignore({"num_nextn_predict_layers"});  // an extra layer for speculative decoding
}

/// DeepSeekMoE (arXiv 2401.06066): shared and routed experts with Llama's attention.
void read_deepseek_v1(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, {});
  ExpertsSpec experts = read_deepseek_experts(config, {{"n_routed_experts"}, 0, 0}, 1407, 0, 1);
  experts.normalise = config.flag_or({"norm_topk_prob"}, false);
  config.expect_text("scoring_func", "softmax");
  spread_experts(config, *spec.decoder, experts, 0);
}

/// Sigmoid routing with a correction bias, as in version 3.
ExpertsSpec read_balanced_experts(ConfigReader& config, const ExpertKeys& keys,
                                  std::int64_t size_when_absent, double scaling_when_absent) {
  ExpertsSpec experts =
      read_deepseek_experts(config, keys, size_when_absent, 1, scaling_when_absent);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.group_score = GroupScore::two_best;
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  config.expect_text("scoring_func", "sigmoid");
  config.expect_text("topk_method", "noaux_tc");
  read_groups(config, experts, true, {});
  return experts;
}

/// dots.llm1 (arXiv 2506.05767): Qwen3's attention with the experts of DeepSeek V3.
void read_dots1(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, {});
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  const WindowSpec window = read_window(config, 4096);
  const std::int64_t full_layers = config.count_or({"max_window_layers"}, 62);
  const std::vector<bool> windowed = read_windowed_layers(
      config, stack.num_layers, [&](std::int64_t layer) { return layer >= full_layers; });
  set_windows(stack, windowed, window);
  const ExpertsSpec experts = read_balanced_experts(config, {{"n_routed_experts"}, 0, 0}, 1408, 1);
  spread_experts(config, stack, experts, 0);
}

/// GLM-4.7-Flash: the attention and experts of DeepSeek V3 (Z.ai).
void read_glm4_moe_lite(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek(202752);
  defaults.norm_eps = 1e-5;
  read_decoder(config, spec, defaults);
  read_latent_attention(config, spec, {768, 192, 256});
  const ExpertsSpec experts =
      read_balanced_experts(config, {{"n_routed_experts", "num_local_experts"}, 64, 4}, 1536, 1.8);
  const std::vector<std::string> types = config.texts("mlp_layer_types");
  const auto dense = std::ranges::find_if_not(types, [](const auto& t) { return t == "dense"; });
  if (std::find(dense, types.end(), "dense") != types.end()) {
    config.fail("mlp_layer_types", "has a dense layer after one with experts",
                "write \"dense\" for the first layers only");
  }
  spread_experts(config, *spec.decoder, experts, types.empty() ? 1 : dense - types.begin());
  config.ignore({"num_nextn_predict_layers", "partial_rotary_factor"});
}

void read_glm4_moe(ConfigReader& config, ModelSpec& spec) {
  read_glm4_moe_with(config, spec, glm4_moe_defaults());
}

void read_glm4v_moe_text(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = glm4_moe_defaults();
  defaults.bias_when_absent = true;
  read_glm4_moe_with(config, spec, defaults);
}

/// Sigmoid scores with a correction bias, as DeepSeek-V3.
void read_sigmoid_experts(ConfigReader& config, ModelSpec& spec, Groups absent) {
  ExpertsSpec experts = read_deepseek_experts(
      config, {{"n_routed_experts", "num_experts", "num_local_experts"}, 256, 8}, 2048, 1, 2.5);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.group_score = GroupScore::two_best;
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  config.expect_text("scoring_func", "sigmoid");
  config.expect_text("topk_method", "noaux_tc");
  read_groups(config, experts, true, absent);
  spread_experts(config, *spec.decoder, experts, 3);
}

/// The layers with an indexer of their own; the others use the choice of the last one before them.
std::vector<bool> read_own_indexers(ConfigReader& config, std::int64_t num_layers) {
  const std::vector<std::string> types = config.texts("indexer_types");
  const std::int64_t every = std::max<std::int64_t>(config.count_or({"index_topk_freq"}, 1), 1);
  const std::int64_t offset = config.count_or({"index_skip_topk_offset"}, 2);
  const std::optional<std::string> pattern = config.optional_text({"index_topk_pattern"});
  std::vector<bool> own;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const auto entry = static_cast<std::size_t>(layer);
    if (!types.empty()) {
      own.push_back(entry < types.size() && types[entry] == "full");
    } else if (pattern) {
      own.push_back(entry < pattern->size() && (*pattern)[entry] == 'F');
    } else {
      own.push_back(std::max<std::int64_t>(layer - offset + 1, 0) % every == 0);
    }
  }
  if (!own.front()) {
    config.fail(types.empty() ? "index_topk_pattern" : "indexer_types",
                "gives the first layer no indexer, and no layer before it has one",
                "begin with a layer that has an indexer");
  }
  return own;
}

/// Values of an indexer that a config may omit.
struct IndexerDefaults {
  std::int64_t num_heads = 64;
  RopeLayout rope_layout = RopeLayout::half_split;
};

/// The lightning indexer, which chooses the keys of each query (arXiv 2512.02556).
void read_indexer(ConfigReader& config, ModelSpec& spec, const IndexerDefaults& absent) {
  StackSpec& stack = *spec.decoder;
  IndexerSpec indexer;
  indexer.num_heads = config.size_or({"index_n_heads"}, absent.num_heads);
  indexer.head_dim = config.size_or({"index_head_dim"}, 128);
  indexer.top_k = config.size_or({"index_topk"}, 2048);
  const bool interleaves = absent.rope_layout == RopeLayout::interleaved;
  indexer.rope_layout = config.flag_or({"indexer_rope_interleave"}, interleaves)
                            ? RopeLayout::interleaved
                            : RopeLayout::half_split;
  if (stack.self_attention.latent->q_lora_rank == 0) {
    config.fail("q_lora_rank", "is null, and the indexer reads the compressed queries",
                "give q_lora_rank a size");
  }
  stack.self_attention.indexer = indexer;
  for (LayerVariant& variant : stack.variants) variant.self_attention.indexer = indexer;
  vary_layers(stack, read_own_indexers(config, stack.num_layers), [](LayerVariant& variant) {
    variant.self_attention.indexer->place = IndexerPlace::earlier_layer;
  });
  const std::vector<std::string> types = config.texts("layer_types");
  if (std::ranges::any_of(
          types, [](const std::string& type) { return type != "deepseek_sparse_attention"; })) {
    config.fail("layer_types", "names a layer without sparse attention",
                "use deepseek_sparse_attention for every layer");
  }
  config.ignore({"num_nextn_predict_layers", "mlp_layer_types", "mlp_bias",
                 "index_share_for_mtp_iteration", "moe_router_dtype"});
}

void read_glm_moe_dsa(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek(202752);
  defaults.norm_eps = 1e-5;
  // The class reads qk_rope_head_dim and qk_nope_head_dim instead.
  config.ignore({"head_dim"});
  read_decoder(config, spec, defaults);
  read_latent_attention(config, spec, {2048, 192, 256});
  read_sigmoid_experts(config, spec, {});
  read_indexer(config, spec, {32, RopeLayout::interleaved});
}

void read_deepseek_v32(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, deepseek(163840));
  read_latent_attention(config, spec, {});
  read_sigmoid_experts(config, spec, {8, 4});
  read_indexer(config, spec, {});
}

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

NameTable deepseek_names() {
  return llama_names({kIndexer, kLatent, kSharedExperts, routed_expert_rules()});
}

NameTable normed_moe_names() {  // norms on queries and keys, no latent vectors
  return llama_names({query_key_norm_rules(), kSharedExperts, routed_expert_rules()});
}

/// GGUF keys of dense layers before routed and shared experts, and of one architecture.
std::vector<GgufKey> moe_keys_and(const std::vector<GgufKey>& own) {
  std::vector<GgufKey> keys = {{"feed_forward_length", "intermediate_size"},
                               {"leading_dense_block_count", "first_k_dense_replace"},
                               {"expert_feed_forward_length", "moe_intermediate_size"},
                               {"expert_count", "n_routed_experts"},
                               {"expert_shared_count", "n_shared_experts"}};
  keys.insert(keys.end(), own.begin(), own.end());
  return keys;
}

/// LLAMA_EXPERT_GATING_FUNC_TYPE_SIGMOID in llama.cpp's src/llama-hparams.h.
constexpr std::int64_t kSigmoidGating = 2;

/// llama.cpp runs latent attention absorbed, so its files store sizes as for one KV head, and the
/// real sizes under separate keys. Version 3 scores experts by sigmoids.
void finish_deepseek(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const auto key = metadata.count("attention.key_length_mla");
  const auto value = metadata.count("attention.value_length_mla");
  const auto key_length = key ? key : metadata.count("attention.key_length");
  const auto value_length = value ? value : metadata.count("attention.value_length");
  const auto rotary = metadata.count("rope.dimension_count");
  if (!key_length || !rotary || *key_length < *rotary) {
    metadata.fail("attention.key_length", "does not give the size of a key head");
  }
  if (!value_length) metadata.fail("attention.value_length", "is missing");
  // An absent q_lora_rank means the class's default; null means no query latent.
  if (!config.has("q_lora_rank")) config.set_null("q_lora_rank");
  config.set_count("qk_nope_head_dim", *key_length - *rotary);
  config.set_count("v_head_dim", *value_length);
  config.set_count("num_key_value_heads", metadata.count("attention.head_count").value_or(0));
  if (metadata.count("expert_gating_func").value_or(0) == kSigmoidGating) {
    config.set_text("model_type", "deepseek_v3");
    config.set_texts("architectures", {"DeepseekV3ForCausalLM"});
  }
}

}  // namespace

std::vector<Family> deepseek_families() {
  return {
      {.model_types = {"deepseek_v2"},
       .classes = llama_classes("DeepseekV2"),
       .reader = read_deepseek_v2,
       .names = deepseek_names(),
       .gguf = GgufForm(GgufConversion::unknown,
                        {{.name = "deepseek2",
                          .common = gguf_expert_keys(),
                          .own = moe_keys_and({{"attention.q_lora_rank", "q_lora_rank"},
                                               {"attention.kv_lora_rank", "kv_lora_rank"},
                                               {"rope.dimension_count", "qk_rope_head_dim"},
                                               {"expert_weights_scale", "routed_scaling_factor"},
                                               {"expert_weights_norm", "norm_topk_prob"},
                                               {"expert_group_count", "n_group"},
                                               {"expert_group_used_count", "topk_group"}}),
                          .head_dim = GgufHeadDim::never,
                          .finish = finish_deepseek}})},
      {.model_types = {"deepseek_v3", "kimi_k2"},
       .classes = llama_classes("DeepseekV3"),
       .reader = read_deepseek_v3,
       .names = deepseek_names(),
       .gguf = GgufForm(GgufConversion::unknown, {})},
      {.model_types = {"glm4_moe"},
       .classes = llama_classes("Glm4Moe"),
       .reader = read_glm4_moe,
       .names = normed_moe_names(),
       .gguf = None("not supported yet")},
      {.model_types = {"deepseek"},
       .classes = llama_classes("Deepseek"),
       .reader = read_deepseek_v1,
       .names = llama_names({kSharedExperts, routed_expert_rules()}),
       .gguf = GgufForm(GgufConversion::interleaved_heads, {{.name = "deepseek",
                                                             .common = gguf_expert_keys(),
                                                             .own = moe_keys_and({}),
                                                             .head_dim = GgufHeadDim::never}})},
      {.model_types = {"dots1"},
       .classes = llama_classes("Dots1"),
       .reader = read_dots1,
       .names = normed_moe_names(),
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "dots1",
                          .common = gguf_expert_keys(),
                          .own = moe_keys_and({{"expert_weights_scale", "routed_scaling_factor"},
                                               {"expert_weights_norm", "norm_topk_prob"}}),
                          .head_dim = GgufHeadDim::always}})},
      {.model_types = {"glm4_moe_lite"},
       .classes = llama_classes("Glm4MoeLite"),
       .reader = read_glm4_moe_lite,
       .names = deepseek_names(),
       .gguf = None("not supported yet")},
      {.model_types = {"glm4v_moe_text"},  // inside GLM-4.5V
       .classes = llama_classes("Glm4vMoeText"),
       .reader = read_glm4v_moe_text,
       .names = normed_moe_names(),
       .gguf = None("not supported yet")},
      {.model_types = {"deepseek_v32"},
       .classes = llama_classes("DeepseekV32"),
       .reader = read_deepseek_v32,
       .names = deepseek_names(),
       .gguf = None("not supported yet")},
      {.model_types = {"glm_moe_dsa"},
       .classes = llama_classes("GlmMoeDsa"),
       .reader = read_glm_moe_dsa,
       .names = deepseek_names(),
       .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
