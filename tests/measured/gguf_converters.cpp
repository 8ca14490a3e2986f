// The converter's classes, one per family.
#include <algorithm>

#include "measured/converted_tensors.h"

namespace headroom::test {
namespace {

using nlohmann::json;

// ---- Encoders

const Names kBertNames = {{"pooler.dense", ""},
                          {"cls.predictions", ""},
                          {"cls.predictions.decoder", ""},
                          {"cls.predictions.transform.dense", ""},
                          {"cls.predictions.transform.LayerNorm", ""}};
const Names kModernBertNames = {{"head.dense", ""}, {"head.norm", ""}, {"decoder", ""}};

// The converter leaves out the bias of the experts' sum.
const Names kNomicNames = {{"mlp.fc1", "ffn_up"},
                           {"mlp.router.layer", "ffn_gate_inp"},
                           {"mlp.experts.mlp.w1", "ffn_up_exps"},
                           {"mlp.experts.mlp.w2", "ffn_down_exps"},
                           {"mlp.experts", ""}};

void nomic_metadata(const json& config, json& keys) {
  keys["moe_every_n_layers"] = config.at("moe_every_n_layers");
  keys["expert_used_count"] = config.at("moe_top_k");
}

/// w1 and w2 become [experts, inner, width] and [experts, width, inner].
void nomic_modify(const json& config, ConvertedTensors& tensors) {
  const std::int64_t experts = config.at("num_experts");
  for (const std::string& name : names_of(tensors)) {
    if (!has(name, ".experts.mlp.w")) continue;
    ConvertedTensor& tensor = tensors.at(name);
    const std::int64_t inner = tensor.shape[0] / experts;
    tensor.shape = {experts, inner, tensor.shape[1]};
    if (name.ends_with("w2")) transpose_last(tensor);
    rename(tensors, name, name + ".weight");
  }
}

const Names kJinaV3Names = {{"mixer.Wqkv", "attn_qkv"},
                            {"mixer.out_proj", "attn_output"},
                            {"mlp.fc1", "ffn_up"},
                            {"pooler.dense", ""}};

/// Weights without their adapters, which become files of their own.
void jina_v3_modify(const json& /*config*/, ConvertedTensors& tensors) {
  for (const std::string& stored : names_of(tensors)) {
    if (has(stored, ".lora_")) {
      tensors.erase(stored);
      continue;
    }
    std::string name = stored.substr(std::string("roberta.").size());
    const auto at = name.find("parametrizations.");
    if (at != std::string::npos) name = name.substr(0, at) + "weight";
    rename(tensors, stored, name);
  }
}

void modernbert_metadata(const json& config, json& keys) {
  keys["attention.sliding_window"] = config.at("local_attention");
  keys["attention.sliding_window_pattern"] = config.at("global_attn_every_n_layers");
  keys["rope.scaling.type"] = "none";
}

// ---- Decoders

void starcoder_metadata(const json& config, json& keys) {
  // The converter writes 4·n_embd, which holds for all published models.
  keys["feed_forward_length"] = config.value("n_inner", 4 * config.at("n_embd").get<int>());
  keys["attention.head_count_kv"] = 1;
}

void moe_metadata(const json& config, json& keys) {
  keys["expert_count"] = config.at("n_routed_experts");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["expert_shared_count"] = config.at("n_shared_experts");
  const json types = config.value("mlp_layer_types", json::array());
  keys["leading_dense_block_count"] =
      config.value("first_k_dense_replace", std::ranges::count(types, "dense"));
  keys["expert_gating_func"] = 2;
  keys["expert_weights_scale"] = config.at("routed_scaling_factor");
  keys["expert_weights_norm"] = config.at("norm_topk_prob");
}

void glm4_moe_metadata(const json& config, json& keys) {
  moe_metadata(config, keys);
  keys["rope.dimension_count"] = static_cast<int>(config.at("head_dim").get<int>() *
                                                  config.at("partial_rotary_factor").get<double>());
  keys["nextn_predict_layers"] = config.at("num_nextn_predict_layers");
}

void correction_bias_modify(const json& /*config*/, ConvertedTensors& tensors) {
  for (const std::string& name : names_of(tensors)) {
    if (name.ends_with("correction_bias")) rename(tensors, name, name + ".bias");
    if (name.ends_with(".expert_bias")) rename(tensors, name, name + ".bias");
  }
}

const Names kExaoneNames = {
    {"attn.attention.q_proj", "attn_q"}, {"attn.attention.k_proj", "attn_k"},
    {"attn.attention.v_proj", "attn_v"}, {"attn.attention.out_proj", "attn_output"},
    {"mlp.c_fc_0", "ffn_gate"},          {"mlp.c_fc_1", "ffn_up"}};

void exaone_metadata(const json& config, json& keys) {
  keys["attention.layer_norm_rms_epsilon"] = config.at("layer_norm_epsilon");
  keys["rope.dimension_count"] = config.at("head_dim");
}

void glm_metadata(const json& config, json& keys) {
  keys["rope.dimension_count"] = static_cast<int>(config.at("head_dim").get<int>() *
                                                  config.at("partial_rotary_factor").get<double>());
}

void llama4_metadata(const json& config, json& keys) {
  keys["feed_forward_length"] = config.at("intermediate_size_mlp");
  keys["expert_feed_forward_length"] = config.at("intermediate_size");
  keys["interleave_moe_layer_step"] = config.at("interleave_moe_layer_step");
}

/// [experts, in, out] → [experts, out, in].
ConvertedTensor transposed(const ConvertedTensor& tensor) {
  const auto rows = static_cast<std::size_t>(tensor.shape[1]);
  const auto columns = static_cast<std::size_t>(tensor.shape[2]);
  ConvertedTensor out{{tensor.shape[0], tensor.shape[2], tensor.shape[1]}, {}};
  for (std::size_t first = 0; first < tensor.values.size(); first += rows * columns) {
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t r = 0; r < rows; ++r) {
        out.values.push_back(tensor.values[first + r * columns + c]);
      }
    }
  }
  return out;
}

