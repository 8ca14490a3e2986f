// Jamba: Mamba with normalised parameters, attention without positions in every
// attn_layer_period-th layer, experts in every expert_layer_period-th (AI21, arXiv 2403.19887).
#include <fmt/format.h>

#include <algorithm>

#include "../decoder.h"
#include "../family.h"
#include "../state_space.h"

namespace headroom::detail {
namespace {

/// The layers with index `offset` modulo `period`.
std::vector<bool> read_period(ConfigReader& config, std::string_view period_key,
                              std::int64_t period_when_absent, std::string_view offset_key,
                              std::int64_t offset_when_absent, std::int64_t num_layers) {
  const std::int64_t period = config.size_or({period_key}, period_when_absent);
  const std::int64_t offset = config.count_or({offset_key}, offset_when_absent);
  if (offset >= period) {
    config.fail(offset_key, fmt::format("{} is not below the period {}", offset, period),
                fmt::format("write a number below {}", period_key));
  }
  std::vector<bool> chosen;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    chosen.push_back(layer % period == offset);
  }
  return chosen;
}

void read_jamba(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 262144;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  spec.position.kind = PositionKind::none;
  require_silu_to_run(spec);
  StackSpec& stack = *spec.decoder;
  SelectiveKeys keys;
  keys.state_size = "mamba_d_state";
  keys.conv_kernel = "mamba_d_conv";
  keys.time_step_rank = "mamba_dt_rank";
  keys.projection_bias = "mamba_proj_bias";
  keys.convolution_bias = "mamba_conv_bias";
  const std::int64_t inner = config.size_or({"mamba_expand"}, 2) * spec.hidden_size;
  StateSpaceSpec mixer = read_selective_layer(config, keys, spec.hidden_size, inner);
  mixer.parameter_norm = stack.norm;

  const std::vector<bool> routed =
      read_period(config, "expert_layer_period", 2, "expert_layer_offset", 1, stack.num_layers);
  ExpertsSpec experts = read_experts(config, {{"num_experts", "num_local_experts"}, 16, 2});
  experts.intermediate_size = stack.ffn.intermediate_size;
  if (experts.num_experts > 1) set_experts(stack, routed, experts);
  set_state_space(
      stack, read_period(config, "attn_layer_period", 8, "attn_layer_offset", 4, stack.num_layers),
      mixer);
  config.expect_number("sliding_window", 0);
  config.ignore({"n_ctx", "calc_logits_for_entire_prompt", "mamba_inner_layernorms"});
}

constexpr NameRule kJamba[] = {
    {"decoder.layers.mlp_norm.%", "layers.{}.pre_ff_layernorm.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.feed_forward.gate_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.feed_forward.up_proj.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.feed_forward.down_proj.%"},
    {"decoder.layers.mlp.router.%", "layers.{}.feed_forward.router.%"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.feed_forward.experts.{e}.gate_proj.%"},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.feed_forward.experts.{e}.up_proj.%"},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.feed_forward.experts.{e}.down_proj.%"},
    {"decoder.layers.mixer.x.%", "layers.{}.mamba.in_proj.%", part(0)},
    {"decoder.layers.mixer.gate.%", "layers.{}.mamba.in_proj.%", part(1)},
    {"decoder.layers.mixer.parameters.%", "layers.{}.mamba.x_proj.%"},
    {"decoder.layers.mixer.time_step.%", "layers.{}.mamba.dt_proj.%"},
    {"decoder.layers.mixer.time_step_norm.%", "layers.{}.mamba.dt_layernorm.%"},
    {"decoder.layers.mixer.b_norm.%", "layers.{}.mamba.b_layernorm.%"},
    {"decoder.layers.mixer.c_norm.%", "layers.{}.mamba.c_layernorm.%"},
    {"decoder.layers.mixer.convolution.%", "layers.{}.mamba.conv1d.%"},
    {"decoder.layers.mixer.a_log", "layers.{}.mamba.A_log"},
    {"decoder.layers.mixer.d", "layers.{}.mamba.D"},
    {"decoder.layers.mixer.out.%", "layers.{}.mamba.out_proj.%"},
    {"decoder.final_norm.%", "final_layernorm.%"},
};

/// The config gives layers by period and offset: those of the first two that are chosen.
struct PeriodKeys {
  std::string_view metadata;
  std::string_view period;
  std::string_view offset;
};

void set_period(const std::vector<bool>& chosen, const PeriodKeys& keys,
                const GgufMetadataReader& metadata, ConfigDraft& config) {
  const auto first = std::ranges::find(chosen, true);
  if (first == chosen.end()) return;
  const auto second = std::find(first + 1, chosen.end(), true);
  const auto offset = first - chosen.begin();
  const auto period = second == chosen.end() ? std::ssize(chosen) : second - first;
  for (std::ptrdiff_t layer = 0; layer < std::ssize(chosen); ++layer) {
    if (chosen[static_cast<std::size_t>(layer)] == (layer % period == offset)) continue;
    metadata.fail(keys.metadata, "does not choose layers by a period");
  }
  config.set_count(keys.period, period);
  config.set_count(keys.offset, offset);
}

void finish_jamba(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::vector<bool> attends = finish_key_value_heads(metadata, config);
  set_period(attends, {"attention.head_count_kv", "attn_layer_period", "attn_layer_offset"},
             metadata, config);
  std::vector<bool> routed;
  for (std::size_t layer = 0; layer < attends.size(); ++layer) {
    routed.push_back(metadata.has_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", layer)));
  }
  set_period(routed, {"expert_count", "expert_layer_period", "expert_layer_offset"}, metadata,
             config);
  const std::int64_t inner = metadata.count("ssm.inner_size").value_or(0);
  const std::int64_t width = metadata.count("embedding_length").value_or(0);
  if (width == 0 || inner % width != 0) metadata.fail("ssm.inner_size", "is no multiple of width");
  config.set_count("mamba_expand", inner / width);
}

}  // namespace

std::vector<Family> jamba_families() {
  return {{.model_types = {"jamba"},
           .classes = llama_classes("Jamba"),
           .reader = read_jamba,
           .names = llama_names({kJamba}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "jamba",
                              .common = gguf_hybrid_keys(),
                              .own = {{"feed_forward_length", "intermediate_size"},
                                      {"expert_count", "num_experts"},
                                      {"expert_used_count", "num_experts_per_tok"},
                                      {"ssm.conv_kernel", "mamba_d_conv"},
                                      {"ssm.state_size", "mamba_d_state"},
                                      {"ssm.time_step_rank", "mamba_dt_rank"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_jamba}},
                            {gguf_selective_rules()})}};
}

}  // namespace headroom::detail
