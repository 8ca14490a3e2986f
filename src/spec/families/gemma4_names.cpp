// Tensors and GGUF keys of Gemma 3n and Gemma 4 (transformers, models/gemma3n and models/gemma4;
// llama.cpp, gguf-py/gguf/constants.py).
#include "gemma4_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../decoder.h"

namespace headroom::detail {
namespace {

constexpr NameRule kGemma4Text[] = {
    {"per_layer_embeddings.word_embeddings.%", "embed_tokens_per_layer.%"},
    {"per_layer_embeddings.projection.%", "per_layer_model_projection.%"},
    // transformers 4.57 renames the text model alone so when it saves it.
    {"per_layer_embeddings.projection.%", "per_layer_model.language_model_projection.%"},
    {"per_layer_embeddings.norm.%", "per_layer_projection_norm.%"},
    {"decoder.layers.per_layer_input.gate.%", "layers.{}.per_layer_input_gate.%"},
    {"decoder.layers.per_layer_input.projection.%", "layers.{}.per_layer_projection.%"},
    {"decoder.layers.per_layer_input_norm.%", "layers.{}.post_per_layer_input_norm.%"},
    {"decoder.layers.layer_scalar", "layers.{}.layer_scalar"},
    {"decoder.layers.mlp.dense_norm.%", "layers.{}.post_feedforward_layernorm_1.%"},
    {"decoder.layers.mlp.experts_norm.%", "layers.{}.pre_feedforward_layernorm_2.%"},
    {"decoder.layers.mlp.experts_output_norm.%", "layers.{}.post_feedforward_layernorm_2.%"},
    {"decoder.layers.mlp.router_norm.weight", "layers.{}.router.scale"},
    {"decoder.layers.mlp.router.expert_scale", "layers.{}.router.per_expert_scale"},
    {"decoder.layers.mlp.router.%", "layers.{}.router.proj.%"},
    {"decoder.layers.mlp.experts.gate.weight", "layers.{}.experts.gate_up_proj",
     stacked_experts(part(0))},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.experts.gate_up_proj",
     stacked_experts(part(1))},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.experts.down_proj", stacked_experts()},
};

constexpr NameRule kGemma4Gguf[] = {
    {"per_layer_embeddings.word_embeddings.%", "per_layer_token_embd.%"},
    {"per_layer_embeddings.projection.%", "per_layer_model_proj.%"},
    {"per_layer_embeddings.norm.%", "per_layer_proj_norm.%"},
    {"layers.per_layer_input.gate.%", "blk.{}.inp_gate.%"},
    {"layers.per_layer_input.projection.%", "blk.{}.proj.%"},
    {"layers.per_layer_input_norm.%", "blk.{}.post_norm.%"},
    {"layers.layer_scalar", "blk.{}.layer_output_scale.weight"},
    {"layers.mlp.dense_norm.%", "blk.{}.post_ffw_norm_1.%"},
    {"layers.mlp.experts_norm.%", "blk.{}.pre_ffw_norm_2.%"},
    {"layers.mlp.experts_output_norm.%", "blk.{}.post_ffw_norm_2.%"},
    {"layers.mlp.router_norm.weight", "blk.{}.ffn_gate_inp.scale"},
    {"layers.mlp.router.expert_scale", "blk.{}.ffn_down_exps.scale"},
};

/// Sets the key-value heads of windowed and of full layers. Full layers without values use their
/// keys.
void set_gemma4_heads(const GgufMetadataReader& metadata, const std::vector<bool>& windowed,
                      ConfigDraft& config) {
  const std::vector<std::int64_t> heads = metadata.counts_by_layer("attention.head_count_kv");
  for (std::size_t layer = 0; layer < std::min(windowed.size(), heads.size()); ++layer) {
    config.set_count(windowed[layer] ? "num_key_value_heads" : "num_global_key_value_heads",
                     heads[layer]);
    const std::string block = fmt::format("blk.{}.", layer);
    const bool has_keys = metadata.has_tensor(block + "attn_k.weight");
    if (windowed[layer] || !has_keys) continue;
    config.set_flag("attention_k_eq_v", !metadata.has_tensor(block + "attn_v.weight"));
  }
}

void finish_gemma4(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_windows(metadata, config);
  const auto windowed = metadata.flags_by_layer("attention.sliding_window_pattern");
  if (!windowed) metadata.fail("attention.sliding_window_pattern", "is missing");
  set_gemma4_heads(metadata, *windowed, config);
  const std::vector<std::int64_t> widths = metadata.counts_by_layer("feed_forward_length");
  if (!widths.empty()) {
    config.set_count("intermediate_size", widths.front());
    config.set_flag("use_double_wide_mlp", widths.back() != widths.front());
  }
  config.set_flag("enable_moe_block", metadata.count("expert_count").value_or(0) > 0);
  config.set_count("vocab_size_per_layer_input",
                   metadata.rows("per_layer_token_embd.weight").value_or(metadata.vocab_size()));
  ConfigDraft ropes = config.add_object("rope_parameters");
  ConfigDraft full = ropes.add_object("full_attention");
  full.set_text("rope_type", "proportional");
  full.set_number("partial_rotary_factor", 0.25);  // of all published models; GGUF has no key
  full.copy(metadata, "rope.freq_base", "rope_theta");
  ConfigDraft local = ropes.add_object("sliding_attention");
  local.set_text("rope_type", "default");
  local.copy(metadata, "rope.freq_base_swa", "rope_theta");
}

constexpr NameRule kGemma3nText[] = {
    {"altup_inputs.projection.1.%", "altup_projections.0.%"},
    {"altup_inputs.projection.2.%", "altup_projections.1.%"},
    {"altup_inputs.projection.3.%", "altup_projections.2.%"},
    {"altup_output.projection.1.%", "altup_unembed_projections.0.%"},
    {"altup_output.projection.2.%", "altup_unembed_projections.1.%"},
    {"altup_output.projection.3.%", "altup_unembed_projections.2.%"},
    {"decoder.layers.altup.router.%", "layers.{}.altup.modality_router.%"},
    {"decoder.layers.altup.router_norm.%", "layers.{}.altup.router_norm.%"},
    {"decoder.layers.altup.prediction.%", "layers.{}.altup.prediction_coefs.%"},
    {"decoder.layers.altup.correction.%", "layers.{}.altup.correction_coefs.%"},
    {"decoder.layers.altup.output_scale", "layers.{}.altup.correct_output_scale"},
    {"decoder.layers.laurel.left.%", "layers.{}.laurel.linear_left.%"},
    {"decoder.layers.laurel.right.%", "layers.{}.laurel.linear_right.%"},
    {"decoder.layers.laurel.norm.%", "layers.{}.laurel.post_laurel_norm.%"},
};

constexpr NameRule kGemma3nGguf[] = {
    {"altup_inputs.projection.1.%", "altup_proj.%", part(0)},
    {"altup_inputs.projection.2.%", "altup_proj.%", part(1)},
    {"altup_inputs.projection.3.%", "altup_proj.%", part(2)},
    {"altup_output.projection.1.%", "altup_unembd_proj.%", part(0)},
    {"altup_output.projection.2.%", "altup_unembd_proj.%", part(1)},
    {"altup_output.projection.3.%", "altup_unembd_proj.%", part(2)},
    {"layers.altup.router.%", "blk.{}.altup_router.%"},
    {"layers.altup.router_norm.%", "blk.{}.altup_router_norm.%"},
    {"layers.altup.prediction.%", "blk.{}.altup_predict_coef.%"},
    {"layers.altup.correction.%", "blk.{}.altup_correct_coef.%"},
    {"layers.altup.output_scale", "blk.{}.altup_correct_scale.weight"},
    {"layers.laurel.left.%", "blk.{}.laurel_l.%"},
    {"layers.laurel.right.%", "blk.{}.laurel_r.%"},
    {"layers.laurel.norm.%", "blk.{}.laurel_post_norm.%"},
};

/// Files hold the standard deviations above which gates pass, -infinity where all do; the config,
/// the share of a normal distribution below.
void finish_gemma3n(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_windows(metadata, config);
  config.set_count("laurel_rank", metadata.rows("blk.0.laurel_l.weight").value_or(0));
  config.set_count("vocab_size_per_layer_input",
                   metadata.rows("per_layer_token_embd.weight").value_or(metadata.vocab_size()));
  const auto deviations = metadata.numbers_by_layer("activation_sparsity_scale");
  if (!deviations) return;
  std::vector<double> shares;
  for (const double deviation : *deviations) {
    shares.push_back(std::erfc(-deviation / std::numbers::sqrt2) / 2);
  }
  config.set_numbers("activation_sparsity_pattern", shares);
}

}  // namespace

