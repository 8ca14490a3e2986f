// gpt-oss: windows in every other layer, attention sinks, experts with biases and a clamped SwiGLU
// (arXiv 2508.10925).
#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// The class's rope_parameters, which are those of the published models.
constexpr std::string_view kScaling = R"({"rope_scaling": {"rope_type": "yarn", "factor": 32.0,
    "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
    "original_max_position_embeddings": 4096}})";

void add_absent_scaling(ConfigReader& config, ModelSpec& spec) {
  if (config.has("rope_scaling") || config.has("rope_parameters")) return;
  std::vector<std::string> filled;
  config = config.with_defaults(kScaling, filled);
  spec.assumptions.emplace_back(
      "the config omits rope_scaling: RoPE scales as in the published "
      "models, by YaRN and a factor of 32");
}

void read_gpt_oss(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.head_dim = 64;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 150000;
  defaults.bias_when_absent = true;
  add_absent_scaling(config, spec);
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.sinks = true;
  ExpertsSpec experts = read_experts(config, {{"num_local_experts", "num_experts"}, 128, 4});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.scoring = RouterScoring::softmax_of_chosen;
  experts.router_bias = true;
  experts.bias = true;
  stack.ffn.experts = experts;
  stack.ffn.activation = ActivationKind::clamped_swiglu;
  const WindowSpec window = read_window(config, 128);
  const auto even = [](std::int64_t layer) { return layer % 2 == 0; };
  set_windows(stack, read_windowed_layers(config, stack.num_layers, even), window);
  config.expect_number("swiglu_limit", 7.0);
  config.expect_number("swiglu_alpha", 1.702);
  config.ignore({"experts_per_token", "initial_context_length"});
}

constexpr NameRule kGptOss[] = {
    {"decoder.layers.attention.sinks", "layers.{}.self_attn.sinks"},
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.router.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(transposed(part(0, Stacking::per_index)))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.mlp.experts.gate_up_proj",
     stacked_experts(transposed(part(1, Stacking::per_index)))},
    {"decoder.layers.mlp.experts.gate.bias", "layers.{}.mlp.experts.gate_up_proj_bias",
     stacked_experts(part(0, Stacking::per_index))},
    {"decoder.layers.mlp.experts.up.bias", "layers.{}.mlp.experts.gate_up_proj_bias",
     stacked_experts(part(1, Stacking::per_index))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.mlp.experts.down_proj",
     stacked_experts(transposed())},
    {"decoder.layers.mlp.experts.down.bias", "layers.{}.mlp.experts.down_proj_bias",
     stacked_experts()},
};

}  // namespace

std::vector<Family> gpt_oss_families() {
  return {{.model_types = {"gpt_oss"},
           .classes = llama_classes("GptOss"),
           .reader = read_gpt_oss,
           .names = llama_names({kGptOss}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "gpt-oss",
                              .common = gguf_expert_keys(),
                              .own = {{"expert_feed_forward_length", "intermediate_size"},
                                      {"expert_count", "num_local_experts"},
                                      {"attention.sliding_window", "sliding_window"}},
                              .head_dim = GgufHeadDim::always,
                              .finish = finish_rope_scaling}})}};
}

}  // namespace headroom::detail
