// GGUF files built byte by byte, for tests of the reader. Sizes are row-major.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ggml_type.h"

namespace headroom::test {

/// The little-endian bytes of a number.
template <class Value>
[[nodiscard]] std::string bytes_of(Value value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

/// A length followed by the characters.
[[nodiscard]] std::string gguf_text(std::string_view text);

class GgufWriter {
 public:
  explicit GgufWriter(std::uint32_t version = 3) : version_(version) {}

  GgufWriter& add(std::string_view key, std::uint32_t value);
  GgufWriter& add(std::string_view key, float value);
  GgufWriter& add(std::string_view key, bool value);
  GgufWriter& add(std::string_view key, const char* value);
  GgufWriter& add(std::string_view key, const std::vector<std::uint32_t>& values);
  GgufWriter& add(std::string_view key, const std::vector<std::string>& values);
  /// Adds a value of arbitrary bytes with this type number.
  GgufWriter& add_raw(std::string_view key, std::uint32_t type, const std::string& bytes);

  /// Adds a tensor of zeros after the previous ones, aligned.
  GgufWriter& tensor(std::string_view name, std::vector<std::int64_t> shape,
                     checkpoint::GgmlType type = checkpoint::GgmlType::f32);
  /// Adds a tensor with these bytes, which must fit its shape and type.
  GgufWriter& tensor(std::string_view name, std::vector<std::int64_t> shape,
                     checkpoint::GgmlType type, const std::string& data);
  /// Adds an arbitrary tensor entry without data.
  GgufWriter& tensor_raw(std::string_view name, std::vector<std::uint64_t> sizes,
                         std::uint32_t type, std::uint64_t offset);

  /// The bytes of the whole file.
  [[nodiscard]] std::string str() const;

 private:
  static constexpr std::uint64_t kAlignment = 32;
  std::uint32_t version_;
  std::uint64_t keys_ = 0;
  std::uint64_t tensors_ = 0;
  std::string data_;
  std::string metadata_;
  std::string infos_;
};

/// Metadata of a Llama of two layers, 256 wide, with 4 query and 2 KV heads.
[[nodiscard]] GgufWriter small_llama_metadata();

}  // namespace headroom::test