/// The base class splits gate_up_proj [experts, in, 2·out] and transposes the experts.
void llama4_modify(const json& /*config*/, ConvertedTensors& tensors) {
  for (const std::string& name : names_of(tensors)) {
    if (name.ends_with("experts.down_proj")) {
      tensors[name + ".weight"] = transposed(tensors.extract(name).mapped());
    }
    if (!name.ends_with("experts.gate_up_proj")) continue;
    const ConvertedTensor both = transposed(tensors.extract(name).mapped());
    const std::string block = name.substr(0, name.size() - std::string("gate_up_proj").size());
    ConvertedTensor& gate = tensors[block + "gate_proj.weight"];
    ConvertedTensor& up = tensors[block + "up_proj.weight"];
    gate.shape = {both.shape[0], both.shape[1] / 2, both.shape[2]};
    up.shape = gate.shape;
    const std::int64_t half = std::ssize(both.values) / both.shape[0] / 2;
    for (std::int64_t part = 0; part < 2 * both.shape[0]; ++part) {
      ConvertedTensor& side = part % 2 == 0 ? gate : up;
      const auto from = both.values.begin() + part * half;
      side.values.insert(side.values.end(), from, from + half);
    }
  }
}

void ministral3_metadata(const json& config, json& keys) {
  const json& rope = config.at("rope_parameters");
  keys["rope.scaling.type"] = "yarn";
  keys["rope.scaling.factor"] = rope.at("factor");
  keys["rope.scaling.original_context_length"] = rope.at("original_max_position_embeddings");
  keys["rope.scaling.yarn_beta_fast"] = rope.at("beta_fast");
  keys["rope.scaling.yarn_beta_slow"] = rope.at("beta_slow");
  keys["rope.scaling.yarn_log_multiplier"] = rope.at("mscale_all_dim");
  keys["attention.temperature_scale"] = rope.at("llama_4_scaling_beta");
}

void afmoe_metadata(const json& config, json& keys) {
  keys["expert_shared_count"] = config.at("num_shared_experts");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["leading_dense_block_count"] = config.at("num_dense_layers");
  keys["expert_weights_norm"] = config.value("route_norm", true);
  keys["expert_weights_scale"] = config.at("route_scale");
  keys["attention.sliding_window"] = config.at("sliding_window");
}

// ---- Ling

