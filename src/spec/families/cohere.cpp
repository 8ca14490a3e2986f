// Command R and its successors: LayerNorm without bias, attention and FFN in parallel, scaled
// logits (Cohere, c4ai-command-r-v01; arXiv 2504.00698).
#include "cohere.h"

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"

namespace headroom::detail {

void read_cohere_like(ConfigReader& config, ModelSpec& spec, const CohereDefaults& class_defaults) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 8192;
  defaults.norm = {NormKind::layer_norm, false};
  defaults.norm_eps = 1e-5;
  defaults.rope = class_defaults.rope;
  read_decoder(config, spec, defaults);
  spec.decoder->residual = ResidualKind::parallel_one_norm;
  const double scale = config.number_or({"logit_scale"}, class_defaults.logit_scale);
  if (spec.head.language_model) spec.head.language_model->logit_scale = scale;
}

namespace {

void read_cohere(ConfigReader& config, ModelSpec& spec) {
  read_cohere_like(config, spec, {});
  StackSpec& stack = *spec.decoder;
  if (config.flag_or({"use_qk_norm"}, false)) {
    stack.self_attention.query_key_norm =
        QueryKeyNormSpec{stack.norm, QueryKeyNormScope::each_head_own_weight};
  }
  config.ignore({"model_max_length"});
}

void read_cohere2(ConfigReader& config, ModelSpec& spec) {
  read_cohere_like(config, spec, {});
  StackSpec& stack = *spec.decoder;
  const std::int64_t pattern =
      config.size_or({"sliding_window_pattern", "_sliding_window_pattern", "layer_switch"}, 4);
  const auto rule = [pattern](std::int64_t layer) { return (layer + 1) % pattern != 0; };
  const std::vector<bool> windowed = read_windowed_layers(config, stack.num_layers, rule);
  // Layers with full attention have no positions; layers with RoPE have a window.
  stack.self_attention.window = read_window(config, 4096);
  vary_layers(stack, windowed, [](LayerVariant& variant) {
    variant.self_attention.window = {};
    variant.self_attention.rotary = false;
  });
  config.expect_flag("use_qk_norm", false);
  config.ignore({"order_of_interleaved_layers", "position_embedding_type", "rotary_pct",
                 "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
                 "use_parallel_embedding"});
}

/// Experts of the layers after the first dense ones; the shared ones' output is averaged with
/// theirs, or added.
void read_cohere2_experts(ConfigReader& config, StackSpec& stack, std::int64_t dense_layers) {
  constexpr double kAverage = 0.5;
  ExpertsSpec experts = read_experts(config, {{"num_experts", "num_local_experts"}, 8, 2});
  experts.intermediate_size = config.size_or_of_class({"intermediate_size"}, 22528);
  experts.shared_intermediate_size =
      product(config, "num_shared_experts", config.count_or({"num_shared_experts"}, 0),
              experts.intermediate_size);
  const bool normalise = config.flag_or({"norm_topk_prob"}, true);
  experts.scoring = config.choice_or<RouterScoring>(
      {"expert_selection_fn"},
      {{"softmax", RouterScoring::softmax_of_chosen}, {"sigmoid", RouterScoring::sigmoid}},
      RouterScoring::softmax_of_chosen);
  experts.normalise = normalise && experts.scoring == RouterScoring::sigmoid;
  const bool averages = config.choice_or<bool>({"shared_expert_combination_strategy"},
                                               {{"average", true}, {"sum", false}}, true);
  const bool halves = averages && experts.shared_intermediate_size > 0;
  if (halves) experts.scaling_factor = kAverage;
  spread_experts(config, stack, experts, dense_layers);
  for (LayerVariant& variant : stack.variants) {
    if (variant.ffn.experts && halves) variant.ffn.output_multiplier = kAverage;
  }
  if (stack.variants.empty() && halves) stack.ffn.output_multiplier = kAverage;
}

/// The first dense layers, or those that mlp_layer_types lists.
std::vector<bool> read_dense_layers(ConfigReader& config, std::int64_t num_layers,
                                    std::int64_t first) {
  const std::vector<std::string> types = config.texts("mlp_layer_types");
  std::vector<bool> dense;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const auto index = static_cast<std::size_t>(layer);
    dense.push_back(index < types.size() ? types[index] == "dense" : layer < first);
  }
  return dense;
}

