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
constexpr std::array<std::string_view, 24> kStructuralNames{"attention_types",
                                                            "attn_sinks",
                                                            "audio",
                                                            "conv_kernel",
                                                            "d_state",
                                                            "expand",
                                                            "ffn_config",
                                                            "ffn_mult",
                                                            "hybrid_override_pattern",
                                                            "is_gated_act",
                                                            "mamba_d_conv",
                                                            "mamba_d_head",
                                                            "mamba_d_state",
                                                            "mamba_headdim",
                                                            "mlp_ratio",
                                                            "mm_vision_tower",
                                                            "n_group",
                                                            "quantization_config",
                                                            "sparse_topk_blocks",
                                                            "subsampling_conv_channels",
                                                            "swiglu_limits",
                                                            "tdnn_dilation",
                                                            "vision_tower",
                                                            "visual"};
/// Lengths of texts and images that weights do not depend on where no table has them, and settings
/// of RoPE, of tokens and of values.
constexpr std::array<std::string_view, 18> kHarmlessElsewhere{"dropout",
                                                              "logit_scale",
                                                              "query_pre_attn_scalar",
                                                              "eos_token_id",
                                                              "legacy",
                                                              "max_pixels",
                                                              "max_position_embeddings",
                                                              "max_seq_len",
                                                              "min_pixels",
                                                              "model_max_length",
                                                              "mrope_interleaved",
                                                              "n_positions",
                                                              "original_max_position_embeddings",
                                                              "pad_token_id",
                                                              "rope_interleave",
                                                              "sep_token_id",
                                                              "seq_length",
                                                              "truncate"};

bool is_structural(std::string_view key) {
  if (std::ranges::find(kHarmlessElsewhere, key) != kHarmlessElsewhere.end()) return false;
  if (std::ranges::find(kStructuralNames, key) != kStructuralNames.end()) return true;
  if (is_read_by_some_family(key)) return true;
  return std::ranges::any_of(kStructuralParts, [&](std::string_view part) {
    return key.find(part) != std::string_view::npos;
  });
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

/// A config of a part, whatever its name: an object with a structural key that is on.
bool has_structural_keys(const nlohmann::json& value) {
  if (!value.is_object()) return false;
  for (const auto& [key, inner] : value.items()) {
    if (effect_of_unread(key, inner) == KeyEffect::structural) return true;
  }
  return false;
}

std::string described(const UnreadKey& key) {
  return fmt::format("{} ({})", key.pointer.substr(1), key.value);
}

}  // namespace

KeyEffect effect_of_unread(std::string_view key, const nlohmann::json& value) {
  if (is_harmless(key) || is_off(key, value)) return KeyEffect::none;
  const bool structural = is_structural(key) || has_structural_keys(value);
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
