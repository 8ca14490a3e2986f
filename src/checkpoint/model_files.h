// A model's files on disk, in any format, one or several; headers only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf.h"
#include "tensor_table.h"

namespace headroom::checkpoint {

/// The name of one file of a split, such as model-00002-of-00005.gguf.
struct PartName {
  std::string before;  ///< "model-"
  std::string number;
  std::string after;  ///< "-of-00005.gguf"
};

/// Empty if `file` is not named as one of several.
[[nodiscard]] std::optional<PartName> part_name(const std::string& file);

/// False for GGUF files that hold the tower of a multimodal model, or statistics for quantisation.
[[nodiscard]] bool is_gguf_model(std::string_view file);

/// The one GGUF model in `folder`, or the first file of its split; empty without one. Throws
/// Error{invalid_input} for several.
[[nodiscard]] std::optional<std::filesystem::path> gguf_in(const std::filesystem::path& folder);

/// All tensors of a model, memory-mapped for its lifetime. Reads headers only, so that the time
/// depends on the number of tensors, not on their size.
class ModelFiles {
 public:
  /// Opens a .safetensors file, an index.json with its shards in the same folder, a folder with
  /// either or with a single GGUF file, or a GGUF file with the rest of its split. Throws
  /// Error{invalid_input} if there are no weights, a file is not valid, or index and files name
  /// different tensors.
  explicit ModelFiles(const std::filesystem::path& path);

  /// With tensors blk.N.KEY for the numbers of each layer that GGUF lists as metadata (xIELU's).
  [[nodiscard]] const TensorTable& tensors() const noexcept { return tensors_; }
  [[nodiscard]] const std::vector<std::string>& paths() const noexcept { return paths_; }
  /// The tensor's bytes in the file.
  [[nodiscard]] std::span<const std::byte> data(const TensorInfo& tensor) const;
  /// Throws Error{invalid_input} if a file was changed since it was opened: what was read is not to
  /// be used.
  void require_unchanged() const;

  /// The GGUF files in split order; empty for other formats.
  [[nodiscard]] const std::vector<GgufFile>& gguf() const noexcept { return gguf_; }
  /// Returns true if this is one file of several and the others were not requested.
  [[nodiscard]] bool is_part() const noexcept { return is_part_; }
  /// Bytes of the longest header.
  [[nodiscard]] std::uint64_t longest_header_bytes() const noexcept { return longest_header_; }

 private:
  void open_safetensors(const std::filesystem::path& file);
  void open_shards(const std::filesystem::path& index);
  void open_gguf(const std::filesystem::path& file);
  void add_gguf(GgufFile file);
  void add_listed_constants(const GgufFile& file);

  TensorTable tensors_;
  std::vector<std::string> paths_;
  std::vector<MappedFile> safetensors_;
  std::vector<GgufFile> gguf_;
  std::vector<std::uint64_t> data_begins_;  ///< by file
  std::deque<std::string> texts_;           ///< names that no file has as text
  std::uint64_t longest_header_ = 0;
  bool is_part_ = false;
};

}  // namespace headroom::checkpoint