void bailing_metadata(const json& config, json& keys) {
  const int head_dim = config.value("head_dim", config.at("hidden_size").get<int>() /
                                                    config.at("num_attention_heads").get<int>());
  keys["rope.dimension_count"] =
      static_cast<int>(head_dim * config.value("partial_rotary_factor", 1.0));
  keys["leading_dense_block_count"] = config.at("first_k_dense_replace");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["expert_weights_scale"] = config.value("routed_scaling_factor", 1.0);
  keys["expert_shared_count"] = config.at("num_shared_experts");
  keys["expert_weights_norm"] = config.at("norm_topk_prob");
}

/// Splits Q, K and V, and permutes Q and K.
void bailing_modify(const json& config, ConvertedTensors& tensors) {
  const std::int64_t heads = config.at("num_attention_heads");
  const std::int64_t groups = config.at("num_key_value_heads");
  for (const std::string& name : names_of(tensors)) {
    if (!name.ends_with("query_key_value.weight")) continue;
    const ConvertedTensor all = tensors.extract(name).mapped();
    const std::int64_t head_dim = all.shape[0] / (heads + 2 * groups);
    const std::string block = name.substr(0, name.find("attention.query_key_value"));
    const std::int64_t keys = heads * head_dim;
    const std::int64_t values = keys + groups * head_dim;
    tensors[block + "self_attn.q_proj.weight"] = rows_of(all, 0, keys);
    tensors[block + "self_attn.k_proj.weight"] = rows_of(all, keys, groups * head_dim);
    tensors[block + "self_attn.v_proj.weight"] = rows_of(all, values, groups * head_dim);
  }
  permute_queries_and_keys(config, tensors);
}

// ---- Latent attention

