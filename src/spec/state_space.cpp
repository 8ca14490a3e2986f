#include "state_space.h"

#include <fmt/format.h>

#include "common_keys.h"
#include "decoder.h"

namespace headroom::detail {
namespace {

/// The size at `key`; `computed` if it is absent or "auto".
std::int64_t size_or_auto(ConfigReader& config, std::string_view key, std::int64_t computed) {
  if (config.is_text(key, "auto")) {
    config.ignore({key});
    return computed;
  }
  return config.size_or({key}, computed);
}

/// The limits that the reference code clamps time steps to; null: none.
void read_time_step_limit(ConfigReader& config, StateSpaceSpec& spec) {
  const std::vector<double> limit = config.numbers("time_step_limit");
  if (limit.empty()) return;
  if (limit.size() != 2 || limit[0] > limit[1]) {
    config.fail("time_step_limit", "is not a least and a greatest time step",
                "write two numbers, the smaller one first");
  }
  spec.least_time_step = limit[0];
  spec.greatest_time_step = limit[1];
}

constexpr NameRule kHybridMamba[] = {
    {"decoder.layers.mixer.gate.%", "layers.{}.mamba.in_proj.%", part(0)},
    {"decoder.layers.mixer.x.%", "layers.{}.mamba.in_proj.%", part(1)},
    {"decoder.layers.mixer.time_step.%", "layers.{}.mamba.in_proj.%", part(2)},
    {"decoder.layers.mixer.convolution.%", "layers.{}.mamba.conv1d.%"},
    {"decoder.layers.mixer.dt_bias", "layers.{}.mamba.dt_bias"},
    {"decoder.layers.mixer.a_log", "layers.{}.mamba.A_log"},
    {"decoder.layers.mixer.d", "layers.{}.mamba.D"},
    {"decoder.layers.mixer.norm.%", "layers.{}.mamba.norm.%"},
    {"decoder.layers.mixer.out.%", "layers.{}.mamba.out_proj.%"},
};

constexpr NameRule kMixer[] = {
    {"embeddings.word_embeddings.%", "embeddings.%"},
    {"embeddings.word_embeddings.%", "embedding.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.norm.%"},
    {"decoder.layers.mixer.gate.%", "layers.{}.mixer.in_proj.%", part(0)},
    {"decoder.layers.mixer.x.%", "layers.{}.mixer.in_proj.%", part(1)},
    {"decoder.layers.mixer.time_step.%", "layers.{}.mixer.in_proj.%", part(2)},
    {"decoder.layers.mixer.convolution.%", "layers.{}.mixer.conv1d.%"},
    {"decoder.layers.mixer.dt_bias", "layers.{}.mixer.dt_bias"},
    {"decoder.layers.mixer.a_log", "layers.{}.mixer.A_log"},
    {"decoder.layers.mixer.d", "layers.{}.mixer.D"},
    {"decoder.layers.mixer.norm.%", "layers.{}.mixer.norm.%"},
    {"decoder.layers.mixer.out.%", "layers.{}.mixer.out_proj.%"},
    {"decoder.final_norm.%", "norm_f.%"},
};

constexpr NameRule kGgufSelective[] = {
    {"layers.mixer.x.%", "blk.{}.ssm_in.%", part(0)},
    {"layers.mixer.gate.%", "blk.{}.ssm_in.%", part(1)},
    {"layers.mixer.parameters.%", "blk.{}.ssm_x.%"},
    {"layers.mixer.time_step.%", "blk.{}.ssm_dt.%"},
    {"layers.mixer.time_step_norm.%", "blk.{}.ssm_dt_norm.%"},
    {"layers.mixer.b_norm.%", "blk.{}.ssm_b_norm.%"},
    {"layers.mixer.c_norm.%", "blk.{}.ssm_c_norm.%"},
};

constexpr NameRule kGgufDual[] = {
    {"layers.mixer.gate.%", "blk.{}.ssm_in.%", part(0)},
    {"layers.mixer.x.%", "blk.{}.ssm_in.%", part(1)},
    {"layers.mixer.time_step.%", "blk.{}.ssm_in.%", part(2)},
};

}  // namespace

StateSpaceSpec read_dual_layer(ConfigReader& config, const DualKeys& keys,
                               std::int64_t inner_size) {
  StateSpaceSpec spec;
  spec.num_heads = config.size_or({keys.num_heads}, keys.num_heads_when_absent);
  spec.head_dim = size_or_auto(config, keys.head_dim, inner_size / spec.num_heads);
  spec.num_groups = config.size_or({keys.num_groups}, keys.num_groups_when_absent);
  spec.state_size = config.size_or({keys.state_size}, keys.state_size_when_absent);
  spec.conv_kernel_dim = config.size_or({keys.conv_kernel}, 4);
  spec.chunk_size = config.size_or({keys.chunk_size}, keys.chunk_size_when_absent);
  spec.projection_bias = config.flag_or({keys.projection_bias}, false);
  spec.convolution_bias = config.flag_or({keys.convolution_bias}, true);
  read_time_step_limit(config, spec);
  if (spec.inner_size() != inner_size) {
    config.fail(keys.num_heads,
                fmt::format("{} heads of {} are not the {} channels of the layer", spec.num_heads,
                            spec.head_dim, inner_size),
                "write heads and a head dimension whose product is the inner size");
  }
  if (spec.num_heads % spec.num_groups != 0) {
    config.fail(keys.num_groups, "does not divide the number of heads",
                "write a divisor of the number of heads");
  }
  ignore_state_space_keys(config);
  return spec;
}

StateSpaceSpec read_selective_layer(ConfigReader& config, const SelectiveKeys& keys,
                                    std::int64_t hidden_size, std::int64_t inner_size) {
  constexpr std::int64_t kHiddenPerRank = 16;  // transformers, MambaConfig
  StateSpaceSpec spec;
  spec.kind = StateSpaceKind::selective;
  spec.num_heads = inner_size;
  spec.state_size = config.size_or({keys.state_size}, kHiddenPerRank);
  spec.conv_kernel_dim = config.size_or({keys.conv_kernel}, 4);
  spec.time_step_rank = size_or_auto(config, keys.time_step_rank,
                                     (hidden_size + kHiddenPerRank - 1) / kHiddenPerRank);
  spec.projection_bias = config.flag_or({keys.projection_bias}, false);
  spec.convolution_bias = config.flag_or({keys.convolution_bias}, true);
  ignore_state_space_keys(config);
  return spec;
}

AttentionSpec state_space_layer(const StateSpaceSpec& spec) {
  AttentionSpec attention;
  attention.kind = AttentionKind::state_space;
  attention.state_space = spec;
  attention.causal = true;
  return attention;
}

void set_state_space(StackSpec& stack, const std::vector<bool>& attends,
                     const StateSpaceSpec& spec) {
  vary_layers(stack, attends,
              [&](LayerVariant& variant) { variant.self_attention = state_space_layer(spec); });
}

void require_silu_to_run(ModelSpec& spec) {
  if (spec.decoder->ffn.activation == ActivationKind::silu) return;
  spec.not_run = "its convolution has the activation of hidden_act, and only SiLU has a kernel";
}

void read_state_space_decoder(ConfigReader& config, ModelSpec& spec, const StateSpaceSpec& mixer) {
  spec.kind = ModelKind::decoder;
  spec.embedding.vocab_size = config.size({"vocab_size"});
  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers", "n_layer"});
  stack.self_attention = state_space_layer(mixer);
  stack.norm_placement = NormPlacement::pre;
  stack.norm = {NormKind::rms_norm, false, config.number_or({"layer_norm_epsilon"}, 1e-5)};
  stack.final_norm = stack.norm;
  stack.ffn.activation = read_activation(config, {"hidden_act"}, ActivationKind::silu);
  spec.decoder = stack;
  require_silu_to_run(spec);
}

void ignore_state_space_keys(ConfigReader& config) {
  config.ignore({"time_step_min", "time_step_max", "time_step_floor", "time_step_init_scheme",
                 "time_step_scale", "use_mamba_kernels", "use_mambapy", "use_falcon_mambapy",
                 "use_associative_scan", "use_mem_eff_path", "mamba_ssm_cache_dtype",
                 "residual_in_fp32", "rescale_prenorm_residual", "z_loss_coefficient",
                 "num_logits_to_keep"});
}

std::span<const NameRule> gguf_selective_rules() { return kGgufSelective; }

std::span<const NameRule> gguf_dual_rules() { return kGgufDual; }

std::span<const NameRule> hybrid_mamba_rules() { return kHybridMamba; }

std::span<const NameRule> mixer_rules() { return kMixer; }

}  // namespace headroom::detail
