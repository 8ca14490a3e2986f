// Decoders that mix Mamba-2 with attention: Bamba (IBM, transformers models/bamba), Granite 4
// (models/granitemoehybrid) and Falcon-H1 (arXiv 2507.22448).
#include <algorithm>

#include "../decoder.h"
#include "../family.h"
#include "../state_space.h"
#include "granite.h"

namespace headroom::detail {
namespace {

/// Inner size by `mamba_expand`.
std::int64_t expanded(ConfigReader& config, const ModelSpec& spec) {
  return config.size_or({"mamba_expand"}, 2) * spec.hidden_size;
}

void read_bamba(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 262144;
  defaults.norm_eps = 1e-5;
  defaults.rope.partial_rotary_factor = 0.5;
  read_decoder(config, spec, defaults);
  require_silu_to_run(spec);
  StackSpec& stack = *spec.decoder;
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  StateSpaceSpec mixer = read_dual_layer(config, {}, expanded(config, spec));
  mixer.gated_norm = GatedNormSpec{stack.norm};
  const std::vector<std::int64_t> named = config.counts("attn_layer_indices");
  std::vector<bool> attends;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    attends.push_back(std::ranges::find(named, layer) != named.end());
  }
  set_state_space(stack, attends, mixer);
}

/// The layers with attention: those that `layer_types` names so.
std::vector<bool> read_granite_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::string_view key = config.has("layer_types") ? "layer_types" : "layers_block_type";
  const std::vector<std::string> types = config.texts(key);
  std::vector<bool> attends(static_cast<std::size_t>(num_layers), false);
  if (types.empty()) return attends;
  const bool known = std::ranges::all_of(types, [](const std::string& type) {
    return type == "mamba" || type == "linear_attention" || type == "attention" ||
           type == "full_attention";
  });
  if (!known || std::ssize(types) != num_layers) {
    config.fail(key, "does not name mamba or attention for every layer",
                "name num_hidden_layers of them");
  }
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    attends[layer] = types[layer].ends_with("attention") && types[layer] != "linear_attention";
  }
  return attends;
}

void read_granite_ffn(ConfigReader& config, StackSpec& stack) {
  const std::int64_t shared = config.size_or({"shared_intermediate_size"}, 1024);
  const std::int64_t count = config.count_or({"num_local_experts"}, 8);
  if (count == 0) {
    stack.ffn.intermediate_size = shared;
    config.ignore({"num_experts_per_tok"});
    return;
  }
  ExpertsSpec experts = read_experts(config, {{"num_local_experts"}, 8, 2});
  experts.intermediate_size = stack.ffn.intermediate_size;
  experts.scoring = RouterScoring::softmax_of_chosen;
  experts.shared_intermediate_size = shared;
  stack.ffn.experts = experts;
}

void read_granitemoehybrid(ConfigReader& config, ModelSpec& spec) {
  read_granite_decoder(config, spec);
  config.expect_text("normalization_function", "rmsnorm");
  config.ignore({"init_method"});
  require_silu_to_run(spec);
  StackSpec& stack = *spec.decoder;
  const std::string positions = config.text_or({"position_embedding_type"}, "nope");
  if (positions != "rope") spec.position.kind = PositionKind::none;
  read_granite_ffn(config, stack);
  StateSpaceSpec mixer = read_dual_layer(config, {}, expanded(config, spec));
  mixer.gated_norm = GatedNormSpec{stack.norm};
  set_state_space(stack, read_granite_layers(config, stack.num_layers), mixer);
}

StateSpaceMultipliers read_multipliers(ConfigReader& config) {
  StateSpaceMultipliers factors;
  factors.input = config.number_or({"ssm_in_multiplier"}, 1);
  factors.output = config.number_or({"ssm_out_multiplier"}, 1);
  const std::vector<double> parts = config.numbers("ssm_multipliers");
  if (parts.empty()) return factors;
  if (parts.size() != 5) {
    config.fail("ssm_multipliers", "does not have five factors",
                "write those of the gate, x, B, C and the time step");
  }
  factors.gate = parts[0];
  factors.x = parts[1];
  factors.b = parts[2];
  factors.c = parts[3];
  factors.time_step = parts[4];
  return factors;
}

