// The files of a model as they lie on disk: whichever format, one file or several, headers only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "gguf.h"
#include "tensor_table.h"

namespace headroom::checkpoint {

/// All tensors of a model, mapped for as long as this lives. Only headers are read, so that a model
/// of any size takes no longer than its list of tensors does.
class ModelFiles {
 public:
  /// Opens a .safetensors file, an index.json with its shards beside it, a folder that holds
  /// either or a single GGUF file, or a GGUF file with the others of its split. Throws
  /// Error{invalid_input} when there are no weights, when a file is not valid, or when index and
  /// files do not name exactly the same tensors.
  explicit ModelFiles(const std::filesystem::path& path);

  [[nodiscard]] const TensorTable& tensors() const noexcept { return tensors_; }
  [[nodiscard]] const std::vector<std::string>& paths() const noexcept { return paths_; }
  /// The tensor's bytes in the file.
  [[nodiscard]] std::span<const std::byte> data(const TensorInfo& tensor) const;

  /// The GGUF files, in the order of the split; none of another format.
  [[nodiscard]] const std::vector<GgufFile>& gguf() const noexcept { return gguf_; }
  /// Whether this is one file of several, and the others were not asked for.
  [[nodiscard]] bool is_part() const noexcept { return is_part_; }
  /// Bytes of the longest header.
  [[nodiscard]] std::uint64_t longest_header_bytes() const noexcept { return longest_header_; }

 private:
  void open_safetensors(const std::filesystem::path& file);
  void open_shards(const std::filesystem::path& index);
  void open_gguf(const std::filesystem::path& file);
  void add_gguf(GgufFile file);

  TensorTable tensors_;
  std::vector<std::string> paths_;
  std::vector<MappedFile> safetensors_;
  std::vector<GgufFile> gguf_;
  std::vector<std::uint64_t> data_begins_;  ///< by file
  std::deque<std::string> texts_;           ///< names that were escaped
  std::uint64_t longest_header_ = 0;
  bool is_part_ = false;
};

}  // namespace headroom::checkpoint
