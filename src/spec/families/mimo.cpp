// MiMo: Qwen2 (arXiv 2505.07608). MiMo-V2-Flash: windowed layers with more key-value heads and
// sinks, narrower values, sigmoid routing (Xiaomi, MiMo-V2-Flash).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

constexpr std::string_view kExpertLayers = "moe_layer_freq";
constexpr std::string_view kWindowedLayers = "hybrid_layer_pattern";

/// A list of 1 (true) and 0 for each layer.
std::vector<bool> read_marked_layers(ConfigReader& config, std::string_view key,
                                     std::int64_t num_layers) {
  const std::vector<std::int64_t> marks = config.counts(key);
  if (std::ssize(marks) != num_layers) {
    config.fail(key, "does not have one entry for each layer", "write 1 or 0 for each layer");
  }
  return {marks.begin(), marks.end()};
}

/// The windowed layers' own sizes.
AttentionSpec read_windowed_attention(ConfigReader& config, AttentionSpec attention,
                                      const RopeSpec& full) {
  attention.num_attention_heads =
      config.size_or({"swa_num_attention_heads"}, attention.num_attention_heads);
  attention.num_key_value_heads =
      config.size_or({"swa_num_key_value_heads"}, attention.num_key_value_heads);
  attention.head_dim = config.size_or({"swa_head_dim"}, attention.head_dim);
  attention.value_head_dim = config.size_or({"swa_v_head_dim"}, attention.value_head_dim);
  attention.sinks = config.flag_or({"add_swa_attention_sink_bias"}, false);
  attention.window = {WindowKind::sliding, config.size({"sliding_window", "sliding_window_size"})};
  attention.rope = full;
  attention.rope->theta = config.number_or({"swa_rope_theta"}, full.theta);
  return attention;
}

ExpertsSpec read_mimo_experts(ConfigReader& config) {
  ExpertsSpec experts = read_experts(config, {{"n_routed_experts"}, 0, 0});
  experts.intermediate_size = config.size({"moe_intermediate_size"});
  experts.shared_intermediate_size =
      product(config, "n_shared_experts", config.count_or({"n_shared_experts"}, 0),
              experts.intermediate_size);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, 1);
  config.expect_text("scoring_func", "sigmoid");
  config.expect_text("topk_method", "noaux_tc");
  config.expect_number("n_group", 1);
  config.expect_number("topk_group", 1);
  return experts;
}

void read_mimo_v2_flash(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm_eps = config.number_or({"layernorm_epsilon"}, 1e-5);
  defaults.bias = BiasRule::key_for_query_key_value;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  AttentionSpec& full = stack.self_attention;
  full.value_head_dim = config.size_or({"v_head_dim"}, full.head_dim);
  full.sinks = config.flag_or({"add_full_attention_sink_bias"}, false);
  const AttentionSpec windowed = read_windowed_attention(config, full, spec.position.rope);
  std::vector<bool> is_full = read_marked_layers(config, kWindowedLayers, stack.num_layers);
  is_full.flip();
  vary_layers(stack, is_full, [&](LayerVariant& variant) { variant.self_attention = windowed; });
  set_experts(stack, read_marked_layers(config, kExpertLayers, stack.num_layers),
              read_mimo_experts(config));
  // A factor of the values; a name of the window in other engines; layers for drafting tokens.
  config.ignore({"attention_value_scale", "attention_chunk_size", "num_nextn_predict_layers"});
}

void read_mimo(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.bias = BiasRule::key_for_query_key_value;
  defaults.bias_when_absent = true;
  read_decoder(config, spec, defaults);
  read_qwen_windows(config, *spec.decoder);
  config.ignore({"num_nextn_predict_layers"});  // layers for drafting tokens, left out
}

}  // namespace

std::vector<Family> mimo_families() {
  return {{.model_types = {"mimo"},
           .classes = llama_classes("MiMo"),
           .reader = read_mimo,
           .names = llama_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"mimo_v2_flash"},
           .classes = llama_classes("MiMoV2Flash"),
           .reader = read_mimo_v2_flash,
           .names = None("the factor of its values is not run"),
           .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