void read_falcon_h1_mixer(ConfigReader& config, const ModelSpec& spec, StackSpec& stack) {
  const std::int64_t computed = expanded(config, spec);
  const bool unset = config.is_null("mamba_d_ssm");
  const std::int64_t inner = config.size_or({"mamba_d_ssm"}, unset ? computed : 1024);
  StateSpaceSpec mixer = read_dual_layer(config, {}, inner);
  const auto order = config.flag_or({"mamba_norm_before_gate"}, true) ? GatedNormOrder::norm_first
                                                                      : GatedNormOrder::gate_first;
  if (config.flag_or({"mamba_rms_norm"}, false)) {
    mixer.gated_norm = GatedNormSpec{stack.norm, mixer.num_groups, order};
  }
  mixer.multipliers = read_multipliers(config);
  stack.self_attention.state_space = mixer;
}

void read_falcon_h1(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  defaults.max_position_embeddings = 8192;
  defaults.norm_eps = 1e-5;
  read_decoder(config, spec, defaults);
  require_silu_to_run(spec);
  StackSpec& stack = *spec.decoder;
  read_falcon_h1_mixer(config, spec, stack);
  AttentionSpec& attention = stack.self_attention;
  attention.input_multiplier = config.number_or({"attention_in_multiplier"}, 1);
  attention.output_multiplier = config.number_or({"attention_out_multiplier"}, 1);
  attention.key_multiplier = config.number_or({"key_multiplier"}, 1);
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);
  const std::vector<double> ffn = config.numbers("mlp_multipliers");
  if (ffn.size() == 2) {
    stack.ffn.gate_multiplier = ffn[0];
    stack.ffn.output_multiplier = ffn[1];
  } else if (!ffn.empty()) {
    config.fail("mlp_multipliers", "does not have two factors",
                "write those of the gate and of the output");
  }
  const double embedding = config.number_or({"embedding_multiplier"}, 1);
  if (embedding != 1) {
    spec.embedding.scale = EmbeddingScale::fixed;
    spec.embedding.fixed_scale = embedding;
  }
  const double logits = config.number_or({"lm_head_multiplier"}, 1);
  if (spec.head.language_model) spec.head.language_model->logit_scale = logits;
  // That of the mixer's output; the graph's mixers have a bias on both projections or on none.
  config.expect_flag("projectors_bias", attention.state_space->projection_bias);
  // The class always has a network, of intermediate_size.
  config.ignore({"mamba_use_mlp", "mlp_expansion_factor"});
}

// Bamba and Falcon-H1.
constexpr NameRule kPreFeedForward[] = {
    {"decoder.layers.mlp_norm.%", "layers.{}.pre_ff_layernorm.%"},
    {"decoder.layers.mlp.gate.%", "layers.{}.feed_forward.gate_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.feed_forward.up_proj.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.feed_forward.down_proj.%"},
    {"decoder.final_norm.%", "final_layernorm.%"},
};

constexpr NameRule kGraniteShared[] = {
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.shared_mlp.input_linear.%", part(0)},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.shared_mlp.input_linear.%", part(1)},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.shared_mlp.output_linear.%"},
};

constexpr NameRule kGraniteDense[] = {
    {"decoder.layers.mlp.gate.%", "layers.{}.shared_mlp.input_linear.%", part(0)},
    {"decoder.layers.mlp.up.%", "layers.{}.shared_mlp.input_linear.%", part(1)},
    {"decoder.layers.mlp.down.%", "layers.{}.shared_mlp.output_linear.%"},
};

constexpr GgufKey kMixerKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
    {"ssm.conv_kernel", "mamba_d_conv"},
    {"ssm.state_size", "mamba_d_state"},
    {"ssm.group_count", "mamba_n_groups"},
    {"ssm.time_step_rank", "mamba_n_heads"},  // llama.cpp stores the number of heads so
};

