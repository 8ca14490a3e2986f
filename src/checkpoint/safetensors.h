// Weights in the safetensors format: https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "element_type.h"
#include "mapped_file.h"

namespace headroom::checkpoint {

/// One tensor of a file, row-major. `data` lie in the file's mapping, at any alignment; their size
/// is that of `shape` and `type`.
struct StoredTensor {
  std::string name;
  StoredType type = StoredType::float32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

/// "file: tensor", the place of an error about one tensor.
[[nodiscard]] std::string tensor_place(const std::string& file, std::string_view tensor);

/// The tensors in `content`, the bytes of a whole file, sorted by name; their data lie in
/// `content`. Nothing in it is trusted: throws Error{invalid_input} naming `file`, and the tensor
/// where there is one, unless the tensors fill the file exactly.
[[nodiscard]] std::vector<StoredTensor> parse_safetensors(std::span<const std::byte> content,
                                                          const std::string& file);

/// One safetensors file, mapped for as long as this lives. Moving it moves no data.
class SafetensorsFile {
 public:
  /// Throws Error{invalid_input} when the file cannot be read or is not valid.
  explicit SafetensorsFile(const std::filesystem::path& path);

  /// The tensor of this name, or null.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;

  /// All tensors, sorted by name.
  [[nodiscard]] std::span<const StoredTensor> tensors() const noexcept { return tensors_; }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  MappedFile content_;
  std::vector<StoredTensor> tensors_;
};

/// One index of the first dimension of `tensor`, which has at least two dimensions. Throws
/// Error{invalid_input} when the elements of one index do not fill whole bytes.
[[nodiscard]] StoredTensor slice(const StoredTensor& tensor, std::int64_t index);

/// Writes the tensor's values to `out`, which has room for exactly its elements. `where` names the
/// file and the tensor. Throws Error{invalid_input} when the tensor is not float32, float16 or
/// bfloat16, or when a value is not finite: no published weight is, and it would spread to every
/// result.
void copy_as_float32(const StoredTensor& tensor, std::span<float> out, const std::string& where);

}  // namespace headroom::checkpoint
