#include "unread_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "harmless_keys.h"
#include "headroom/error.h"

namespace headroom::detail {
namespace {

/// Parts of names that say size or operator.
constexpr std::array<std::string_view, 18> kStructuralParts{
    "num_", "_num", "_size",  "size_", "_dim",  "dim_",   "rank", "heads", "expert",
    "moe",  "norm", "window", "bias",  "layer", "hidden", "lora", "group", "stride"};
/// Names that some family reads, and that none of these parts are in.
constexpr std::array<std::string_view, 26> kStructuralNames{
    "alibi",         "attention_types",
    "attn_config",   "d_ff",
    "d_inner",       "d_kv",
    "d_k",           "d_model",
    "d_state",       "d_v",
    "dilation",      "dim",
    "ffn_config",    "gated",
    "is_causal",     "multi_query",
    "n_embd",        "n_embed",
    "n_group",       "n_head",
    "n_head_kv",     "n_inner",
    "nhead",         "new_decoder_architecture",
    "parallel_attn", "quantization_config"};

bool is_structural(std::string_view key) {
  if (std::ranges::find(kStructuralNames, key) != kStructuralNames.end()) return true;
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

std::string described(const UnreadKey& key) {
  return fmt::format("{} ({})", key.pointer.substr(1), key.value);
}

}  // namespace

KeyEffect effect_of_unread(std::string_view key, const nlohmann::json& value) {
  if (is_harmless(key) || is_off(key, value)) return KeyEffect::none;
  return is_structural(key) ? KeyEffect::structural : KeyEffect::unlikely;
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
