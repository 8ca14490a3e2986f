// Setting: a choice that a caller makes, such as a sequence length. The library quotes settings in
// its errors by field name, "`seq_len`"; a front end restates them in its users' words, "--seq".
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace headroom {

enum class Setting {
  phase,
  batch_size,
  seq_len,
  enc_seq_len,
  past_len,
  dtype,
  attention,
  recompute,
  kernels,
  kv_dtype,
  kv_scales,
  kv_policy,
  kv_block,
  kv_capacity,
  kv_batched_tokens,
  kv_slots,
  subject,
  weights,
  arithmetic,
  machine,
};

/// The field that holds the setting: "seq_len", "kv_cache.block".
[[nodiscard]] std::string_view name_of(Setting setting) noexcept;

/// The name in backticks, as errors quote it.
[[nodiscard]] std::string quoted(Setting setting);

/// `text` with every quoted setting replaced by `name(setting)`. Other text in backticks stays.
[[nodiscard]] std::string restate_settings(std::string_view text,
                                           const std::function<std::string(Setting)>& name);

}  // namespace headroom
