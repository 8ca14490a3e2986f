#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "config_reader.h"
#include "element_type.h"
#include "headroom/error.h"
#include "json_text.h"
#include "linear_modules.h"
#include "preset_names.h"
#include "readers.h"
#include "safetensors.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;
using checkpoint::SafetensorsFile;
using checkpoint::StoredTensor;

/// Settings of adapter_config.json for a LoRA adapter (arXiv 2106.09685).
struct AdapterConfig {
  std::string base;
  std::int64_t rank = 0;
  bool has_one_rank = true;
  std::string targets;               ///< "q_proj, v_proj", or a regular expression
  std::vector<std::string> modules;  ///< target_modules, if it is a list
  /// The first setting that gives some modules other weights than their rank does; empty: none.
  std::string special;
};

/// Settings that change which weights an adapter has (peft, tuners/lora/config.py).
std::string special_setting(ConfigReader& config) {
  for (const std::string_view key :
       {"rank_pattern", "layers_to_transform", "modules_to_save", "exclude_modules",
        "target_parameters", "layer_replication", "trainable_token_indices"}) {
    const bool is_empty = config.is_object(key) && config.entries(key).value_or(0) == 0;
    if (config.has(key) && !is_empty) return std::string(key);
  }
  if (config.flag_or({"use_dora"}, false)) return "use_dora";
  if (config.text_or({"bias"}, "none") != "none") return "bias";
  return config.flag_or({"lora_bias"}, false) ? "lora_bias" : "";
}

AdapterConfig read_adapter_config(const std::string& file) {
  const nlohmann::json document = parse_json(read_text_file(file), file);
  ConfigReader config(document, file);
  const std::string method = config.text_or({"peft_type"}, "");
  if (method != "LORA") {
    config.fail("peft_type",
                fmt::format("is \"{}\": of PEFT's adapters, only LoRA's are read", method),
                "give the base model; merged into it, an adapter adds no parameters");
  }
  AdapterConfig adapter;
  adapter.base = config.text_or({"base_model_name_or_path"}, "");
  if (adapter.base.empty()) {
    config.fail("base_model_name_or_path", "is missing: an adapter alone is not a model",
                "write the base model's folder or name there");
  }
  adapter.rank = config.size({"r"});
  const auto ranks = config.entries("rank_pattern");
  adapter.has_one_rank = ranks.value_or(0) == 0;
  adapter.special = special_setting(config);
  if (config.is_list("target_modules")) {
    adapter.modules = config.texts("target_modules");
    adapter.targets = fmt::format("{}", fmt::join(adapter.modules, ", "));
  } else {
    adapter.targets = config.text_or({"target_modules"}, "the modules of its files");
  }
  return adapter;
}

/// QLoRA trains on quantised copies, which are no presets: the model before it is named.
std::string hint_for_base(const std::string& base) {
  const std::string before = hint_before_quantisation(base);
  constexpr std::string_view kWrite = "write a preset's name or the base model's folder there";
  return before.empty() ? std::string(kWrite) : fmt::format("{}; {}", kWrite, before);
}

/// The base model. A relative folder is looked for beside the adapter as well.
Model read_base(const AdapterConfig& adapter, const fs::path& folder, const std::string& file) {
  std::error_code failed;
  const fs::path beside = folder / adapter.base;
  const std::string base = fs::exists(beside, failed) ? beside.string() : adapter.base;
  if (fs::is_regular_file(fs::path(base) / "adapter_config.json", failed)) {
    throw Error(ErrorCode::invalid_input, "names another adapter as its base model",
                file + "#/base_model_name_or_path", "write the base model's folder there");
  }
  try {
    return load_model(base);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    throw Error(ErrorCode::invalid_input,
                fmt::format("is a LoRA adapter whose base model cannot be read: {}", error.what()),
                file + "#/base_model_name_or_path", hint_for_base(adapter.base));
  }
}

WeightRole role_of(std::string_view tensor) {
  const bool in_attention = tensor.find("attn") != std::string_view::npos ||
                            tensor.find("attention") != std::string_view::npos;
  return in_attention ? WeightRole::attention : WeightRole::mlp;
}

void require_rank(const StoredTensor& tensor, const AdapterConfig& adapter,
                  const std::string& file) {
  const bool is_down = tensor.name.ends_with("lora_A.weight");
  if (!is_down || !adapter.has_one_rank || tensor.shape.front() == adapter.rank) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("has rank {}, but adapter_config.json says r {}", tensor.shape.front(),
                          adapter.rank),
              checkpoint::tensor_place(file, tensor.name), "take both files from one training run");
}

