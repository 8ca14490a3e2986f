// DeepSeek V2 and V3, Kimi K2 and GLM-4.7-Flash: multi-head latent attention, shared and routed
// experts (arXiv 2405.04434, 2412.19437, 2507.20534). GLM-4.5: their experts with grouped-query
// attention (arXiv 2508.06471). DeepSeekMoE and dots.llm1: such experts with other attention.
#include <algorithm>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "../gguf/latent_form.h"

namespace headroom::detail {
namespace {

void read_deepseek_v2(ConfigReader& config, ModelSpec& spec) {
  const DecoderDefaults defaults = deepseek_defaults(2048);
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  read_latent_attention(config, spec, {});
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  ExpertsSpec experts =
      read_shared_and_routed_experts(config, {{"n_routed_experts"}, 64, 0}, {1407, 2, 1});
  config.expect_text("scoring_func", "softmax");
  const GroupLimit limit = config.choice_or<GroupLimit>(
      {"topk_method"}, {{"greedy", GroupLimit::none}, {"group_limited_greedy", GroupLimit::groups}},
      GroupLimit::none);
  read_groups(config, experts, limit, {});
  config.ignore({"norm_topk_prob"});  // the class never normalises
  spread_experts(config, stack, experts, 0);
}

void read_deepseek_v3(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, deepseek_defaults(4096));
  read_latent_attention(config, spec, {});
  const ExpertsSpec experts = read_balanced_experts(
      config, {{"n_routed_experts", "num_routed_experts"}, 256, 8}, {2048, 2.5, {8, 4}});
  spread_experts(config, *spec.decoder, experts, 3);
  config.ignore({"num_nextn_predict_layers"});  // an extra module for training
}

DecoderDefaults glm4_moe_defaults() {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_size = HeadSizeRule::rounded_down;
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
  ExpertsSpec experts =
      read_shared_and_routed_experts(config, {{"n_routed_experts"}, 128, 8}, {1408, 1, 1});
  balance_experts(config, experts, {});
  spread_experts(config, stack, experts, 1);
  config.ignore({"num_nextn_predict_layers"});  // an extra layer for speculative decoding
}

/// DeepSeekMoE (arXiv 2401.06066): shared and routed experts with Llama's attention.
void read_deepseek_v1(ConfigReader& config, ModelSpec& spec) {
  read_decoder(config, spec, {});
  ExpertsSpec experts =
      read_shared_and_routed_experts(config, {{"n_routed_experts"}, 0, 0}, {1407, 0, 1});
  experts.normalise = config.flag_or({"norm_topk_prob"}, false);
  config.expect_text("scoring_func", "softmax");
  spread_experts(config, *spec.decoder, experts, 0);
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
  // Its files name the method of balancing there, whose scores are sigmoids.
  const ExpertsSpec experts =
      read_balanced_experts(config, {{"n_routed_experts"}, 0, 0}, {1408, 1, {}, "noaux_tc"});
  spread_experts(config, stack, experts, 0);
}

/// A.X K1: DeepSeek V3 with a norm of the experts' output (SK Telecom, A.X-K1).
void read_axk1(ConfigReader& config, ModelSpec& spec) {
  config.ignore({"head_dim"});
  read_decoder(config, spec, deepseek_defaults(32768));
  read_latent_attention(config, spec, {});
  ExpertsSpec experts = read_balanced_experts(
      config, {{"n_routed_experts", "num_local_experts"}, 192, 8}, {2048, 2.5, {8, 4}});
  experts.output_norm = true;
  config.expect_number("moe_layer_freq", 1);
  spread_experts(config, *spec.decoder, experts, 1);
  config.ignore({"num_nextn_predict_layers", "num_mtp_layers"});
}

/// GLM-4.7-Flash: the attention and experts of DeepSeek V3 (Z.ai).
void read_glm4_moe_lite(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults = deepseek_defaults(202752);
  defaults.head_dim = 256;  // of queries and keys; 20 heads do not divide the hidden size of 2048
  defaults.norm_eps = 1e-5;
  read_decoder(config, spec, defaults);
  read_latent_attention(config, spec, {768, 192, 256});
  const ExpertsSpec experts = read_balanced_experts(
      config, {{"n_routed_experts", "num_local_experts"}, 64, 4}, {1536, 1.8});
  spread_experts(config, *spec.decoder, experts, 1);
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

// As published, or as the class names it.
constexpr NameRule kExpertsOutputNorm[] = {
    {"decoder.layers.mlp_output_norm.%", "layers.{}.post_mlp_layernorm.%"},
    {"decoder.layers.mlp_output_norm.%", "layers.{}.mlp.post_mlp_layernorm.%"},
};

NameTable axk1_names() {
  NameTable names = deepseek_names();
  names.rules.insert(names.rules.begin(), kExpertsOutputNorm);
  // Files store one for each dense layer too, which no layer reads.
  names.extras.push_back({"post_mlp_layernorm.weight", ExtraKind::unused_norm});
  return names;
}

NameTable normed_moe_names() {  // norms on queries and keys, no latent vectors
  return llama_names({query_key_norm_rules(), shared_expert_rules(), routed_expert_rules()});
}

}  // namespace

std::vector<Family> deepseek_families() {
  return {
      {.model_types = {"deepseek_v2"},
       .classes = llama_classes("DeepseekV2"),
       .reader = read_deepseek_v2,
       .names = deepseek_names(),
       .gguf = GgufForm(GgufConversion::unknown, {deepseek2_architecture()})},
      {.model_types = {"deepseek_v3", "kimi_k2"},
       .classes = llama_classes("DeepseekV3"),
       .reader = read_deepseek_v3,
       .names = deepseek_names(),
       .gguf = GgufForm(GgufConversion::unknown, {})},
      {.model_types = {"glm4_moe"},
       .classes = llama_classes("Glm4Moe"),
       .reader = read_glm4_moe,
       .names = normed_moe_names(),
       .gguf = GgufForm(GgufConversion::none, {glm4_moe_architecture()})},
      {.model_types = {"deepseek"},
       .classes = llama_classes("Deepseek"),
       .reader = read_deepseek_v1,
       .names = llama_names({shared_expert_rules(), routed_expert_rules()}),
       .gguf = GgufForm(GgufConversion::interleaved_heads, {{.name = "deepseek",
                                                             .common = gguf_expert_keys(),
                                                             .own = gguf_moe_keys({}),
                                                             .head_dim = GgufHeadDim::never}})},
      {.model_types = {"dots1"},
       .classes = llama_classes("Dots1"),
       .reader = read_dots1,
       .names = normed_moe_names(),
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "dots1",
                          .common = gguf_expert_keys(),
                          .own = gguf_moe_keys({{"expert_weights_scale", "routed_scaling_factor"},
                                                {"expert_weights_norm", "norm_topk_prob"}}),
                          .head_dim = GgufHeadDim::always}})},
      {.model_types = {"glm4_moe_lite"},
       .classes = llama_classes("Glm4MoeLite"),
       .reader = read_glm4_moe_lite,
       .names = deepseek_names(),
       .gguf = GgufForm(GgufConversion::unknown, {})},
      {.model_types = {"axk1", "AXK1"},
       .classes = llama_classes("AXK1"),
       .reader = read_axk1,
       .names = axk1_names(),
       .gguf = None("not supported yet")},
      {.model_types = {"glm4v_moe_text", "Glm4vMoe_text"},  // inside GLM-4.5V
       .classes = llama_classes("Glm4vMoeText"),
       .reader = read_glm4v_moe_text,
       .names = normed_moe_names(),
       .gguf = None("llama.cpp stores it under the name of GLM-4.5")}};
}

}  // namespace headroom::detail
