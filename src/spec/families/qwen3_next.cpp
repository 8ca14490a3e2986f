// Qwen3-Next: three of four layers use gated DeltaNet, every fourth gated attention; routed experts
// with a shared one (Qwen, Qwen3-Next-80B-A3B; arXiv 2412.06464).
#include <algorithm>

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

GatedDeltaSpec read_gated_delta(ConfigReader& config) {
  GatedDeltaSpec spec;
  spec.num_key_heads = config.size_or({"linear_num_key_heads"}, 16);
  spec.num_value_heads = config.size_or({"linear_num_value_heads"}, 32);
  spec.key_head_dim = config.size_or({"linear_key_head_dim"}, 128);
  spec.value_head_dim = config.size_or({"linear_value_head_dim"}, 128);
  spec.conv_kernel_dim = config.size_or({"linear_conv_kernel_dim"}, 4);
  if (spec.num_value_heads % spec.num_key_heads != 0) {
    config.fail("linear_num_value_heads", "is not a multiple of linear_num_key_heads",
                "use a multiple of linear_num_key_heads");
  }
  return spec;
}

/// The layers with full attention.
std::vector<bool> read_full_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::int64_t interval = config.size_or({"full_attention_interval"}, 4);
  const std::vector<std::string> types = config.texts("layer_types");
  std::vector<bool> full;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    full.push_back((layer + 1) % interval == 0);
  }
  if (types.empty()) return full;
  const bool known = std::ranges::all_of(types, [](const std::string& type) {
    return type == "full_attention" || type == "linear_attention";
  });
  if (!known || std::ssize(types) != num_layers) {
    config.fail("layer_types", "does not name full_attention or linear_attention for every layer",
                "name num_hidden_layers of them");
  }
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    full[layer] = types[layer] == "full_attention";
  }
  return full;
}

void read_qwen3_next(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 32768;
  defaults.num_key_value_heads = 2;
  defaults.head_dim = 256;
  defaults.norm = {NormKind::rms_norm, false, 1e-6, NormWeight::one_plus};
  defaults.rope.partial_rotary_factor = 0.25;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm = QueryKeyNormSpec{stack.norm};
  stack.self_attention.output_gate = true;
  ExpertsSpec experts = read_experts(config, {{"num_experts", "num_local_experts"}, 512, 10});
  experts.intermediate_size = config.size_or({"moe_intermediate_size"}, 512);
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  experts.shared_intermediate_size = config.size_or({"shared_expert_intermediate_size"}, 512);
  experts.shared_gate = true;
  stack.ffn.experts = experts;
  config.expect_number("decoder_sparse_step", 1);
  config.expect_empty("mlp_only_layers");
  const GatedDeltaSpec delta = read_gated_delta(config);
  vary_layers(stack, read_full_layers(config, stack.num_layers), [&](LayerVariant& variant) {
    variant.self_attention.kind = AttentionKind::gated_delta;
    variant.self_attention.gated_delta = delta;
    variant.self_attention.output_gate = false;
    variant.self_attention.query_key_norm.reset();
  });
}

}  // namespace

std::vector<Family> qwen3_next_families() {
  return {{.model_types = {"qwen3_next"},
           .classes = llama_classes("Qwen3Next"),
           .reader = read_qwen3_next,
           .names = None("headroom counts this model but cannot run it"),
           .gguf = None("not supported yet")}};
}

}  // namespace headroom::detail
