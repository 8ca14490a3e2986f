#include "unread_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "harmless_keys.h"
#include "headroom/error.h"
#include "structural_names.h"

namespace headroom::detail {
namespace {

/// Parts of names that say size or operator.
constexpr std::array<std::string_view, 18> kStructuralParts{
    "num_", "_num", "_size",  "size_", "_dim",  "dim_",   "rank", "heads", "expert",
    "moe",  "norm", "window", "bias",  "layer", "hidden", "lora", "group", "stride"};
/// Names of sizes and operators that no reader takes in one of the ways that structural_names.h
/// collects, and that none of these parts are in.
constexpr std::array<std::string_view, 35> kStructuralNames{"attention_types",
                                                            "attn_sinks",
                                                            "audio",
                                                            "cla_share_factor",
                                                            "compress_rope_theta",
                                                            "conv_kernel",
                                                            "d_state",
                                                            "depths",
                                                            "expand",
                                                            "ffn_config",
                                                            "ffn_mult",
                                                            "hc_eps",
                                                            "hybrid_override_pattern",
                                                            "index_local_blocks",
                                                            "index_topk_blocks",
                                                            "is_gated_act",
                                                            "mamba_d_conv",
                                                            "mamba_d_head",
                                                            "mamba_d_state",
                                                            "mamba_headdim",
                                                            "mlp_ratio",
                                                            "mm_vision_tower",
                                                            "n_group",
                                                            "partial_rotary_factors",
                                                            "position_buckets",
                                                            "quantization_config",
                                                            "sparse_attention_freq",
                                                            "sparse_topk_blocks",
                                                            "subsampling_conv_channels",
                                                            "swiglu_limits",
                                                            "swiglu_limits_shared",
                                                            "tdnn_dilation",
                                                            "vision_tower",
                                                            "visual",
                                                            "visual_encoder"};
/// Lengths of texts and images that weights do not depend on where no table has them, and settings
/// of RoPE, of tokens and of values.
constexpr std::array<std::string_view, 20> kHarmlessElsewhere{"context_length",
                                                              "dropout",
                                                              "eos_token_id",
                                                              "legacy",
                                                              "logit_scale",
                                                              "max_pixels",
                                                              "max_position_embeddings",
                                                              "max_seq_len",
                                                              "max_sequence_length",
                                                              "min_pixels",
                                                              "model_max_length",
                                                              "mrope_interleaved",
                                                              "n_positions",
                                                              "original_max_position_embeddings",
                                                              "pad_token_id",
                                                              "query_pre_attn_scalar",
                                                              "rope_interleave",
                                                              "sep_token_id",
                                                              "seq_length",
                                                              "truncate"};

/// Names that readers take as a size or an object, and others write with a word.
constexpr std::array<std::string_view, 6> kGenericNames{"attention", "attn",   "decoder",
                                                        "encoder",   "gating", "size"};
/// Flags of classes that other classes always have on.
constexpr std::array<std::string_view, 2> kHarmlessIfTrue{"scale_attn_weights", "summary_use_proj"};
/// Windows, which a sibling turns off.
constexpr std::array<std::string_view, 2> kKeysOfWindows{"max_window_layers", "sliding_window"};

/// True if some reader takes this name as a size, an operator or a part.
bool is_structural_name(std::string_view key) {
  if (std::ranges::find(kHarmlessElsewhere, key) != kHarmlessElsewhere.end()) return false;
  if (std::ranges::find(kStructuralNames, key) != kStructuralNames.end()) return true;
  return is_read_by_some_family(key);
}

/// "hidden_dropout_prob": a rate, whatever it drops.
bool is_rate_of_dropout(std::string_view key) {
  return key.find("dropout") != std::string_view::npos;
}

bool has_structural_part(std::string_view key) {
  if (std::ranges::find(kHarmlessElsewhere, key) != kHarmlessElsewhere.end()) return false;
  if (is_rate_of_dropout(key)) return false;
  return std::ranges::any_of(kStructuralParts, [&](std::string_view part) {
    return key.find(part) != std::string_view::npos;
  });
}

bool is_word_under_generic_name(std::string_view key, const nlohmann::json& value) {
  return value.is_string() && std::ranges::find(kGenericNames, key) != kGenericNames.end();
}

/// A class may have biases and norms unless a key turns them off.
bool is_on_by_default(std::string_view key) {
  return key.find("bias") != std::string_view::npos || key.find("norm") != std::string_view::npos;
}

/// Absent, false, 0 or empty: the setting is not used.
bool is_off(std::string_view key, const nlohmann::json& value) {
  if (value.is_null() || (value.is_structured() && value.empty())) return true;
  if (value.is_string()) return value.get_ref<const std::string&>().empty();
  const bool zero =
      (value.is_boolean() && !value.get<bool>()) || (value.is_number() && value.get<double>() == 0);
  return zero && !is_on_by_default(key);
}

/// A list that names full attention for every layer, as a class without other kinds has it.
bool is_full_attention_only(std::string_view key, const nlohmann::json& value) {
  return key == "layer_types" && value.is_array() &&
         std::ranges::all_of(value,
                             [](const nlohmann::json& type) { return type == "full_attention"; });
}

bool is_unused_window(std::string_view key, const nlohmann::json& owner) {
  const auto used = owner.find("use_sliding_window");
  return used != owner.end() && *used == false &&
         std::ranges::find(kKeysOfWindows, key) != kKeysOfWindows.end();
}

/// Names the number that a norm adds to a variance ("norm_eps"), unless it says that a family has
/// more ("hc_eps": hyper-connections).
bool is_epsilon(std::string_view key, const nlohmann::json& value) {
  const bool named = key.ends_with("_eps") || key.ends_with("_epsilon");
  return named && value.is_number() && !is_structural_name(key);
}

bool has_no_effect(std::string_view key, const nlohmann::json& owner) {
  const nlohmann::json& value = owner.at(std::string(key));
  if (is_epsilon(key, value)) return true;
  if (is_harmless(key) || is_off(key, value) || is_unused_window(key, owner)) return true;
  if (is_full_attention_only(key, value)) return true;
  return value == true && std::ranges::find(kHarmlessIfTrue, key) != kHarmlessIfTrue.end();
}

/// A config of a part, whatever its name: an object with a structural key that is on. Notes of a
/// tool have keys such as num_train_epochs, so parts of names do not count.
bool has_structural_keys(const nlohmann::json& object) {
  if (!object.is_object()) return false;
  for (const auto& [key, value] : object.items()) {
    if (has_no_effect(key, object)) continue;
    if (is_structural_name(key) && !is_word_under_generic_name(key, value)) return true;
    if (has_structural_keys(value)) return true;
  }
  return false;
}

std::string described(const UnreadKey& key) {
  return fmt::format("{} ({})", key.pointer.substr(1), key.value);
}

}  // namespace

KeyEffect effect_of_unread(std::string_view key, const nlohmann::json& owner) {
  if (has_no_effect(key, owner)) return KeyEffect::none;
  const nlohmann::json& value = owner.at(std::string(key));
  if (is_word_under_generic_name(key, value)) return KeyEffect::unlikely;
  const bool structural =
      is_structural_name(key) || has_structural_part(key) || has_structural_keys(value);
  return structural ? KeyEffect::structural : KeyEffect::unlikely;
}

void require_no_structural(const UnreadKeys& unread, const std::string& file) {
  const std::vector<UnreadKey>& keys = unread.structural;
  if (keys.empty()) return;
  if (keys.size() == 1) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("is unknown and could change a figure: {}", keys.front().value),
                file + "#" + keys.front().pointer,
                "remove it if it affects neither sizes nor operators");
  }
  std::string list;
  for (const UnreadKey& key : keys) list += (list.empty() ? "" : ", ") + described(key);
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} keys are unknown and could change a figure: {}", keys.size(), list),
              file, "remove those that affect neither sizes nor operators");
}

}  // namespace headroom::detail
