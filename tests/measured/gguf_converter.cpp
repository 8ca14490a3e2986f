#include "measured/gguf_converter.h"

#include <algorithm>
#include <array>
#include <regex>

#include "checkpoint.h"
#include "gguf.h"
#include "support/data.h"

namespace headroom::test {
namespace {

using nlohmann::json;

/// Names of modules under the prefix of a layer or of the model (tensor_mapping.py).
constexpr std::array<std::pair<std::string_view, std::string_view>, 83> kModules{
    {{"embed_tokens", "token_embd"},
     {"embeddings.word_embeddings", "token_embd"},
     {"embeddings.tok_embeddings", "token_embd"},
     {"embeddings.token_type_embeddings", "token_types"},
     {"embeddings.position_embeddings", "position_embd"},
     {"embeddings.LayerNorm", "token_embd_norm"},
     {"embeddings.norm", "token_embd_norm"},
     {"emb_ln", "token_embd_norm"},
     {"embeddings", "token_embd"},
     {"embedding", "token_embd"},
     {"wte", "token_embd"},
     {"wpe", "position_embd"},
     {"embedding_norm", "token_embd_norm"},
     {"norm_f", "output_norm"},
     {"ln_f", "output_norm"},
     {"final_norm", "output_norm"},
     {"final_layernorm", "output_norm"},
     {"norm", "output_norm"},
     {"lm_head", "output"},
     {"self_attn.q_proj", "attn_q"},
     {"self_attn.k_proj", "attn_k"},
     {"self_attn.v_proj", "attn_v"},
     {"self_attn.o_proj", "attn_output"},
     {"self_attn.out_proj", "attn_output"},
     {"self_attn.q_norm", "attn_q_norm"},
     {"self_attn.k_norm", "attn_k_norm"},
     {"self_attn.q_layernorm", "attn_q_norm"},
     {"self_attn.k_layernorm", "attn_k_norm"},
     {"self_attn.gate_proj", "attn_gate"},
     {"attention.self.query", "attn_q"},
     {"attention.self.key", "attn_k"},
     {"attention.self.value", "attn_v"},
     {"attention.output.dense", "attn_output"},
     {"attention.output.LayerNorm", "attn_output_norm"},
     {"intermediate.dense", "ffn_up"},
     {"output.dense", "ffn_down"},
     {"output.LayerNorm", "layer_output_norm"},
     {"attn.Wqkv", "attn_qkv"},
     {"attn.c_attn", "attn_qkv"},
     {"attn.out_proj", "attn_output"},
     {"attn.c_proj", "attn_output"},
     {"attn.Wo", "attn_output"},
     {"norm1", "attn_output_norm"},
     {"norm2", "layer_output_norm"},
     {"attn_norm", "attn_norm"},
     {"mlp_norm", "ffn_norm"},
     {"ln_1", "attn_norm"},
     {"ln_2", "ffn_norm"},
     {"mlp.fc11", "ffn_up"},
     {"mlp.fc12", "ffn_gate"},
     {"mlp.fc2", "ffn_down"},
     {"mlp.Wi", "ffn_up"},
     {"mlp.Wo", "ffn_down"},
     {"mlp.c_fc", "ffn_up"},
     {"mlp.c_proj", "ffn_down"},
     {"input_layernorm", "attn_norm"},
     {"operator_norm", "attn_norm"},
     {"ffn_norm", "ffn_norm"},
     {"pre_ff_layernorm", "ffn_norm"},
     {"post_attention_layernorm", "ffn_norm"},
     {"mlp.gate_proj", "ffn_gate"},
     {"mlp.up_proj", "ffn_up"},
     {"mlp.down_proj", "ffn_down"},
     {"mlp.gate_up_proj", "ffn_up"},
     {"feed_forward.w1", "ffn_gate"},
     {"feed_forward.w2", "ffn_down"},
     {"feed_forward.w3", "ffn_up"},
     {"feed_forward.gate_proj", "ffn_gate"},
     {"feed_forward.up_proj", "ffn_up"},
     {"feed_forward.down_proj", "ffn_down"},
     {"feed_forward.router", "ffn_gate_inp"},
     {"feed_forward.gate", "ffn_gate_inp"},
     {"block_sparse_moe.gate", "ffn_gate_inp"},
     {"block_sparse_moe.router.layer", "ffn_gate_inp"},
     {"mlp.router.gate", "ffn_gate_inp"},
     {"mlp.gate", "ffn_gate_inp"},
     {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
     {"conv.conv", "shortconv.conv"},
     {"conv.in_proj", "shortconv.in_proj"},
     {"conv.out_proj", "shortconv.out_proj"},
     {"pre_mlp_layernorm", "ffn_norm"},
     {"post_mlp_layernorm", "post_ffw_norm"},
     {"post_self_attn_layernorm", "post_attention_norm"}}};

/// Modules of experts and of shared experts: gate, down and up.
const std::array<std::pair<std::string_view, std::string_view>, 6> kExpertModules{
    {{"gate_proj", "ffn_gate"},
     {"down_proj", "ffn_down"},
     {"up_proj", "ffn_up"},
     {"w1", "ffn_gate"},
     {"w2", "ffn_down"},
     {"w3", "ffn_up"}}};

std::string_view expert_module(std::string_view name) {
  const auto found = std::ranges::find(kExpertModules, name,
                                       &std::pair<std::string_view, std::string_view>::first);
  REQUIRE_MESSAGE(found != kExpertModules.end(), std::string(name));
  return found->second;
}

ConvertedTensors read_tensors(const std::filesystem::path& folder) {
  const checkpoint::Checkpoint checkpoint(folder);
  ConvertedTensors tensors;
  for (const std::string& name : checkpoint.names()) {
    const checkpoint::StoredTensor& stored = *checkpoint.find(name);
    ConvertedTensor& tensor = tensors[name];
    tensor.shape = stored.shape;
    std::size_t elements = 1;
    for (const std::int64_t size : stored.shape) elements *= static_cast<std::size_t>(size);
    tensor.values.resize(elements);
    copy_as_float32(stored, tensor.values, name);
  }
  return tensors;
}

/// Stacks the experts of each layer, as experts.N.MODULE, into one tensor per module.
void stack_experts(ConvertedTensors& tensors) {
  static const std::regex kExpert(R"((.*\.experts)\.(\d+)\.(\w+)\.weight)");
  std::map<std::string, std::map<int, ConvertedTensor>> experts;
  for (auto it = tensors.begin(); it != tensors.end();) {
    std::smatch match;
    if (!std::regex_match(it->first, match, kExpert)) {
      ++it;
      continue;
    }
    experts[match[1].str() + "." + match[3].str()][std::stoi(match[2])] = std::move(it->second);
    it = tensors.erase(it);
  }
  for (auto& [name, parts] : experts) {
    ConvertedTensor& all = tensors[name + ".weight"];
    all.shape = parts.begin()->second.shape;
    all.shape.insert(all.shape.begin(), std::ssize(parts));
    for (const auto& [number, part] : parts) {
      all.values.insert(all.values.end(), part.values.begin(), part.values.end());
    }
  }
}

/// GGUF name of a module below a layer or the model.
std::string module_name(const GgufConverter& converter, const std::string& module) {
  const auto own = std::ranges::find(converter.names, module,
                                     &std::pair<std::string_view, std::string_view>::first);
  if (own != converter.names.end()) return std::string(own->second);
  static const std::regex kExperts(R"(.*\.experts\.(\w+))");
  static const std::regex kShared(R"(.*\.shared_experts?\.(\w+))");
  std::smatch match;
  if (std::regex_match(module, match, kExperts)) {
    return std::string(expert_module(match[1].str())) + "_exps";
  }
  if (std::regex_match(module, match, kShared)) {
    return std::string(expert_module(match[1].str())) + "_shexp";
  }
  const auto found =
      std::ranges::find(kModules, module, &std::pair<std::string_view, std::string_view>::first);
  REQUIRE_MESSAGE(found != kModules.end(), module);
  return std::string(found->second);
}

/// GGUF name of a tensor; empty if it is dropped.
std::string gguf_name(const GgufConverter& converter, std::string name) {
  static const std::regex kPrefix(R"(^(model\.language_model|backbone|transformer|model|bert)\.)");
  static const std::regex kLayer(R"(^(?:layers|h|encoder\.layers|encoder\.layer)\.(\d+)\.(.*)$)");
  name = std::regex_replace(name, kPrefix, "");
  std::string prefix;
  std::smatch match;
  if (std::regex_match(name, match, kLayer)) {
    prefix = "blk." + match[1].str() + ".";
    name = match[2].str();
  }
  std::string suffix;
  for (const std::string ending : {".weight", ".bias"}) {
    if (!name.ends_with(ending)) continue;
    suffix = ending;
    name.resize(name.size() - ending.size());
    break;
  }
  const std::string module = module_name(converter, name);
  return module.empty() ? "" : prefix + module + suffix;
}

/// The first of `names` in the config.
std::optional<json> first_of(const json& config, std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const auto found = config.find(name);
    if (found != config.end() && !found->is_null()) return *found;
  }
  return std::nullopt;
}

/// TextModel.set_gguf_parameters of conversion/base.py, but for the scaling of RoPE.
json base_metadata(const json& config) {
  json keys;
  const auto add = [&](const char* key, std::initializer_list<const char*> names) {
    if (const auto value = first_of(config, names)) keys[key] = *value;
  };
  add("block_count", {"n_layers", "num_hidden_layers", "n_layer", "num_layers"});
  add("context_length", {"max_position_embeddings", "n_ctx", "n_positions"});
  add("embedding_length", {"hidden_size", "n_embd", "dim"});
  add("feed_forward_length", {"intermediate_size", "n_inner", "hidden_dim"});
  add("attention.head_count", {"num_attention_heads", "n_head", "n_heads"});
  add("attention.head_count_kv", {"num_key_value_heads", "n_kv_heads"});
  const json rope = config.value("rope_parameters", json::object());
  if (rope.contains("rope_theta")) keys["rope.freq_base"] = rope["rope_theta"];
  add("rope.freq_base", {"global_rope_theta", "rope_theta", "rotary_emb_base"});
  add("rope.freq_base_swa", {"local_rope_theta"});
  add("attention.layer_norm_rms_epsilon", {"rms_norm_eps", "norm_eps"});
  add("attention.layer_norm_epsilon", {"layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"});
  add("expert_count", {"num_local_experts", "num_experts"});
  add("expert_used_count", {"num_experts_per_tok", "num_experts_per_token"});
  add("expert_group_count", {"n_group"});
  add("expert_group_used_count", {"topk_group"});
  add("attention.key_length", {"head_dim"});
  add("attention.value_length", {"head_dim"});
  return keys;
}

std::string list_of(checkpoint::GgufValueType type, const json& values, const auto& bytes) {
  std::string list =
      bytes_of(static_cast<std::uint32_t>(type)) + bytes_of(std::uint64_t{values.size()});
  for (const json& value : values) list += bytes(value);
  return list;
}

void add_list(GgufWriter& writer, const std::string& key, const json& values) {
  using checkpoint::GgufValueType;
  constexpr auto kList = static_cast<std::uint32_t>(GgufValueType::array);
  const json first = values.empty() ? json(0) : values.front();
  if (first.is_boolean()) {
    const auto flag = [](const json& one) { return std::string(1, one.get<bool>() ? '\1' : '\0'); };
    writer.add_raw(key, kList, list_of(GgufValueType::boolean, values, flag));
  } else if (first.is_number_float()) {
    const auto number = [](const json& one) { return bytes_of(one.get<float>()); };
    writer.add_raw(key, kList, list_of(GgufValueType::float32, values, number));
  } else {
    const auto count = [](const json& one) { return bytes_of(one.get<std::int64_t>()); };
    writer.add_raw(key, kList, list_of(GgufValueType::int64, values, count));
  }
}

}  // namespace

void add_metadata(GgufWriter& writer, const std::string& key, const json& value) {
  constexpr auto kInt64 = static_cast<std::uint32_t>(checkpoint::GgufValueType::int64);
  if (value.is_boolean()) {
    writer.add(key, value.get<bool>());
  } else if (value.is_string()) {
    writer.add(key, value.get<std::string>().c_str());
  } else if (value.is_array()) {
    add_list(writer, key, value);
  } else if (value.is_number_float()) {
    writer.add(key, value.get<float>());
  } else {
    writer.add_raw(key, kInt64, bytes_of(value.get<std::int64_t>()));
  }
}

GgufWriter ConvertedModel::writer() const {
  GgufWriter writer;
  for (const auto& [key, value] : keys.items()) add_metadata(writer, key, value);
  for (const auto& [name, tensor] : tensors) {
    const std::string bytes(reinterpret_cast<const char*>(tensor.values.data()),
                            tensor.values.size() * sizeof(float));
    writer.tensor(name, tensor.shape, checkpoint::GgmlType::f32, bytes);
  }
  return writer;
}

ConvertedModel convert_to_gguf(const GgufConverter& converter, const json& config,
                               const std::filesystem::path& folder) {
  json keys = base_metadata(config);
  if (converter.metadata != nullptr) converter.metadata(config, keys);
  const std::string architecture(converter.architecture);
  ConvertedModel model{.keys = {{"general.architecture", architecture}}, .tensors = {}};
  for (const auto& [key, value] : keys.items()) {
    if (!value.is_null()) model.keys[architecture + "." + key] = value;
  }
  ConvertedTensors tensors = read_tensors(folder);
  stack_experts(tensors);
  if (converter.modify != nullptr) converter.modify(config, tensors);
  if (converter.to_metadata != nullptr) converter.to_metadata(tensors, model.keys);
  for (auto& [name, tensor] : tensors) {
    const std::string stored = gguf_name(converter, name);
    if (!stored.empty()) REQUIRE(model.tensors.emplace(stored, std::move(tensor)).second);
  }
  return model;
}

}  // namespace headroom::test