void finish_mixer(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::int64_t inner = metadata.count("ssm.inner_size").value_or(0);
  const std::int64_t width = metadata.count("embedding_length").value_or(0);
  if (width == 0 || inner % width != 0) metadata.fail("ssm.inner_size", "is no multiple of width");
  config.set_count("mamba_expand", inner / width);
  config.set_text("mamba_d_head", "auto");
}

void finish_bamba(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_mixer(metadata, config);
  std::vector<std::int64_t> attention;
  const std::vector<bool> attends = finish_key_value_heads(metadata, config);
  for (std::size_t layer = 0; layer < attends.size(); ++layer) {
    if (attends[layer]) attention.push_back(static_cast<std::int64_t>(layer));
  }
  config.set_counts("attn_layer_indices", attention);
  finish_partial_rotary(metadata, config);
}

void finish_granite_hybrid(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_mixer(metadata, config);
  std::vector<std::string> types;
  for (const bool attends : finish_key_value_heads(metadata, config)) {
    types.emplace_back(attends ? "attention" : "mamba");
  }
  config.set_texts("layer_types", types);
  if (metadata.count("expert_count").value_or(0) > 0) return;
  config.set_count("num_local_experts", 0);
  config.copy(metadata, "feed_forward_length", "shared_intermediate_size");
  config.copy(metadata, "expert_shared_feed_forward_length", "shared_intermediate_size");
}

/// The converter multiplies the weights by the config's factors.
void finish_falcon_h1(const GgufMetadataReader& metadata, ConfigDraft& config) {
  config.copy(metadata, "ssm.inner_size", "mamba_d_ssm");
  config.set_text("mamba_d_head", "auto");
}

}  // namespace

std::vector<Family> mamba_hybrids_families() {
  return {
      {.model_types = {"bamba"},
       .classes = llama_classes("Bamba"),
       .reader = read_bamba,
       .names = llama_names({kPreFeedForward, hybrid_mamba_rules()}),
       .gguf = GgufForm(GgufConversion::interleaved_heads,
                        {{.name = "granitehybrid",
                          .needs = "rope.scaling.finetuned",  // Granite 4 has no positions
                          .common = kMixerKeys,
                          .head_dim = GgufHeadDim::never,
                          .finish = finish_bamba}},
                        {gguf_dual_rules()})},
      {.model_types = {"granitemoehybrid"},
       .classes = llama_classes("GraniteMoeHybrid"),
       .reader = read_granitemoehybrid,
       .names = llama_names(
           {granite_expert_rules(), kGraniteShared, kGraniteDense, hybrid_mamba_rules()}),
       .gguf = GgufForm(GgufConversion::interleaved_heads,
                        {{.name = "granitehybrid",
                          .common = kMixerKeys,
                          .own = {{"expert_count", "num_local_experts"},
                                  {"expert_used_count", "num_experts_per_tok"},
                                  {"expert_shared_feed_forward_length", "shared_intermediate_size"},
                                  {"logit_scale", "logits_scaling"},
                                  {"embedding_scale", "embedding_multiplier"},
                                  {"residual_scale", "residual_multiplier"},
                                  {"attention.scale", "attention_multiplier"}},
                          .constants = {{"position_embedding_type", "\"nope\""}},
                          .head_dim = GgufHeadDim::never,
                          .finish = finish_granite_hybrid}},
                        {gguf_dual_rules()})},
      {.model_types = {"falcon_h1"},
       .classes = llama_classes("FalconH1"),
       .reader = read_falcon_h1,
       .names = llama_names({kPreFeedForward, hybrid_mamba_rules()}),
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "falcon-h1",
                          .common = kMixerKeys,
                          .own = {{"attention.head_count_kv", "num_key_value_heads"}},
                          .flags = {{"blk.0.ssm_norm.weight", "mamba_rms_norm"}},
                          .constants = {{"mamba_norm_before_gate", "false"}},
                          .head_dim = GgufHeadDim::always,
                          .finish = finish_falcon_h1}},
                        {gguf_dual_rules()})}};
}

}  // namespace headroom::detail
