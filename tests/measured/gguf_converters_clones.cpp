// The converter's classes for models that share most of another's, and for those whose layers have
// sizes of their own.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "measured/converted_tensors.h"

namespace headroom::test {
namespace {

using nlohmann::json;

/// Biases of routers get a name that ends in ".bias".
void router_bias_modify(const json& /*config*/, ConvertedTensors& tensors) {
  for (const std::string& name : names_of(tensors)) {
    if (name.ends_with("correction_bias")) rename(tensors, name, name + ".bias");
    if (name.ends_with(".expert_bias")) rename(tensors, name, name + ".bias");
  }
}

/// Networks of this kind among mlp_layer_types.
int count_of(const json& config, const char* kind) {
  int count = 0;
  for (const json& type : config.at("mlp_layer_types")) count += type == kind ? 1 : 0;
  return count;
}

// ---- Encoders

void eurobert_metadata(const json& /*config*/, json& keys) {
  keys["attention.causal"] = false;
  keys["rope.scaling.type"] = "none";
}

const Names kJinaNames = {{"pooler.dense", ""},
                          {"cls.predictions", ""},
                          {"cls.predictions.decoder", ""},
                          {"cls.predictions.transform.dense", ""},
                          {"cls.predictions.transform.LayerNorm", ""},
                          {"mlp.gated_layers", "ffn_up"},
                          {"mlp.wo", "ffn_down"},
                          {"mlp.layernorm", "layer_output_norm"}};

// ---- Decoders with experts

void exaone_moe_metadata(const json& config, json& keys) {
  const int width = config.at("moe_intermediate_size");
  const int shared = config.at("num_shared_experts");
  keys["attention.sliding_window"] = config.at("sliding_window");
  keys["attention.sliding_window_pattern"] = typed_layers(config, "sliding_attention");
  keys["expert_feed_forward_length"] = width;
  keys["expert_shared_count"] = shared;
  keys["expert_shared_feed_forward_length"] = width * shared;
  keys["expert_weights_scale"] = config.at("routed_scaling_factor");
  keys["expert_weights_norm"] = config.at("norm_topk_prob");
  keys["leading_dense_block_count"] = config.at("first_k_dense_replace");
  keys["nextn_predict_layers"] = 0;
  keys["rope.scaling.type"] = "none";
}

const Names kHyNames = {
    {"mlp.expert_bias", "exp_probs_b"},         {"mlp.e_score_correction_bias", "exp_probs_b"},
    {"mlp.router.gate", "ffn_gate_inp"},        {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_mlp.up_proj", "ffn_up_shexp"}, {"mlp.shared_mlp.down_proj", "ffn_down_shexp"}};

void hy_v3_metadata(const json& config, json& keys) {
  const int width = config.at("moe_intermediate_size");
  keys["expert_feed_forward_length"] = width;
  keys["expert_shared_feed_forward_length"] = width * config.value("num_shared_experts", 1);
  keys["expert_weights_norm"] = config.value("route_norm", true);
  keys["expert_weights_scale"] = config.value("router_scaling_factor", 1.0);
  keys["expert_gating_func"] = 2;
}

void solar_metadata(const json& config, json& keys) {
  keys["expert_count"] = config.at("n_routed_experts");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["expert_shared_count"] = config.at("n_shared_experts");
  keys["expert_gating_func"] = 2;
  keys["expert_weights_scale"] = config.at("routed_scaling_factor");
  keys["expert_weights_norm"] = config.at("norm_topk_prob");
  keys["rope.dimension_count"] = static_cast<int>(config.at("head_dim").get<int>() *
                                                  config.at("partial_rotary_factor").get<double>());
}

void laguna_metadata(const json& config, json& keys) {
  keys["attention.head_count"] = config.at("num_attention_heads_per_layer");
  keys["attention.sliding_window"] = config.at("sliding_window");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["expert_shared_feed_forward_length"] = config.at("shared_expert_intermediate_size");
  keys["expert_weights_norm"] = true;
  keys["expert_weights_scale"] = config.at("moe_routed_scaling_factor");
  keys["expert_gating_func"] = 2;
  keys["leading_dense_block_count"] = count_of(config, "dense");  // which come first
  const json& full = config.at("rope_parameters").at("full_attention");
  const json& local = config.at("rope_parameters").at("sliding_attention");
  const int head_dim = config.at("head_dim");
  const auto rotated = [&](const json& rope) {
    return static_cast<int>(head_dim * rope.value("partial_rotary_factor", 1.0));
  };
  keys["rope.dimension_count"] = rotated(full);
  keys["rope.dimension_count_swa"] = rotated(local);
  keys["rope.freq_base"] = full.at("rope_theta");
  keys["rope.freq_base_swa"] = local.at("rope_theta");
  if (full.value("rope_type", "default") != "yarn") return;
  keys["rope.scaling.type"] = "yarn";
  keys["rope.scaling.factor"] = full.at("factor");
  keys["rope.scaling.original_context_length"] = full.at("original_max_position_embeddings");
  keys["rope.scaling.yarn_beta_fast"] = full.at("beta_fast");
  keys["rope.scaling.yarn_beta_slow"] = full.at("beta_slow");
}

void mellum_metadata(const json& config, json& keys) {
  const json& full = config.at("rope_parameters").at("full_attention");
  keys["attention.sliding_window"] = config.at("sliding_window");
  keys["attention.sliding_window_pattern"] = typed_layers(config, "sliding_attention");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["rope.freq_base"] = full.at("rope_theta");
  keys["rope.freq_base_swa"] =
      config.at("rope_parameters").at("sliding_attention").at("rope_theta");
  keys["rope.scaling.type"] = "yarn";
  keys["rope.scaling.factor"] = full.at("factor");
  keys["rope.scaling.original_context_length"] = full.at("original_max_position_embeddings");
}

// ---- MiMo

void mimo2_metadata(const json& config, json& keys) {
  json heads = json::array();
  json windowed = json::array();
  const int full = config.at("num_key_value_heads");
  for (const json& type : config.at("layer_types")) {
    const bool has_window = type == "sliding_attention";
    windowed.push_back(has_window ? 1 : 0);
    heads.push_back(has_window ? 2 * full : full);
  }
  keys["attention.head_count_kv"] = heads;
  keys["attention.sliding_window_pattern"] = windowed;
  keys["attention.sliding_window"] = config.at("sliding_window");
  keys["attention.value_length"] = config.at("v_head_dim");
  keys["attention.value_scale"] = config.at("attention_value_scale");
  keys["expert_count"] = config.at("n_routed_experts");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  const json& ropes = config.at("rope_parameters");
  const json& rope = ropes.at("full_attention");
  keys["rope.freq_base"] = rope.at("rope_theta");
  keys["rope.freq_base_swa"] = ropes.at("sliding_attention").at("rope_theta");
  keys["rope.dimension_count"] = static_cast<int>(config.at("head_dim").get<int>() *
                                                  rope.at("partial_rotary_factor").get<double>());
}

void mimo2_modify(const json& config, ConvertedTensors& tensors) {
  router_bias_modify(config, tensors);
  for (const std::string& name : names_of(tensors)) {
    if (name.ends_with("attention_sink_bias")) rename(tensors, name, name + ".weight");
  }
}

// ---- Latent attention

const Names kSplitLatentNames = {{"self_attn.q_a_proj", "attn_q_a"},
                                 {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                                 {"self_attn.q_b_proj", "attn_q_b"},
                                 {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                                 {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                                 {"self_attn.kv_b_proj", "attn_kv_b"},
                                 {"self_attn.k_b_proj", "attn_k_b"},
                                 {"self_attn.v_b_proj", "attn_v_b"}};

void minicpm3_metadata(const json& config, json& keys) {
  keys["attention.q_lora_rank"] = config.at("q_lora_rank");
  keys["attention.kv_lora_rank"] = config.at("kv_lora_rank");
  keys["attention.key_length"] =
      config.at("qk_nope_head_dim").get<int>() + config.at("qk_rope_head_dim").get<int>();
  keys["attention.value_length"] = nullptr;
  keys["rope.dimension_count"] = config.at("qk_rope_head_dim");
}

void absorbed_metadata(const json& config, json& keys) {
  const int rank = config.at("kv_lora_rank");
  const int rotary = config.at("qk_rope_head_dim");
  keys["attention.head_count_kv"] = 1;
  keys["attention.q_lora_rank"] = config.at("q_lora_rank");
  keys["attention.kv_lora_rank"] = rank;
  keys["attention.key_length"] = rank + rotary;
  keys["attention.value_length"] = rank;
  keys["attention.key_length_mla"] = config.at("qk_nope_head_dim").get<int>() + rotary;
  keys["attention.value_length_mla"] = config.at("v_head_dim");
  keys["rope.dimension_count"] = rotary;
}

Names mistral4_names() {
  Names names = {{"mlp.experts.gate_up_proj", "ffn_gate_up_exps"},
                 {"mlp.experts.down_proj", "ffn_down_exps"}};
  names.insert(names.end(), kSplitLatentNames.begin(), kSplitLatentNames.end());
  return names;
}

void mistral4_metadata(const json& config, json& keys) {
  absorbed_metadata(config, keys);
  keys["expert_count"] = config.at("n_routed_experts");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["expert_shared_count"] = config.at("n_shared_experts");
  keys["leading_dense_block_count"] = config.at("first_k_dense_replace");
  keys["expert_weights_scale"] = config.at("routed_scaling_factor");
  keys["expert_weights_norm"] = config.at("norm_topk_prob");
  const json& rope = config.at("rope_parameters");
  keys["rope.scaling.type"] = "yarn";
  keys["rope.scaling.factor"] = rope.at("factor");
  keys["rope.scaling.original_context_length"] = rope.at("original_max_position_embeddings");
  keys["rope.scaling.yarn_beta_fast"] = rope.at("beta_fast");
  keys["rope.scaling.yarn_beta_slow"] = rope.at("beta_slow");
  keys["rope.scaling.yarn_log_multiplier"] = 0.1 * rope.at("mscale_all_dim").get<double>();
}

// ---- Kimi Linear

Names kimi_names() {
  Names names = {{"self_attn.f_a_proj", "ssm_f_a"},
                 {"self_attn.f_b_proj", "ssm_f_b"},
                 {"self_attn.g_a_proj", "ssm_g_a"},
                 {"self_attn.g_b_proj", "ssm_g_b"},
                 {"self_attn.b_proj", "ssm_beta"},
                 {"self_attn.q_conv1d", "ssm_conv1d_q"},
                 {"self_attn.k_conv1d", "ssm_conv1d_k"},
                 {"self_attn.v_conv1d", "ssm_conv1d_v"},
                 {"self_attn.dt_proj", "ssm_dt"},
                 {"self_attn.A_log", "ssm_a"},
                 {"self_attn.o_norm", "ssm_norm"},
                 {"block_sparse_moe.gate.e_score_correction_bias", "exp_probs_b"}};
  names.insert(names.end(), kSplitLatentNames.begin(), kSplitLatentNames.end());
  return names;
}

void kimi_metadata(const json& config, json& keys) {
  json with_query_rank = config;
  with_query_rank["q_lora_rank"] = nullptr;  // which no published model has
  absorbed_metadata(with_query_rank, keys);
  json heads = json::array();
  for (const bool attends : typed_layers(config, "full_attention")) {
    heads.push_back(attends ? 1 : 0);
  }
  keys["attention.head_count_kv"] = heads;
  keys["attention.value_length"] = nullptr;
  keys["context_length"] = config.at("model_max_length");
  keys["ssm.conv_kernel"] = config.at("linear_conv_kernel_dim");
  keys["kda.head_dim"] = config.at("linear_head_dim");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["expert_shared_count"] = config.at("num_shared_experts");
  keys["leading_dense_block_count"] = count_of(config, "dense");  // which come first
  keys["expert_weights_scale"] = config.at("routed_scaling_factor");
}

void kimi_modify(const json& config, ConvertedTensors& tensors) {
  split_key_values(config, tensors);
  router_bias_modify(config, tensors);
  for (const std::string& name : names_of(tensors)) {
    ConvertedTensor& tensor = tensors.at(name);
    if (name.ends_with(".A_log")) {
      for (float& value : tensor.values) value = -std::exp(value);
    }
    if (has(name, "_conv1d.")) tensor.shape = {1, tensor.shape.front(), 1, tensor.shape.back()};
    if (name.ends_with(".dt_bias")) {
      rename(tensors, name, name.substr(0, name.size() - 8) + ".dt_proj.bias");
    }
  }
}

// ---- Gemma 3n

const Names kGemma3nNames = {{"embed_tokens_per_layer", "per_layer_token_embd"},
                             {"per_layer_model_projection", "per_layer_model_proj"},
                             {"per_layer_projection_norm", "per_layer_proj_norm"},
                             {"per_layer_input_gate", "inp_gate"},
                             {"per_layer_projection", "proj"},
                             {"post_per_layer_input_norm", "post_norm"},
                             {"post_attention_layernorm", "post_attention_norm"},
                             {"pre_feedforward_layernorm", "ffn_norm"},
                             {"post_feedforward_layernorm", "post_ffw_norm"},
                             {"altup_projections", "altup_proj"},
                             {"altup_unembed_projections", "altup_unembd_proj"},
                             {"altup.modality_router", "altup_router"},
                             {"altup.router_norm", "altup_router_norm"},
                             {"altup.prediction_coefs", "altup_predict_coef"},
                             {"altup.correction_coefs", "altup_correct_coef"},
                             {"altup.correct_output_scale", "altup_correct_scale"},
                             {"laurel.linear_left", "laurel_l"},
                             {"laurel.linear_right", "laurel_r"},
                             {"laurel.post_laurel_norm", "laurel_post_norm"}};

/// Arguments at which a normal distribution reaches 0, 0.9 and 0.95.
float normal_quantile(double share) {
  if (share == 0) return -std::numeric_limits<float>::infinity();
  REQUIRE((share == 0.9 || share == 0.95));
  return share == 0.9 ? 1.2815516F : 1.6448536F;
}

void gemma3n_metadata(const json& config, json& keys) {
  json scales = json::array();
  for (const json& share : config.at("activation_sparsity_pattern")) {
    scales.push_back(normal_quantile(share.get<double>()));
  }
  keys["activation_sparsity_scale"] = scales;
  keys["altup.active_idx"] = config.at("altup_active_idx");
  keys["altup.num_inputs"] = config.at("altup_num_inputs");
  keys["attention.shared_kv_layers"] = config.at("num_kv_shared_layers");
  keys["attention.sliding_window"] = config.at("sliding_window");
  keys["attention.sliding_window_pattern"] = typed_layers(config, "sliding_attention");
  keys["embedding_length_per_layer_input"] = config.at("hidden_size_per_layer_input");
  keys["final_logit_softcapping"] = config.at("final_logit_softcapping");
  keys["rope.freq_base_swa"] = config.at("rope_local_base_freq");
}

/// Stacks the projections of AltUp's streams, of which the converter takes three.
void gemma3n_modify(const json& /*config*/, ConvertedTensors& tensors) {
  for (const std::string& name : names_of(tensors)) {
    if (name.ends_with("_scale")) rename(tensors, name, name + ".weight");
    for (const std::string stack : {"altup_projections", "altup_unembed_projections"}) {
      const auto at = name.find(stack + ".");
      if (at == std::string::npos) continue;
      const ConvertedTensor one = tensors.extract(name).mapped();
      ConvertedTensor& all = tensors[name.substr(0, at) + stack + ".weight"];
      const std::int64_t before = all.shape.empty() ? 0 : all.shape.front();
      all.shape = {before + 1, one.shape[0], one.shape[1]};
      all.values.insert(all.values.end(), one.values.begin(), one.values.end());
    }
  }
}

// ---- Baichuan

/// Splits the fused projections, and permutes queries and keys.
void baichuan_modify(const json& config, ConvertedTensors& tensors) {
  for (const std::string& name : names_of(tensors)) {
    if (!name.ends_with("W_pack.weight")) continue;
    const ConvertedTensor all = tensors.extract(name).mapped();
    const std::int64_t rows = all.shape.front() / 3;
    const std::string block = name.substr(0, name.find("W_pack"));
    tensors[block + "q_proj.weight"] = rows_of(all, 0, rows);
    tensors[block + "k_proj.weight"] = rows_of(all, rows, rows);
    tensors[block + "v_proj.weight"] = rows_of(all, 2 * rows, rows);
  }
  permute_queries_and_keys(config, tensors);
}

/// The experts stay stacked, gates above the other inputs.
void mistral4_modify(const json& config, ConvertedTensors& tensors) {
  split_key_values(config, tensors);
  for (const std::string& name : names_of(tensors)) {
    const bool stacked = name.ends_with(".gate_up_proj") || name.ends_with(".down_proj");
    if (stacked) rename(tensors, name, name + ".weight");
  }
}

// ---- GPT-J

void gptj_metadata(const json& config, json& keys) {
  const int usual = 4 * config.at("n_embd").get<int>();
  const json inner = config.value("n_inner", json());
  keys["feed_forward_length"] = inner.is_null() ? usual : inner.get<int>();
  keys["rope.dimension_count"] = config.at("rotary_dim");
}

// ---- Nemotron-NAS

/// Layers of block_configs, as the class counts their heads and widths.
void nemotron_nas_metadata(const json& config, json& keys) {
  const int heads = config.at("num_attention_heads");
  const int width = config.at("hidden_size");
  json query_heads = json::array();
  json kv_heads = json::array();
  json widths = json::array();
  for (const json& block : config.at("block_configs")) {
    const json& attention = block.at("attention");
    const bool grouped =
        attention.contains("n_heads_in_group") && !attention.at("n_heads_in_group").is_null();
    const bool matrix = attention.value("replace_with_linear", false);
    query_heads.push_back(grouped || matrix ? heads : 0);
    kv_heads.push_back(grouped ? heads / attention.at("n_heads_in_group").get<int>() : 0);
    const json& ffn = block.at("ffn");
    const bool dense = ffn.contains("ffn_mult") && !ffn.at("ffn_mult").is_null();
    const double exact = dense ? 2 * ffn.at("ffn_mult").get<double>() * width / 3 : 0;
    widths.push_back((static_cast<int>(exact) + 255) / 256 * 256);
  }
  keys["attention.head_count"] = query_heads;
  keys["attention.head_count_kv"] = kv_heads;
  keys["feed_forward_length"] = widths;
  keys["rope.dimension_count"] = width / heads;
}

/// Permutes queries and keys, whose heads differ by layer.
void nemotron_nas_modify(const json& config, ConvertedTensors& tensors) {
  const json& blocks = config.at("block_configs");
  for (std::size_t layer = 0; layer < blocks.size(); ++layer) {
    const json group = blocks[layer].at("attention").value("n_heads_in_group", json());
    if (group.is_null()) continue;
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    ConvertedTensors own;
    for (const char* const name : {"self_attn.q_proj.weight", "self_attn.k_proj.weight"}) {
      own[prefix + name] = tensors.extract(prefix + name).mapped();
    }
    const int heads = config.at("num_attention_heads");
    permute_queries_and_keys(
        {{"num_attention_heads", heads}, {"num_key_value_heads", heads / group.get<int>()}}, own);
    tensors.merge(own);
  }
}

}  // namespace

std::vector<GgufConverter> clone_converters() {
  return {
      {"nemotron-nas",
       "deci",
       {{"self_attn.linear_attn", "attn_output"}},
       nemotron_nas_metadata,
       nemotron_nas_modify},
      {"gptj",
       "gptj",
       {{"attn.q_proj", "attn_q"},
        {"attn.k_proj", "attn_k"},
        {"attn.v_proj", "attn_v"},
        {"mlp.fc_in", "ffn_up"},
        {"mlp.fc_out", "ffn_down"}},
       gptj_metadata,
       nullptr},
      {"eurobert",
       "eurobert",
       {{"lm_head", ""}},
       eurobert_metadata,
       nullptr,
       R"({"architectures": ["EuroBertModel"]})"},
      {"jina_bert", "jina-bert-v2", kJinaNames, nullptr, nullptr,
       R"({"add_pooling_layer": false, "architectures": ["JinaBertModel"]})"},
      {"jais2", "jais2", {}, nullptr, nullptr},
      {"exaone_moe",
       "exaone-moe",
       {{"mlp.gate.e_score_correction_bias", "exp_probs_b"},
        {"mlp.e_score_correction_bias", "exp_probs_b"}},
       exaone_moe_metadata,
       router_bias_modify},
      {"hy_v3", "hy_v3", kHyNames, hy_v3_metadata, router_bias_modify},
      {"solar_open",
       "glm4moe",
       {{"post_attention_layernorm", "post_attention_norm"},
        {"mlp.gate.e_score_correction_bias", "exp_probs_b"}},
       solar_metadata,
       router_bias_modify},
      {"laguna",
       "laguna",
       {{"self_attn.g_proj", "attn_gate"}, {"mlp.experts.e_score_correction_bias", "exp_probs_b"}},
       laguna_metadata,
       router_bias_modify},
      {"mellum_experts", "mellum", {}, mellum_metadata, nullptr},
      {"mimo_v2_flash",
       "mimo2",
       {{"self_attn.attention_sink_bias", "attn_sinks"},
        {"mlp.gate.e_score_correction_bias", "exp_probs_b"}},
       mimo2_metadata,
       mimo2_modify,
       // The converter writes no scale, which published configs leave out.
       R"({"routed_scaling_factor": 1})"},
      {"minicpm3", "minicpm3", kSplitLatentNames, minicpm3_metadata, nullptr,
       R"({"scale_emb": 12, "scale_depth": 1.4, "dim_model_base": 256})"},
      {"baichuan", "baichuan", {}, nullptr, baichuan_modify},
      {"gemma3n_text", "gemma3n", kGemma3nNames, gemma3n_metadata, gemma3n_modify},
      {"kimi_linear", "kimi-linear", kimi_names(), kimi_metadata, kimi_modify, "{}", true},
      {"mistral4", "mistral4", mistral4_names(), mistral4_metadata, mistral4_modify, "{}", true},
  };
}

}  // namespace headroom::test