const Names kLatentNames = {{"self_attn.q_a_proj", "attn_q_a"},
                            {"self_attn.q_a_layernorm", "attn_q_a_norm"},
                            {"self_attn.q_b_proj", "attn_q_b"},
                            {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
                            {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
                            {"self_attn.k_b_proj", "attn_k_b"},
                            {"self_attn.v_b_proj", "attn_v_b"},
                            {"self_attn.indexer.wq_b", "indexer.attn_q_b"},
                            {"self_attn.indexer.wk", "indexer.attn_k"},
                            {"self_attn.indexer.k_norm", "indexer.k_norm"},
                            {"self_attn.indexer.weights_proj", "indexer.proj"},
                            {"mlp.gate.e_score_correction_bias", "exp_probs_b"}};

void latent_metadata(const json& config, json& keys) {
  moe_metadata(config, keys);
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
  if (!config.contains("index_n_heads")) return;
  keys["attention.indexer.head_count"] = config.at("index_n_heads");
  keys["attention.indexer.key_length"] = config.at("index_head_dim");
  keys["attention.indexer.top_k"] = config.at("index_topk");
  if (!config.contains("indexer_types")) return;
  json own = json::array();
  for (const json& type : config.at("indexer_types")) own.push_back(type == "full");
  keys["attention.indexer.types"] = own;
}

void latent_modify(const json& config, ConvertedTensors& tensors) {
  correction_bias_modify(config, tensors);
  split_key_values(config, tensors);
}

// ---- Gemma 4

const Names kGemma4Names = {{"embed_tokens_per_layer", "per_layer_token_embd"},
                            {"per_layer_model_projection", "per_layer_model_proj"},
                            {"per_layer_projection_norm", "per_layer_proj_norm"},
                            {"per_layer_input_gate", "inp_gate"},
                            {"per_layer_projection", "proj"},
                            {"post_per_layer_input_norm", "post_norm"},
                            {"post_attention_layernorm", "post_attention_norm"},
                            {"pre_feedforward_layernorm", "ffn_norm"},
                            {"pre_feedforward_layernorm_2", "pre_ffw_norm_2"},
                            {"post_feedforward_layernorm", "post_ffw_norm"},
                            {"post_feedforward_layernorm_1", "post_ffw_norm_1"},
                            {"post_feedforward_layernorm_2", "post_ffw_norm_2"},
                            {"layer_scalar", "layer_output_scale"},
                            {"router.proj", "ffn_gate_inp"},
                            {"router.scale", "ffn_gate_inp.scale"},
                            {"router.per_expert_scale", "ffn_down_exps.scale"},
                            {"experts.gate_up_proj", "ffn_gate_up_exps"},
                            {"experts.down_proj", "ffn_down_exps"}};

void gemma4_metadata(const json& config, json& keys) {
  const std::vector<bool> windowed = typed_layers(config, "sliding_attention");
  const json full = config.at("per_layer_config").begin().value();  // equal for all full layers
  const int first_shared =
      config.at("num_hidden_layers").get<int>() - config.at("num_kv_shared_layers").get<int>();
  json widths = json::array();
  json heads = json::array();
  for (std::size_t layer = 0; layer < windowed.size(); ++layer) {
    const bool wide = config.at("use_double_wide_mlp") && static_cast<int>(layer) >= first_shared;
    widths.push_back(config.at("intermediate_size").get<int>() * (wide ? 2 : 1));
    const int local = config.at("num_key_value_heads");
    heads.push_back(windowed[layer] ? local : full.value("num_key_value_heads", local));
  }
  keys["feed_forward_length"] = widths;
  keys["attention.head_count_kv"] = heads;
  keys["attention.key_length"] = full.at("head_dim");
  keys["attention.value_length"] = full.at("head_dim");
  keys["attention.key_length_swa"] = config.at("head_dim");
  keys["attention.value_length_swa"] = config.at("head_dim");
  keys["attention.sliding_window"] = config.at("sliding_window");
  keys["attention.sliding_window_pattern"] = windowed;
  keys["attention.shared_kv_layers"] = config.at("num_kv_shared_layers");
  keys["embedding_length_per_layer_input"] = config.at("hidden_size_per_layer_input");
  keys["final_logit_softcapping"] = config.at("final_logit_softcapping");
  keys["expert_used_count"] = config.at("top_k_experts");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  const json& ropes = config.at("rope_parameters");
  keys["rope.freq_base"] = ropes.at("full_attention").at("rope_theta");
  keys["rope.freq_base_swa"] = ropes.at("sliding_attention").at("rope_theta");
}

void gemma4_modify(const json& /*config*/, ConvertedTensors& tensors) {
  for (const std::string& name : names_of(tensors)) {
    if (name.ends_with("layer_scalar") || (has(name, ".experts.") && !has(name, ".weight"))) {
      rename(tensors, name, name + ".weight");
    }
  }
}

std::vector<GgufConverter> all_converters() {
  std::vector<GgufConverter> all = hybrid_converters();
  const std::vector<GgufConverter> others = {
      {"bert", "bert", kBertNames, nullptr, nullptr, R"({"add_pooling_layer": false,
        "architectures": ["BertModel"]})"},
      {"nomic_bert", "nomic-bert", {}, nullptr, nullptr},
      {"nomic_bert_moe", "nomic-bert-moe", kNomicNames, nomic_metadata, nomic_modify,
       R"({"experts_bias": false})"},
      {"jina_v3", "jina-bert-v3", kJinaV3Names, nullptr, jina_v3_modify,
       R"({"add_pooling_layer": false, "lora_adaptations": null})"},
      {"modernbert", "modern-bert", kModernBertNames, modernbert_metadata, nullptr,
       R"({"architectures": ["ModernBertModel"]})"},
      {"gpt_bigcode", "starcoder", {}, starcoder_metadata, nullptr},
      {"glm4_moe",
       "glm4moe",
       {{"post_attention_layernorm", "post_attention_norm"},
        {"mlp.gate.e_score_correction_bias", "exp_probs_b"}},
       glm4_moe_metadata,
       correction_bias_modify},
      {"deepseek_v32", "deepseek32", kLatentNames, latent_metadata, latent_modify, "{}", true},
      {"glm4_moe_lite", "deepseek2", kLatentNames, latent_metadata, latent_modify, "{}", true},
      {"glm_moe_dsa", "glm-dsa", kLatentNames, latent_metadata, latent_modify, "{}", true},
      {"gemma4_text", "gemma4", kGemma4Names, gemma4_metadata, gemma4_modify},
      {"glm", "chatglm", {}, glm_metadata, nullptr},
      {"llama4_text",
       "llama4",
       {},
       llama4_metadata,
       llama4_modify,
       R"({"attention_chunk_size": 8192, "floor_scale": 8192})"},
      {"ministral3", "mistral3", {}, ministral3_metadata, permute_queries_and_keys},
      {"afmoe",
       "afmoe",
       {{"post_attention_layernorm", "post_attention_norm"}, {"mlp.expert_bias", "exp_probs_b"}},
       afmoe_metadata,
       correction_bias_modify,
       // llama.cpp fixes the period of the windows.
       R"({"global_attn_every_n_layers": 4, "layer_types": null})"},
      {"phimoe", "phimoe", {}, nullptr, nullptr},
      {"xverse", "xverse", {}, nullptr, permute_queries_and_keys},
      {"bailing_moe",
       "bailingmoe",
       {{"word_embeddings", "token_embd"}, {"attention.dense", "attn_output"}},
       bailing_metadata,
       bailing_modify},
      {"bailing_moe_v2",
       "bailingmoe2",
       {{"word_embeddings", "token_embd"},
        {"attention.query_key_value", "attn_qkv"},
        {"attention.query_layernorm", "attn_q_norm"},
        {"attention.key_layernorm", "attn_k_norm"},
        {"attention.dense", "attn_output"},
        {"mlp.gate.expert_bias", "exp_probs_b"}},
       bailing_metadata,
       correction_bias_modify},
      // The factors of llama3's scaling are a tensor that this converter does not write.
      {"exaone", "exaone", kExaoneNames, exaone_metadata, nullptr, R"({"rope_scaling": null})"},
  };
  all.insert(all.end(), others.begin(), others.end());
  const std::vector<GgufConverter> clones = clone_converters();
  all.insert(all.end(), clones.begin(), clones.end());
  const std::vector<GgufConverter> listed = listed_converters();
  all.insert(all.end(), listed.begin(), listed.end());
  return all;
}

const std::vector<GgufConverter>& converters() {
  static const std::vector<GgufConverter> kAll = all_converters();
  return kAll;
}

}  // namespace