/// Windows and RoPE of Command A+: dense layers have a pattern of windows of their own, and where
/// that has no windows, RoPE without one.
void read_cohere2_moe_windows(ConfigReader& config, StackSpec& stack, std::int64_t first_dense) {
  const std::int64_t pattern = config.size_or({"sliding_window_pattern"}, 4);
  const std::int64_t dense_pattern = config.size_or({"prefix_dense_sliding_window_pattern"}, 1);
  const auto rule = [=](std::int64_t layer) {
    const bool dense = layer < first_dense;
    return (dense ? layer + 1 : layer - first_dense + 1) % (dense ? dense_pattern : pattern) != 0;
  };
  const std::vector<bool> windowed = read_windowed_layers(config, stack.num_layers, rule);
  const std::vector<bool> dense = read_dense_layers(config, stack.num_layers, first_dense);
  std::vector<bool> rotary;
  for (std::size_t layer = 0; layer < windowed.size(); ++layer) {
    rotary.push_back(windowed[layer] || (dense[layer] && dense_pattern == 1));
  }
  stack.self_attention.window = read_window(config, 4096);
  vary_layers(stack, windowed, [](LayerVariant& variant) { variant.self_attention.window = {}; });
  vary_layers(stack, rotary, [](LayerVariant& variant) { variant.self_attention.rotary = false; });
}

void read_cohere2_moe(ConfigReader& config, ModelSpec& spec) {
  const bool rms = config.has("rms_norm_eps");
  if (rms) config.ignore({"layer_norm_eps"});
  read_cohere_like(config, spec, {});
  StackSpec& stack = *spec.decoder;
  if (rms) stack.norm.kind = NormKind::rms_norm;
  stack.final_norm = stack.norm;
  if (const auto dense = config.optional_size({"prefix_dense_intermediate_size"})) {
    stack.ffn.intermediate_size = *dense;
  }
  const std::int64_t first_dense = config.count_or({"first_k_dense_replace"}, 0);
  read_cohere2_moe_windows(config, stack, first_dense);
  read_cohere2_experts(config, stack, first_dense);
}

/// Leading dense layers have a width of their own, and RoPE (llama.cpp, src/models/cohere2moe.cpp).
void finish_cohere2_moe(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_windows(metadata, config);
  finish_prediction_layers(metadata, config);
  constexpr std::int64_t kSigmoid = 2;
  if (metadata.count("expert_gating_func").value_or(kSigmoid) != kSigmoid) {
    metadata.fail("expert_gating_func", "is not the sigmoid of this architecture");
  }
  if (const auto width = metadata.rows("blk.0.ffn_up.weight")) {
    config.set_count("prefix_dense_intermediate_size", *width);
  }
}

}  // namespace

std::vector<Family> cohere_families() {
  return {{.model_types = {"cohere"},
           .classes = decoder_classes("Cohere", {.tied = true, .float32_logits = true}),
           .reader = read_cohere,
           .names = llama_names({query_key_norm_rules()}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "command-r",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                      {"logit_scale", "logit_scale"}},
                              .flags = {{"blk.0.attn_q_norm.weight", "use_qk_norm"}},
                              .tie = GgufTie::always,
                              .head_dim = GgufHeadDim::never}})},
          {.model_types = {"cohere2"},
           .classes = decoder_classes("Cohere2", {.tied = true, .float32_logits = true}),
           .reader = read_cohere2,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "cohere2",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                      {"logit_scale", "logit_scale"},
                                      {"attention.sliding_window", "sliding_window"}},
                              .tie = GgufTie::always,
                              .finish = finish_windows}})},
          {.model_types = {"cohere2_moe"},
           .classes = decoder_classes("Cohere2Moe", {.tied = true, .float32_logits = true}),
           .reader = read_cohere2_moe,
           .names = llama_names({shared_expert_rules(), routed_expert_rules()}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "cohere2moe",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"},
                                      {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
                                      {"attention.sliding_window", "sliding_window"},
                                      {"logit_scale", "logit_scale"},
                                      {"expert_count", "num_experts"},
                                      {"expert_used_count", "num_experts_per_tok"},
                                      {"expert_shared_count", "num_shared_experts"},
                                      {"expert_feed_forward_length", "intermediate_size"},
                                      {"expert_weights_norm", "norm_topk_prob"},
                                      {"leading_dense_block_count", "first_k_dense_replace"}},
                              .constants = {{"expert_selection_fn", "\"sigmoid\""},
                                            {"prefix_dense_sliding_window_pattern", "1"}},
                              .head_dim = GgufHeadDim::always,
                              .finish = finish_cohere2_moe}})}};
}

}  // namespace headroom::detail
