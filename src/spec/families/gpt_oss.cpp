// gpt-oss: windows in every other layer, attention sinks, experts with biases and a clamped SwiGLU
// (arXiv 2508.10925).
#include "../decoder.h"

namespace headroom::detail {
namespace {

/// The class scales rotary angles where a config says nothing, by figures that fit the published
/// models only.
void require_scaling(const ConfigReader& config) {
  if (config.has("rope_scaling") || config.has("rope_parameters")) return;
  config.fail("rope_scaling", "is missing", "write the scaling of rotary positions");
}

}  // namespace

void read_gpt_oss(ConfigReader& config, ModelSpec& spec) {
  DecoderFamily family;
  family.prefix = "GptOss";
  family.num_key_value_heads = 8;
  family.head_dim = 64;
  family.max_position_embeddings = 131072;
  family.norm_eps = 1e-5;
  family.rope.theta = 150000;
  family.bias_when_absent = true;
  require_scaling(config);
  read_decoder(config, spec, family);
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
  config.expect("swiglu_limit", 7.0);
  config.expect("swiglu_alpha", 1.702);
  config.ignore({"experts_per_token", "initial_context_length"});
}

}  // namespace headroom::detail