namespace {

/// GGUF holds the number of dense layers, which come first.
bool has_later_dense_layers(const json& config) {
  const auto kinds = config.value("mlp_layer_types", std::vector<std::string>{});
  return !std::ranges::is_sorted(kinds) || config.value("decoder_sparse_step", 1) != 1 ||
         !config.value("mlp_only_layers", json::array()).empty();
}

/// The architectures of encoders have no head, and see both sides.
bool has_encoder_head(const json& config) {
  const auto classes = config.value("architectures", std::vector<std::string>{});
  return config.value("is_decoder", false) ||
         classes == std::vector<std::string>{"NomicBertForMaskedLM"};
}

/// GGUF has no layer with a matrix in the place of its network.
bool has_matrix_network(const json& config) {
  return std::ranges::any_of(config.value("block_configs", json::array()), [](const json& block) {
    return block.at("ffn").value("replace_with_linear", false);
  });
}

/// The architectures of Gemma and Apertus have one activation.
bool has_other_activation(const json& config) {
  const std::string type = config.value("model_type", "");
  return (type == "gemma" || type == "apertus") && config.value("hidden_act", "") == "silu";
}

/// Options that the files, or the rules here, do not hold.
bool is_left_out(const json& config) {
  return !config.value("multi_query", true)                   // StarCoder has one key-value head
         || config.value("use_qkv_bias", false)               // the class splits no biases
         || config.value("mamba_proj_bias", false)            // granitehybrid has no such biases
         || config.value("num_local_experts", 1) == 0         // rules for Granite 4 are of experts
         || config.value("feed_forward_type", "") == "reglu"  // the architecture has GELU
         || config.contains("layers_block_type")              // Nemotron-H's rules read letters
         || config.contains("attn_res_block_size")            // Kimi K3 is not kimi-linear
         || has_encoder_head(config) ||
         config.value("expert_selection_fn", "") == "softmax"  // Command A+ has sigmoids
         || has_other_activation(config)
         // Factors of LongRoPE are tensors, which headroom does not run from GGUF.
         || config.value("/rope_scaling/type"_json_pointer, "") == "longrope" ||
         has_later_dense_layers(config) || has_matrix_network(config);
}

}  // namespace

namespace {

/// The model type, or a name for what the converter tells apart by other keys.
std::string converted_type(const json& config) {
  if (config.value("moe_every_n_layers", 0) > 0) return "nomic_bert_moe";
  if (config.contains("lora_adaptations")) return "jina_v3";
  return config.value("model_type", "");
}

}  // namespace

const GgufConverter* find_gguf_converter(const json& config) {
  if (is_left_out(config)) return nullptr;
  const auto found =
      std::ranges::find(converters(), converted_type(config), &GgufConverter::model_type);
  return found == converters().end() ? nullptr : &*found;
}

}  // namespace headroom::test
