// The converter's classes for models whose files hold lists of layers in metadata, or vectors that
// are fused, copied or reordered: Apertus, BitNet, Step 3.5, Command A+, PaddleOCR-VL, GLM-OCR and
// RWKV-7.
#include <array>

#include "measured/converted_tensors.h"

namespace headroom::test {
namespace {

using nlohmann::json;

// ---- Apertus

const Names kApertusNames = {{"attention_layernorm", "attn_norm"},
                             {"feedforward_layernorm", "ffn_norm"}};

/// The constants of xIELU, by layer.
void take_xielu(ConvertedTensors& tensors, json& keys) {
  for (const std::string& name : names_of(tensors)) {
    const auto at = name.find(".act_fn.");
    if (at == std::string::npos) continue;
    const std::string key = "xielu." + name.substr(at + std::string(".act_fn.").size());
    keys[key].push_back(tensors.extract(name).mapped().values.front());
  }
}

// ---- BitNet, whose weights the converter rounds to three values; here they stay

const Names kBitnetNames = {{"self_attn.attn_sub_norm", "attn_sub_norm"},
                            {"mlp.ffn_sub_norm", "ffn_sub_norm"}};

void bitnet_metadata(const json& config, json& keys) {
  keys["hidden_activation"] = config.at("hidden_act");
  keys["rope.scaling.type"] = "linear";
  keys["rope.scaling.factor"] = 1.0;
}

// ---- Step 3.5

const Names kStepNames = {{"self_attn.g_proj", "attn_gate"},
                          {"moe.gate", "ffn_gate_inp"},
                          {"moe.router_bias", "exp_probs_b"},
                          {"moe.gate_proj", "ffn_gate_exps"},
                          {"moe.up_proj", "ffn_up_exps"},
                          {"moe.down_proj", "ffn_down_exps"},
                          {"share_expert.gate_proj", "ffn_gate_shexp"},
                          {"share_expert.up_proj", "ffn_up_shexp"},
                          {"share_expert.down_proj", "ffn_down_shexp"}};

void step_metadata(const json& config, json& keys) {
  const json& other = config.at("attention_other_setting");
  json heads = json::array();
  json groups = json::array();
  for (const bool windowed : typed_layers(config, "sliding_attention")) {
    const json& kind = windowed ? other : config;
    heads.push_back(kind.at("num_attention_heads"));
    groups.push_back(kind.at("num_attention_groups"));
  }
  keys["attention.head_count"] = heads;
  keys["attention.head_count_kv"] = groups;
  keys["attention.sliding_window"] = config.at("sliding_window");
  keys["attention.sliding_window_pattern"] = typed_layers(config, "sliding_attention");
  keys["expert_count"] = config.at("moe_num_experts");
  keys["expert_used_count"] = config.at("moe_top_k");
  keys["expert_feed_forward_length"] = config.at("moe_intermediate_size");
  keys["expert_shared_feed_forward_length"] = config.at("share_expert_dim");
  keys["expert_weights_scale"] = config.at("moe_router_scaling_factor");
  keys["expert_weights_norm"] = config.at("norm_expert_weight");
  const std::string sparse = config.at("moe_layers_enum");
  keys["leading_dense_block_count"] = std::stoi(sparse);
  keys["moe_every_n_layers"] = config.at("moe_every_n_layer");
  keys["swiglu_clamp_exp"] = config.at("swiglu_limits");
  keys["swiglu_clamp_shexp"] = config.at("swiglu_limits_shared");
  const json& thetas = config.at("rope_theta");
  keys["rope.freq_base"] = thetas.at(0);
  keys["rope.freq_base_swa"] = thetas.at(1);
}

void step_modify(const json& /*config*/, ConvertedTensors& tensors) {
  for (auto& [name, tensor] : tensors) {
    if (!name.ends_with("norm.weight")) continue;
    for (float& value : tensor.values) value += 1;
  }
  for (const std::string& name : names_of(tensors)) {
    if (name.ends_with(".moe.router_bias")) rename(tensors, name, name + ".bias");
  }
}

// ---- Command A+

void cohere2_moe_metadata(const json& config, json& keys) {
  const int width = config.at("intermediate_size");
  const int shared = config.value("num_shared_experts", 0);
  int dense = 0;
  for (const json& type : config.at("mlp_layer_types")) dense += type == "dense" ? 1 : 0;
  keys["logit_scale"] = config.at("logit_scale");
  keys["attention.sliding_window"] = config.at("sliding_window");
  keys["attention.sliding_window_pattern"] = typed_layers(config, "sliding_attention");
  keys["expert_feed_forward_length"] = width;
  keys["leading_dense_block_count"] = dense;
  keys["expert_weights_norm"] = config.value("norm_topk_prob", false);
  keys["expert_gating_func"] = 2;
  if (shared > 0) {
    keys["expert_shared_count"] = shared;
    keys["expert_shared_feed_forward_length"] = width * shared;
  }
  keys["rope.dimension_count"] = config.at("head_dim");
  keys["rope.scaling.type"] = "none";
}

// ---- GLM-OCR

void glm_ocr_metadata(const json& config, json& keys) {
  json sections = config.at("rope_parameters").at("mrope_section");
  sections.push_back(0);
  keys["rope.dimension_sections"] = sections;
  keys["rope.dimension_count"] =
      static_cast<int>(config.at("head_dim").get<int>() *
                       config.at("rope_parameters").value("partial_rotary_factor", 0.5));
}

/// normal_to_neox: the even rows of each head's part that turns, then the odd ones.
void glm_ocr_modify(const json& config, ConvertedTensors& tensors) {
  const std::int64_t head = config.at("head_dim");
  const auto rotary = static_cast<std::int64_t>(
      static_cast<double>(head) * config.at("rope_parameters").value("partial_rotary_factor", 0.5));
  for (auto& entry : tensors) {
    if (!has(entry.first, "q_proj.") && !has(entry.first, "k_proj.")) continue;
    ConvertedTensor& tensor = entry.second;
    std::vector<float> out;
    const auto add = [&](std::int64_t row) {
      const ConvertedTensor one = rows_of(tensor, row, 1);
      out.insert(out.end(), one.values.begin(), one.values.end());
    };
    for (std::int64_t first = 0; first < tensor.shape.front(); first += head) {
      for (std::int64_t row = 0; row < rotary; row += 2) add(first + row);
      for (std::int64_t row = 1; row < rotary; row += 2) add(first + row);
      for (std::int64_t row = rotary; row < head; ++row) add(first + row);
    }
    tensor.values = std::move(out);
  }
}

// ---- RWKV-7

const Names kRwkv7Names = {{"attn_norm", "attn_norm"},
                           {"ffn_norm", "attn_norm_2"},
                           {"pre_norm", "token_embd_norm"},
                           {"attn.r_proj", "time_mix_receptance"},
                           {"attn.k_proj", "time_mix_key"},
                           {"attn.v_proj", "time_mix_value"},
                           {"attn.o_proj", "time_mix_output"},
                           {"attn.g_norm", "time_mix_ln"},
                           {"attn.x_fused", "time_mix_lerp_fused"},
                           {"attn.k_k", "time_mix_k_k"},
                           {"attn.k_a", "time_mix_k_a"},
                           {"attn.r_k", "time_mix_r_k"},
                           {"attn.w0", "time_mix_w0"},
                           {"attn.w1", "time_mix_w1"},
                           {"attn.w2", "time_mix_w2"},
                           {"attn.a0", "time_mix_a0"},
                           {"attn.a1", "time_mix_a1"},
                           {"attn.a2", "time_mix_a2"},
                           {"attn.v0", "time_mix_v0"},
                           {"attn.v1", "time_mix_v1"},
                           {"attn.v2", "time_mix_v2"},
                           {"attn.g1", "time_mix_g1"},
                           {"attn.g2", "time_mix_g2"},
                           {"ffn.x_k", "channel_mix_lerp_k"},
                           {"ffn.key", "channel_mix_key"},
                           {"ffn.value", "channel_mix_value"}};

void rwkv7_metadata(const json& config, json& keys) {
  keys["context_length"] = 1048576;
  keys["attention.layer_norm_epsilon"] = config.at("norm_eps");
  keys["wkv.head_size"] = config.at("head_dim");
  keys["attention.key_length"] = nullptr;
  keys["attention.value_length"] = nullptr;
  keys["attention.decay_lora_rank"] = config.at("decay_low_rank_dim");
  keys["attention.iclr_lora_rank"] = config.at("a_low_rank_dim");
  keys["attention.value_residual_mix_lora_rank"] = config.at("v_low_rank_dim");
  keys["attention.gate_lora_rank"] = config.at("gate_low_rank_dim");
  keys["attention.head_count"] = 0;
}

/// The parts of a low-rank product and other vectors get a number and ".weight".
std::string rwkv7_name(std::string name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kParts{
      {{"_lora.lora.0.weight", "1.weight"},
       {"_lora.lora.2.weight", "2.weight"},
       {"_lora.lora.2.bias", "0.weight"}}};
  for (const auto& [from, to] : kParts) {
    const auto at = name.find(from);
    if (at != std::string::npos) name.replace(at, from.size(), to);
  }
  if (has(name, ".0.pre_norm.")) name.replace(0, name.find("pre_norm"), "model.");
  const bool has_kind = name.ends_with(".weight") || name.ends_with(".bias");
  return has_kind ? name : name + ".weight";
}

/// The six mixes of a layer as one tensor [6, 1, 1, width].
void fuse_mixes(ConvertedTensors& tensors, const std::string& block) {
  ConvertedTensor fused;
  for (const char letter : std::string_view("rwkvag")) {
    const ConvertedTensor one = tensors.extract(block + "x_" + letter).mapped();
    fused.shape = one.shape;
    fused.values.insert(fused.values.end(), one.values.begin(), one.values.end());
  }
  fused.shape.insert(fused.shape.begin(), 6);
  tensors[block + "x_fused.weight"] = std::move(fused);
}

void rwkv7_modify(const json& config, ConvertedTensors& tensors) {
  for (int layer = 0; layer < config.at("num_hidden_layers").get<int>(); ++layer) {
    fuse_mixes(tensors, "model.layers." + std::to_string(layer) + ".attn.");
  }
  for (const std::string& name : names_of(tensors)) {
    if (rwkv7_name(name) != name) rename(tensors, name, rwkv7_name(name));
  }
  for (auto& [name, tensor] : tensors) {
    if (name.ends_with(".r_k.weight")) tensor.shape = {std::ssize(tensor.values)};
  }
  // The first layer has no such weights; llama.cpp reads copies of others.
  for (const char number : std::string_view("012")) {
    const std::string end = std::string(1, number) + ".weight";
    tensors["model.layers.0.attn.v" + end] = tensors.at("model.layers.0.attn.a" + end);
  }
}

}  // namespace

std::vector<GgufConverter> listed_converters() {
  return {
      // The factors of llama3's scaling are a tensor that this converter does not write.
      {"apertus", "apertus", kApertusNames, nullptr, nullptr, R"({"rope_scaling": null})", false,
       take_xielu},
      {"bitnet", "bitnet", kBitnetNames, bitnet_metadata, nullptr},
      {"step3p5", "step35", kStepNames, step_metadata, step_modify, R"({"rope_scaling": null})"},
      {"cohere2_moe", "cohere2moe", {}, cohere2_moe_metadata, nullptr},
      {"paddleocr_vl_text",
       "paddleocr",
       {},
       nullptr,
       nullptr,
       R"({"architectures": ["PaddleOCRTextForCausalLM"], "tie_word_embeddings": true})"},
      {"glm_ocr_text",
       "glm4",
       {},
       glm_ocr_metadata,
       glm_ocr_modify,
       R"({"architectures": ["GlmOcrTextForCausalLM"], "tie_word_embeddings": true,
           "rope_parameters": {"partial_rotary_factor": 0.5, "mrope_section": [1, 0, 1]}})"},
      {"rwkv7", "rwkv7", kRwkv7Names, rwkv7_metadata, rwkv7_modify},
  };
}

}  // namespace headroom::test
