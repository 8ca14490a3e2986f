// The one exception type of headroom, and the settings that its messages quote. The library throws
// errors; only `main` catches them.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>

namespace headroom {

/// The kind of failure. Decides the exit status of the command line.
enum class ErrorCode {
  invalid_input,     ///< usage or a bad model description: exit status 2
  overflow,          ///< a figure exceeds 2^127 - 1: exit status 2
  missing_resource,  ///< no memory, or a file that cannot be read or written: exit status 3
  internal,          ///< a bug in headroom: exit status 4
};

/// An error with its cause, its place and its remedy.
class Error : public std::exception {
 public:
  /// `where` names a file and a JSON pointer inside it; `hint` is the remedy. Both may be empty.
  Error(ErrorCode code, std::string message, std::string where = {}, std::string hint = {});

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

  /// "where: message" on one line, for logs and tests.
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  std::string where_;
  std::string hint_;
  std::string text_;
};

/// Throws Error{invalid_input} without a place.
[[noreturn]] void throw_invalid_input(const std::string& message, const std::string& hint);

/// The exit status of the command line for this kind of error.
[[nodiscard]] int exit_status(ErrorCode code) noexcept;

/// A choice that a caller makes, such as a sequence length. The library quotes settings in its
/// errors by field name, "`seq_len`"; a front end restates them in its users' words, "--seq".
enum class Setting {
  phase,
  batch_size,
  seq_len,
  enc_seq_len,
  global_tokens,
  past_len,
  images,
  image_size,
  audio,
  audio_seconds,
  frames,
  dtype,
  attention,
  logits,
  latent,
  recompute,
  kernels,
  kv_dtype,
  kv_scales,
  kv_policy,
  kv_block,
  kv_capacity,
  kv_batched_tokens,
  kv_slots,
  kv_prefix_caching,
  kv_speculative_tokens,
  kv_drafter_layers,
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
