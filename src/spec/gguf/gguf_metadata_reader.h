// GGUF metadata values as JSON, with errors that name file and key.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gguf.h"

namespace headroom::detail {

class GgufMetadataReader {
 public:
  /// `content` must outlive this; `file` is its name in errors.
  GgufMetadataReader(const checkpoint::GgufContent& content, std::string file);

  /// general.architecture, such as "llama".
  [[nodiscard]] const std::string& architecture() const noexcept { return architecture_; }
  /// The value of "ARCHITECTURE.key"; empty if absent. A per-layer list of equal values gives that
  /// value. Throws if they differ.
  [[nodiscard]] std::optional<nlohmann::json> value(std::string_view key) const;
  /// The value as a string; empty if absent or of another type.
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  /// The value as an integer of at least 0; empty if absent.
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view key) const;
  /// One boolean per layer; empty if the key holds no list. Throws if its values are no booleans,
  /// or too few.
  [[nodiscard]] std::optional<std::vector<bool>> flags_by_layer(std::string_view key) const;
  /// A list of counts of any length; empty if the key holds none.
  [[nodiscard]] std::vector<std::int64_t> counts(std::string_view key) const;
  /// One number per layer, infinite ones too; empty if the key holds no list.
  [[nodiscard]] std::optional<std::vector<double>> numbers_by_layer(std::string_view key) const;
  /// The value as a number; empty if absent or of another type.
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  /// block_count, which may be absent: 0. Throws if no model has as many, before any list of them.
  [[nodiscard]] std::int64_t blocks() const;
  /// Blocks without those that predict further tokens, which come last. Throws if they exceed them.
  [[nodiscard]] std::int64_t layers() const;
  /// A count per block; a single count holds for each. Throws if absent.
  [[nodiscard]] std::vector<std::int64_t> counts_by_layer(std::string_view key) const;
  /// Returns whether the file has "ARCHITECTURE.key", of any type.
  [[nodiscard]] bool is_present(std::string_view key) const;
  /// True for a positive count and for a flag that is true.
  [[nodiscard]] bool is_set(std::string_view key) const;
  [[nodiscard]] bool has_tensor(std::string_view name) const;
  /// Rows of a matrix; empty if absent.
  [[nodiscard]] std::optional<std::int64_t> rows(std::string_view tensor) const;
  /// Rows of the token embedding table.
  [[nodiscard]] std::int64_t vocab_size() const;

  /// Throws Error{invalid_input} at "ARCHITECTURE.key".
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;

 private:
  [[nodiscard]] std::string place(std::string_view key) const;

  [[nodiscard]] const checkpoint::GgufValue* find(std::string_view key) const;

  const checkpoint::GgufContent& content_;
  /// By name; of two tensors of one name the first.
  std::unordered_map<std::string_view, const checkpoint::GgufTensor*> tensors_;
  std::string file_;
  std::string architecture_;
};

}  // namespace headroom::detail
