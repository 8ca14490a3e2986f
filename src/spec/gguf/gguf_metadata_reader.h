// Values of a GGUF file's metadata as JSON, with errors that name file and key.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf.h"

namespace headroom::detail {

class GgufMetadataReader {
 public:
  /// `content` must outlive this; `file` is the name of what it was read from.
  GgufMetadataReader(const checkpoint::GgufContent& content, std::string file);

  /// "llama": general.architecture.
  [[nodiscard]] const std::string& architecture() const noexcept { return architecture_; }
  /// The value of "ARCHITECTURE.key"; empty when it is not there. A list with one value for each
  /// layer that is the same in all is that value; one that differs is an error.
  [[nodiscard]] std::optional<nlohmann::json> value(std::string_view key) const;
  /// The value as text; empty when it is not there or not a text.
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  /// The value as a whole number of at least 0.
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view key) const;
  /// One truth value per layer; empty when the key holds no such list.
  [[nodiscard]] std::optional<std::vector<bool>> flags_by_layer(std::string_view key) const;
  [[nodiscard]] bool has_tensor(std::string_view name) const;
  /// Rows of the table of words.
  [[nodiscard]] std::int64_t vocab_size() const;

  /// Throws Error{invalid_input} at "ARCHITECTURE.key".
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;

 private:
  [[nodiscard]] std::string place(std::string_view key) const;

  [[nodiscard]] const checkpoint::GgufValue* find(std::string_view key) const;

  const checkpoint::GgufContent& content_;
  std::string file_;
  std::string architecture_;
};

}  // namespace headroom::detail
