// GGUF files made byte by byte, for the tests of their reader. Sizes are given row-major.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ggml_type.h"

namespace headroom::test {

/// The bytes of a number as a little-endian file has them.
template <class Value>
[[nodiscard]] std::string bytes_of(Value value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

/// A length and the characters.
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
  /// A value of any bytes, with the number of its type.
  GgufWriter& add_raw(std::string_view key, std::uint32_t type, const std::string& bytes);

  /// A tensor of zeros behind the ones before it, aligned.
  GgufWriter& tensor(std::string_view name, std::vector<std::int64_t> shape,
                     checkpoint::GgmlType type = checkpoint::GgmlType::f32);
  /// A tensor with these bytes, which are those of its shape and type.
  GgufWriter& tensor(std::string_view name, std::vector<std::int64_t> shape,
                     checkpoint::GgmlType type, const std::string& data);
  /// A tensor that says whatever it likes; it brings no data.
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

}  // namespace headroom::test
