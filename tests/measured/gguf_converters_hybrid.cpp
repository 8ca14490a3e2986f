// The converter's classes for models whose layers differ.
#include <array>
#include <cmath>

#include "measured/converted_tensors.h"

namespace headroom::test {
namespace {

using nlohmann::json;

Names with(Names names, const Names& more) {
  names.insert(names.begin(), more.begin(), more.end());
  return names;
}

/// -exp(A_log), squeezed convolutions, dt_bias as the bias of dt_proj.
void modify_state_space(ConvertedTensors& tensors) {
  for (const std::string& name : names_of(tensors)) {
    ConvertedTensor& tensor = tensors.at(name);
    if (name.ends_with(".A_log")) {
      for (float& value : tensor.values) value = -std::exp(value);
    }
    if (has(name, "conv1d.") || has(name, "conv.conv.")) squeeze(tensor);
    if (name.ends_with(".dt_bias")) {
      rename(tensors, name, name.substr(0, name.size() - 8) + ".dt_proj.bias");
    }
  }
}

void modify_mamba(const json& /*config*/, ConvertedTensors& tensors) {
  modify_state_space(tensors);
}

/// Mamba2Model: A and D get a column, the norm one row per group.
void modify_mamba2(ConvertedTensors& tensors, std::int64_t groups) {
  modify_state_space(tensors);
  for (auto& [name, tensor] : tensors) {
    if (name.ends_with(".A_log") || name.ends_with(".D")) tensor.shape.push_back(1);
    if (name.ends_with("mixer.norm.weight") || name.ends_with("mamba.norm.weight")) {
      tensor.shape = {groups, tensor.shape.front() / groups};
    }
  }
}

/// Layers with attention by the types of all.
json heads_by_layer(const json& config, const std::vector<bool>& attends) {
  json heads = json::array();
  for (const bool one : attends) {
    heads.push_back(one ? config.at("num_key_value_heads").get<int>() : 0);
  }
  return heads;
}

// ---- LFM2

void lfm2_metadata(const json& config, json& keys) {
  keys["attention.head_count_kv"] = heads_by_layer(config, typed_layers(config, "full_attention"));
  keys["shortconv.l_cache"] = config.at("conv_L_cache");
  if (!config.value("block_auto_adjust_ff_dim", false)) return;
  const int multiple = config.at("block_multiple_of");
  const int width = static_cast<int>(config.at("block_ffn_dim_multiplier").get<double>() *
                                     (2 * config.at("intermediate_size").get<int>() / 3));
  keys["feed_forward_length"] = multiple * ((width + multiple - 1) / multiple);
}

void lfm2_moe_metadata(const json& config, json& keys) {
  lfm2_metadata(config, keys);
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["leading_dense_block_count"] = config.at("num_dense_layers");
  keys["expert_gating_func"] = 2;
}

void lfm2_modify(const json& /*config*/, ConvertedTensors& tensors) {
  for (const std::string& name : names_of(tensors)) {
    if (has(name, "conv.conv")) squeeze(tensors.at(name));
    if (name.ends_with(".expert_bias")) rename(tensors, name, name + ".bias");
  }
}

// ---- Mamba and its hybrids

const Names kMambaNames = {{"mixer.in_proj", "ssm_in"},
                           {"mixer.conv1d", "ssm_conv1d"},
                           {"mixer.x_proj", "ssm_x"},
                           {"mixer.dt_proj", "ssm_dt"},
                           {"mixer.A_log", "ssm_a"},
                           {"mixer.D", "ssm_d"},
                           {"mixer.norm", "ssm_norm"},
                           {"mixer.out_proj", "ssm_out"},
                           {"mamba.in_proj", "ssm_in"},
                           {"mamba.conv1d", "ssm_conv1d"},
                           {"mamba.x_proj", "ssm_x"},
                           {"mamba.dt_proj", "ssm_dt"},
                           {"mamba.A_log", "ssm_a"},
                           {"mamba.D", "ssm_d"},
                           {"mamba.norm", "ssm_norm"},
                           {"mamba.out_proj", "ssm_out"},
                           {"mamba.dt_layernorm", "ssm_dt_norm"},
                           {"mamba.b_layernorm", "ssm_b_norm"},
                           {"mamba.c_layernorm", "ssm_c_norm"}};

/// In Mamba's own models "norm" within a layer is the norm before the mixer.
const Names kPlainMambaNames = with(kMambaNames, {{"norm", "attn_norm"}});

void mamba_metadata(const json& config, json& keys) {
  keys["context_length"] = 1 << 20;
  keys["feed_forward_length"] = 0;
  keys["attention.head_count"] = 0;
  keys["attention.layer_norm_rms_epsilon"] = config.at("layer_norm_epsilon");
  keys["ssm.conv_kernel"] = config.at("conv_kernel");
  keys["ssm.inner_size"] = config.at("intermediate_size");
  keys["ssm.state_size"] = config.at("state_size");
  keys["ssm.time_step_rank"] = config.at("time_step_rank");
  keys["ssm.dt_b_c_rms"] = config.at("model_type") == "falcon_mamba";
}

void mamba2_metadata(const json& config, json& keys) {
  const int inner = 2 * config.at("hidden_size").get<int>();
  keys["context_length"] = 1 << 20;
  keys["feed_forward_length"] = 0;
  keys["attention.head_count"] = 0;
  keys.erase("attention.key_length");
  keys.erase("attention.value_length");
  keys["attention.layer_norm_rms_epsilon"] = config.at("layer_norm_epsilon");
  keys["ssm.conv_kernel"] = config.at("conv_kernel");
  keys["ssm.inner_size"] = inner;
  keys["ssm.state_size"] = config.at("state_size");
  keys["ssm.time_step_rank"] = inner / config.at("head_dim").get<int>();
  keys["ssm.group_count"] = config.at("n_groups");
}

void mamba2_modify(const json& config, ConvertedTensors& tensors) {
  modify_mamba2(tensors, config.at("n_groups"));
}

void jamba_metadata(const json& config, json& keys) {
  std::vector<bool> attends;
  for (int layer = 0; layer < config.at("num_hidden_layers"); ++layer) {
    attends.push_back(layer % config.at("attn_layer_period").get<int>() ==
                      config.at("attn_layer_offset"));
  }
  keys["attention.head_count_kv"] = heads_by_layer(config, attends);
  keys["ssm.conv_kernel"] = config.at("mamba_d_conv");
  keys["ssm.inner_size"] =
      config.at("mamba_expand").get<int>() * config.at("hidden_size").get<int>();
  keys["ssm.state_size"] = config.at("mamba_d_state");
  keys["ssm.time_step_rank"] = config.at("mamba_dt_rank");
}

void mixer_metadata(const json& config, json& keys) {
  keys["ssm.conv_kernel"] = config.at("mamba_d_conv");
  keys["ssm.state_size"] = config.at("mamba_d_state");
  keys["ssm.group_count"] = config.at("mamba_n_groups");
  keys["ssm.inner_size"] =
      config.at("mamba_expand").get<int>() * config.at("hidden_size").get<int>();
  keys["ssm.time_step_rank"] = config.at("mamba_n_heads");
}

void granite_hybrid_metadata(const json& config, json& keys) {
  mixer_metadata(config, keys);
  keys["attention.head_count_kv"] = heads_by_layer(config, typed_layers(config, "attention"));
  keys["rope.scaling.finetuned"] = false;
  keys["attention.scale"] = config.at("attention_multiplier");
  keys["embedding_scale"] = config.at("embedding_multiplier");
  keys["residual_scale"] = config.at("residual_multiplier");
  keys["logit_scale"] = config.at("logits_scaling");
  keys["expert_shared_feed_forward_length"] = config.at("shared_intermediate_size");
}

void bamba_metadata(const json& config, json& keys) {
  mixer_metadata(config, keys);
  std::vector<bool> attends(config.at("num_hidden_layers").get<std::size_t>(), false);
  for (const std::size_t layer : config.at("attn_layer_indices")) attends[layer] = true;
  keys["attention.head_count_kv"] = heads_by_layer(config, attends);
  keys["rope.scaling.finetuned"] = true;
  const int head_dim =
      config.at("hidden_size").get<int>() / config.at("num_attention_heads").get<int>();
  keys["rope.dimension_count"] =
      static_cast<int>(head_dim * config.at("partial_rotary_factor").get<double>());
}

/// Splits [gate | up] of the experts and of the shared one (GraniteMoeModel).
void split_granite_experts(ConvertedTensors& tensors) {
  for (const std::string& name : names_of(tensors)) {
    const bool is_experts = name.ends_with("block_sparse_moe.input_linear.weight");
    const bool is_shared = name.ends_with("shared_mlp.input_linear.weight");
    if (!is_experts && !is_shared) continue;
    const ConvertedTensor both = tensors.extract(name).mapped();
    const std::string block = name.substr(0, name.find(is_experts ? "block_sparse" : "shared_mlp"));
    const std::string to = block + (is_experts ? "mlp.experts." : "mlp.shared_expert.");
    ConvertedTensor& gate = tensors[to + "gate_proj.weight"];
    ConvertedTensor& up = tensors[to + "up_proj.weight"];
    gate.shape = both.shape;
    gate.shape[both.shape.size() - 2] /= 2;
    up.shape = gate.shape;
    const std::int64_t experts = is_experts ? both.shape.front() : 1;
    const std::int64_t half = std::ssize(both.values) / experts / 2;
    for (std::int64_t part = 0; part < 2 * experts; ++part) {
      ConvertedTensor& side = part % 2 == 0 ? gate : up;
      const auto from = both.values.begin() + part * half;
      side.values.insert(side.values.end(), from, from + half);
    }
  }
}

void granite_hybrid_modify(const json& config, ConvertedTensors& tensors) {
  modify_mamba2(tensors, config.at("mamba_n_groups"));
  permute_queries_and_keys(config, tensors);
  split_granite_experts(tensors);
}

void falcon_h1_metadata(const json& config, json& keys) {
  mixer_metadata(config, keys);
  keys["ssm.inner_size"] = config.at("mamba_d_ssm");
}

/// Scales `count` rows of a matrix starting at `first`.
void scale_rows(ConvertedTensor& tensor, std::int64_t first, std::int64_t count, float factor) {
  const std::int64_t width = std::ssize(tensor.values) / tensor.shape.front();
  for (std::int64_t i = first * width; i < (first + count) * width; ++i) {
    tensor.values[static_cast<std::size_t>(i)] *= factor;
  }
}

void scale_falcon_projection(const json& config, ConvertedTensor& tensor) {
  const std::vector<float> factors = config.at("ssm_multipliers");
  const std::int64_t inner = config.at("mamba_d_ssm");
  const std::int64_t states = config.at("mamba_n_groups").get<std::int64_t>() *
                              config.at("mamba_d_state").get<std::int64_t>();
  const std::int64_t rest = tensor.shape.front() - 2 * inner - 2 * states;
  const std::array<std::int64_t, 5> sizes{inner, inner, states, states, rest};
  std::int64_t first = 0;
  for (std::size_t part = 0; part < sizes.size(); ++part) {
    scale_rows(tensor, first, sizes[part],
               factors[part] * config.at("ssm_in_multiplier").get<float>());
    first += sizes[part];
  }
}

void falcon_h1_modify(const json& config, ConvertedTensors& tensors) {
  const auto number = [&](const char* key) { return config.at(key).get<float>(); };
  const float in = number("attention_in_multiplier");
  for (auto& entry : tensors) {
    const std::string& name = entry.first;
    ConvertedTensor& tensor = entry.second;
    const auto scale = [&](float factor) { scale_rows(tensor, 0, tensor.shape.front(), factor); };
    if (has(name, "down_proj")) scale(config.at("mlp_multipliers")[1].get<float>());
    if (has(name, "gate_proj")) scale(config.at("mlp_multipliers")[0].get<float>());
    if (has(name, "k_proj")) scale(number("key_multiplier") * in);
    if (has(name, "q_proj") || has(name, "v_proj")) scale(in);
    if (has(name, "o_proj")) scale(number("attention_out_multiplier"));
    if (has(name, "out_proj")) scale(number("ssm_out_multiplier"));
    if (has(name, "in_proj")) scale_falcon_projection(config, tensor);
    if (has(name, "lm_head")) scale(number("lm_head_multiplier"));
    if (has(name, "embed_tokens")) scale(number("embedding_multiplier"));
  }
  modify_mamba2(tensors, config.at("mamba_n_groups"));
}

void nemotron_h_metadata(const json& config, json& keys) {
  const std::string pattern = config.at("hybrid_override_pattern");
  std::vector<bool> attends;
  json widths = json::array();
  for (const char block : pattern) {
    attends.push_back(block == '*');
    widths.push_back(block == 'E' ? config.at("moe_intermediate_size").get<int>() : 0);
  }
  keys["attention.head_count_kv"] = heads_by_layer(config, attends);
  keys["feed_forward_length"] = widths;
  keys["attention.layer_norm_rms_epsilon"] = config.at("layer_norm_epsilon");
  keys["ssm.conv_kernel"] = config.at("conv_kernel");
  keys["ssm.state_size"] = config.at("ssm_state_size");
  keys["ssm.group_count"] = config.at("n_groups");
  keys["ssm.inner_size"] =
      config.at("mamba_num_heads").get<int>() * config.at("mamba_head_dim").get<int>();
  keys["ssm.time_step_rank"] = config.at("mamba_num_heads");
  keys["expert_count"] = config.at("n_routed_experts");
  keys["expert_shared_count"] = config.at("n_shared_experts");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["expert_shared_feed_forward_length"] = config.at("moe_shared_expert_intermediate_size");
  keys["expert_weights_norm"] = config.at("norm_topk_prob");
  keys["expert_weights_scale"] = config.at("routed_scaling_factor");
}

void nemotron_h_modify(const json& config, ConvertedTensors& tensors) {
  modify_mamba2(tensors, config.at("n_groups"));
  for (const std::string& name : names_of(tensors)) {
    if (name.ends_with("e_score_correction_bias")) rename(tensors, name, name + ".bias");
  }
}

// ---- Qwen3-Next and Qwen3.5

const Names kQwenHybridNames = {{"post_attention_layernorm", "post_attention_norm"},
                                {"linear_attn.in_proj_qkv", "attn_qkv"},
                                {"linear_attn.in_proj_z", "attn_gate"},
                                {"linear_attn.in_proj_ba", "ssm_ba"},
                                {"linear_attn.in_proj_b", "ssm_beta"},
                                {"linear_attn.in_proj_a", "ssm_alpha"},
                                {"linear_attn.conv1d", "ssm_conv1d"},
                                {"linear_attn.dt_proj", "ssm_dt"},
                                {"linear_attn.A_log", "ssm_a"},
                                {"linear_attn.norm", "ssm_norm"},
                                {"linear_attn.out_proj", "ssm_out"}};

void qwen_hybrid_metadata(const json& config, json& keys) {
  const json rope = config.value("rope_parameters", json::object());
  const double fraction =
      rope.value("partial_rotary_factor", config.value("partial_rotary_factor", 0.25));
  keys["rope.dimension_count"] = static_cast<int>(config.at("head_dim").get<int>() * fraction);
  keys["ssm.conv_kernel"] = config.at("linear_conv_kernel_dim");
  keys["ssm.state_size"] = config.at("linear_key_head_dim");
  keys["ssm.group_count"] = config.at("linear_num_key_heads");
  keys["ssm.time_step_rank"] = config.at("linear_num_value_heads");
  keys["ssm.inner_size"] = config.at("linear_value_head_dim").get<int>() *
                           config.at("linear_num_value_heads").get<int>();
  keys["full_attention_interval"] = config.value("full_attention_interval", 4);
  if (!config.contains("num_experts")) return;
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["expert_shared_feed_forward_length"] = config.at("shared_expert_intermediate_size");
}

void modify_qwen_hybrid(ConvertedTensors& tensors) {
  modify_state_space(tensors);
  for (auto& [name, tensor] : tensors) {
    if (!name.ends_with("norm.weight") || name.ends_with("linear_attn.norm.weight")) continue;
    for (float& value : tensor.values) value += 1;
  }
}

/// Rows [q k v z] per key head become q of all heads, k, v; and z apart.
void qwen3_next_modify(const json& config, ConvertedTensors& tensors) {
  modify_qwen_hybrid(tensors);
  const std::int64_t heads = config.at("linear_num_key_heads");
  const std::int64_t key = config.at("linear_key_head_dim");
  const std::int64_t value = config.at("linear_value_head_dim").get<std::int64_t>() *
                             config.at("linear_num_value_heads").get<std::int64_t>() / heads;
  const std::array<std::pair<std::int64_t, std::int64_t>, 4> parts{
      {{0, key}, {key, key}, {2 * key, value}, {2 * key + value, value}}};
  for (const std::string& name : names_of(tensors)) {
    if (!has(name, "in_proj_qkvz.")) continue;
    const ConvertedTensor all = tensors.extract(name).mapped();
    const std::string block = name.substr(0, name.find("in_proj_qkvz"));
    for (std::size_t part = 0; part < parts.size(); ++part) {
      ConvertedTensor& to = tensors[block + (part < 3 ? "in_proj_qkv.weight" : "in_proj_z.weight")];
      to.shape = {to.shape.empty() ? 0 : to.shape.front(), all.shape[1]};
      for (std::int64_t head = 0; head < heads; ++head) {
        const ConvertedTensor rows =
            rows_of(all, head * (2 * key + 2 * value) + parts[part].first, parts[part].second);
        to.shape.front() += rows.shape.front();
        to.values.insert(to.values.end(), rows.values.begin(), rows.values.end());
      }
    }
  }
}

/// _reorder_v_heads: [key heads, values per key head, size] with the first two axes swapped.
void tile_heads(std::vector<float>& values, std::size_t first, std::size_t key_heads,
                std::size_t per_key, std::size_t size) {
  const std::vector<float> grouped(values.begin() + static_cast<std::ptrdiff_t>(first),
                                   values.end());
  for (std::size_t k = 0; k < key_heads; ++k) {
    for (std::size_t v = 0; v < per_key; ++v) {
      for (std::size_t i = 0; i < size; ++i) {
        values[first + (v * key_heads + k) * size + i] = grouped[(k * per_key + v) * size + i];
      }
    }
  }
}

void qwen3_5_modify(const json& config, ConvertedTensors& tensors) {
  const auto size = [&](const char* key) { return config.at(key).get<std::size_t>(); };
  const std::size_t keys = size("linear_num_key_heads");
  const std::size_t per_key = size("linear_num_value_heads") / keys;
  const std::size_t head = size("linear_value_head_dim");
  const std::size_t before = 2 * keys * size("linear_key_head_dim");  // rows of queries and keys
  for (auto& [name, tensor] : tensors) {
    if (!has(name, "linear_attn.")) continue;
    const std::size_t width = tensor.values.size() / static_cast<std::size_t>(tensor.shape.front());
    std::vector<float>& values = tensor.values;
    if (has(name, ".in_proj_qkv.") || has(name, ".conv1d.")) {
      tile_heads(values, before * width, keys, per_key, head * width);
    } else if (has(name, ".in_proj_z.")) {
      tile_heads(values, 0, keys, per_key, head * width);
    } else if (has(name, ".in_proj_b.") || has(name, ".in_proj_a.")) {
      tile_heads(values, 0, keys, per_key, width);
    } else if (has(name, ".A_log") || has(name, ".dt_bias")) {
      tile_heads(values, 0, keys, per_key, 1);
    } else if (has(name, ".out_proj.")) {
      std::vector<float> out;
      for (std::int64_t row = 0; row < tensor.shape.front(); ++row) {
        ConvertedTensor one = rows_of(tensor, row, 1);
        tile_heads(one.values, 0, keys, per_key, head);
        out.insert(out.end(), one.values.begin(), one.values.end());
      }
      values = std::move(out);
    }
  }
  modify_qwen_hybrid(tensors);
}

}  // namespace

std::vector<GgufConverter> hybrid_converters() {
  return {
      {"lfm2", "lfm2", {}, lfm2_metadata, lfm2_modify},
      {"lfm2_moe",
       "lfm2moe",
       {{"feed_forward.expert_bias", "exp_probs_b"}},
       lfm2_moe_metadata,
       lfm2_modify},
      {"mamba", "mamba", kPlainMambaNames, mamba_metadata, modify_mamba},
      {"falcon_mamba", "mamba", kPlainMambaNames, mamba_metadata, modify_mamba},
      {"mamba2", "mamba2", kPlainMambaNames, mamba2_metadata, mamba2_modify},
      {"jamba", "jamba", kMambaNames, jamba_metadata, modify_mamba},
      {"granitemoehybrid", "granitehybrid",
       with(kMambaNames, {{"block_sparse_moe.output_linear", "ffn_down_exps"},
                          {"shared_mlp.output_linear", "ffn_down_shexp"}}),
       granite_hybrid_metadata, granite_hybrid_modify, R"({"position_embedding_type": "nope"})"},
      {"bamba", "granitehybrid", kMambaNames, bamba_metadata, granite_hybrid_modify},
      {"falcon_h1", "falcon-h1", kMambaNames, falcon_h1_metadata, falcon_h1_modify},
      {"nemotron_h", "nemotron_h_moe",
       with(kPlainMambaNames, {{"mixer.q_proj", "attn_q"},
                               {"mixer.k_proj", "attn_k"},
                               {"mixer.v_proj", "attn_v"},
                               {"mixer.o_proj", "attn_output"},
                               {"mixer.gate", "ffn_gate_inp"},
                               {"mixer.gate.e_score_correction_bias", "exp_probs_b"}}),
       nemotron_h_metadata, nemotron_h_modify},
      {"qwen3_next", "qwen3next", kQwenHybridNames, qwen_hybrid_metadata, qwen3_next_modify},
      {"qwen3_5_text", "qwen35", kQwenHybridNames, qwen_hybrid_metadata, qwen3_5_modify},
      {"qwen3_5_moe_text", "qwen35moe", kQwenHybridNames, qwen_hybrid_metadata, qwen3_5_modify},
  };
}

}  // namespace headroom::test