GgufForm gemma3n_form() {
  return GgufForm(GgufConversion::none,
                  {{.name = "gemma3n",
                    .common = gguf_rms_norm_keys(),
                    .own = {{"attention.shared_kv_layers", "num_kv_shared_layers"},
                            {"attention.sliding_window", "sliding_window"},
                            {"rope.freq_base_swa", "rope_local_base_freq"},
                            {"embedding_length_per_layer_input", "hidden_size_per_layer_input"},
                            {"altup.active_idx", "altup_active_idx"},
                            {"altup.num_inputs", "altup_num_inputs"},
                            {"final_logit_softcapping", "final_logit_softcapping"}},
                    .flags = {{"blk.0.altup_correct_scale.weight", "altup_correct_scale"}},
                    .head_dim = GgufHeadDim::always,
                    .finish = finish_gemma3n}},
                  {kGemma3nGguf, kGemma4Gguf});
}

GgufForm gemma4_form() {
  return GgufForm(GgufConversion::none,
                  {{.name = "gemma4",
                    .own = {{"context_length", "max_position_embeddings"},
                            {"embedding_length", "hidden_size"},
                            {"block_count", "num_hidden_layers"},
                            {"attention.head_count", "num_attention_heads"},
                            {"attention.key_length", "global_head_dim"},
                            {"attention.key_length_swa", "head_dim"},
                            {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
                            {"attention.shared_kv_layers", "num_kv_shared_layers"},
                            {"attention.sliding_window", "sliding_window"},
                            {"embedding_length_per_layer_input", "hidden_size_per_layer_input"},
                            {"expert_count", "num_experts"},
                            {"expert_used_count", "top_k_experts"},
                            {"expert_feed_forward_length", "moe_intermediate_size"},
                            {"final_logit_softcapping", "final_logit_softcapping"}},
                    .head_dim = GgufHeadDim::never,
                    .finish = finish_gemma4}},
                  {kGemma4Gguf});
}

NameTable gemma4_names() {
  NameTable names =
      llama_names({kGemma3nText, kGemma4Text, sandwich_norm_rules(), query_key_norm_rules()});
  for (const char* const unused : {"self_attn.k_proj.weight", "self_attn.v_proj.weight",
                                   "self_attn.k_norm.weight", "self_attn.v_norm.weight"}) {
    names.extras.push_back({unused, ExtraKind::unused_key_values});
  }
  names.extras.push_back({"altup.correct_output_scale", ExtraKind::layer_constant});
  return names;
}

}  // namespace headroom::detail
