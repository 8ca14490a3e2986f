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
#include "file_head.h"
#include "mapped_file.h"

namespace headroom::checkpoint {

/// One tensor of a file, row-major. `data` lie in the mapped file, at any alignment; their size
/// follows from `shape` and `type`.
struct StoredTensor {
  std::string name;
  StoredType type = StoredType::float32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

/// "file: tensor", the place in errors about one tensor.
[[nodiscard]] std::string tensor_place(const std::string& file, std::string_view tensor);

/// Parses the file that begins with `content`: its tensors sorted by name, with data in `content`
/// if that is whole, else without. Nothing in it is trusted: throws Error{invalid_input} naming
/// `file`, and the tensor if there is one, unless the tensors fill the file exactly.
[[nodiscard]] std::vector<StoredTensor> parse_safetensors(const FileHead& content,
                                                          const std::string& file);

/// One safetensors file, memory-mapped for its lifetime. Moving it copies no data.
class SafetensorsFile {
 public:
  /// Throws Error{invalid_input} if the file cannot be read or is not valid.
  explicit SafetensorsFile(const std::filesystem::path& path);

  /// The tensor named `name`, or null.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;

  /// All tensors, sorted by name.
  [[nodiscard]] std::span<const StoredTensor> tensors() const noexcept { return tensors_; }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// As MappedFile::require_unchanged.
  void require_unchanged() const { content_.require_unchanged(); }

 private:
  std::string path_;
  MappedFile content_;
  std::vector<StoredTensor> tensors_;
};

/// Index `index` of the first dimension of `tensor`, which has at least two dimensions. Throws
/// Error{invalid_input} if the elements of one index do not fill whole bytes.
[[nodiscard]] StoredTensor slice(const StoredTensor& tensor, std::int64_t index);

/// Writes the tensor's values to `out`, whose size must match. `where` names the file and the
/// tensor. Throws Error{invalid_input} if the tensor is not float32, float16 or bfloat16, or if a
/// value is not finite: published weights are finite, and one such value would spread to every
/// result.
void copy_as_float32(const StoredTensor& tensor, std::span<float> out, const std::string& where);

}  // namespace headroom::checkpoint