/// A rule without weights yet for one type of an adapter's, which is often not the base model's.
StorageRule rule_for(checkpoint::StoredType type) {
  StorageFormat format;
  format.name = checkpoint::stored_name(type);
  format.values.bits = checkpoint::stored_bits(type);
  StorageRule rule;
  rule.format = std::move(format);
  rule.kinds = {ModuleKind::linear,    ModuleKind::experts, ModuleKind::router,
                ModuleKind::embedding, ModuleKind::head,    ModuleKind::convolution,
                ModuleKind::tower,     ModuleKind::other};
  return rule;
}

/// Adds every tensor of the adapter, and returns its bytes.
Integer add_adapter(const fs::path& folder, const AdapterConfig& adapter, ModelSpec& spec) {
  const SafetensorsFile weights(folder / "adapter_model.safetensors");
  Integer bytes = 0;
  std::map<checkpoint::StoredType, StorageRule> rules;
  for (const StoredTensor& tensor : weights.tensors()) {
    if (tensor.shape.empty()) continue;
    require_rank(tensor, adapter, weights.path());
    spec.counted_only.push_back(
        {tensor.name, tensor.shape, role_of(tensor.name), 1, ModelPart::adapter});
    rules.try_emplace(tensor.type, rule_for(tensor.type))
        .first->second.weights.push_back(tensor.name);
    bytes = checked_add(bytes, static_cast<std::int64_t>(tensor.data.size()));
  }
  std::vector<StorageRule>& all = spec.storage.rules;
  for (auto& [type, rule] : rules) all.insert(all.begin(), std::move(rule));
  return bytes;
}

[[noreturn]] void refuse_without_weights(const fs::path& folder, const AdapterConfig& adapter,
                                         const std::string& why) {
  throw Error(ErrorCode::invalid_input,
              fmt::format("is a LoRA adapter without adapter_model.safetensors, {}", why),
              folder.string(),
              fmt::format("add its weights, or give the base model, {}", adapter.base));
}

/// A target is a module's whole name, or its end after a dot; all-linear is every one but the head.
bool is_target(const LinearModule& module, const AdapterConfig& adapter) {
  if (adapter.targets == "all-linear") return !module.is_head;
  return std::ranges::any_of(adapter.modules, [&](const std::string& target) {
    return module.name == target || module.name.ends_with("." + target);
  });
}

/// Adds the weights that PEFT gives each target: [rank, in] and [out, rank], in float32 whatever
/// the base model's type (autocast_adapter_dtype). Returns their bytes.
Integer add_targets(const fs::path& folder, const AdapterConfig& adapter, ModelSpec& spec) {
  if (!adapter.special.empty()) {
    refuse_without_weights(folder, adapter, adapter.special + " decides on them");
  }
  if (adapter.modules.empty() && adapter.targets != "all-linear") {
    refuse_without_weights(folder, adapter, "and target_modules is not a list of names");
  }
  StorageRule rule = rule_for(checkpoint::StoredType::float32);
  Integer weights = 0;
  for (const LinearModule& module : linear_modules(spec)) {
    if (!is_target(module, adapter)) continue;
    const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
      weights = checked_add(weights,
                            checked_multiply(module.copies, checked_multiply(shape[0], shape[1])));
      const std::string path = module.name + "." + name + ".weight";
      rule.weights.push_back(path);
      spec.counted_only.push_back(
          {path, std::move(shape), role_of(path), module.copies, ModelPart::adapter});
    };
    add("lora_A", {adapter.rank, module.in_features});
    add("lora_B", {module.out_features, adapter.rank});
  }
  if (weights == 0) {
    refuse_without_weights(folder, adapter, "and its base model has no module " + adapter.targets);
  }
  spec.storage.rules.insert(spec.storage.rules.begin(), std::move(rule));
  constexpr std::int64_t kFloatBytes = 4;
  return checked_multiply(weights, kFloatBytes);
}

}  // namespace

Model read_adapter_folder(const fs::path& folder) {
  const std::string file = (folder / "adapter_config.json").string();
  const AdapterConfig adapter = read_adapter_config(file);
  Model model = read_base(adapter, folder, file);
  std::error_code failed;
  if (!model.name_note.empty()) model.spec.assumptions.push_back(model.name_note);
  const bool has_weights = fs::is_regular_file(folder / "adapter_model.safetensors", failed);
  const Integer bytes = has_weights ? add_adapter(folder, adapter, model.spec)
                                    : add_targets(folder, adapter, model.spec);
  if (!has_weights) {
    model.spec.assumptions.emplace_back(
        "the adapter's file is absent: its weights are those of rank and target_modules, in "
        "float32");
  }
  model.spec.assumptions.push_back(
      fmt::format("{} with a LoRA adapter of rank {} on {}: {} B more; merged into the base model "
                  "it costs neither bytes nor FLOPs",
                  model.spec.name, adapter.rank, adapter.targets, bytes));
  model.spec.name = name_of_folder(folder);
  model.source = file;
  model.reference.reset();
  // The files hold the base model only.
  model.weight_files.clear();
  model.spec.not_run = "headroom does not run adapters";
  return model;
}

}  // namespace headroom::detail
