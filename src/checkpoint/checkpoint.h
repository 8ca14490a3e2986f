// A model's weights: one safetensors file, or several with an index.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors.h"

namespace headroom::checkpoint {

/// Names that transformers and diffusers give a model's weights, in the order of precedence.
inline constexpr std::array kSafetensorsListings{
    "model.safetensors", "model.safetensors.index.json", "diffusion_pytorch_model.safetensors",
    "diffusion_pytorch_model.safetensors.index.json"};

/// The first of these files in `folder`; empty if it has none.
[[nodiscard]] std::optional<std::filesystem::path> safetensors_in(
    const std::filesystem::path& folder);

/// All tensors of a model, memory-mapped for its lifetime. Moving it copies no data and keeps
/// pointers to its tensors valid.
class Checkpoint {
 public:
  /// Opens a .safetensors file, a .safetensors.index.json with its shards in the same folder, or a
  /// folder with one of kSafetensorsListings. Throws Error{invalid_input} if
  /// there are no weights, a file is not valid, or index and shards name different tensors.
  explicit Checkpoint(const std::filesystem::path& path);

  /// Returns true if `path` has weights to open, valid or not.
  [[nodiscard]] static bool exists(const std::filesystem::path& path);

  /// The tensor named `name`, or null.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;

  /// The names of all tensors, sorted.
  [[nodiscard]] std::vector<std::string> names() const;

  /// The file that stores the tensor; for a missing tensor, the file that would list it.
  [[nodiscard]] const std::string& location(std::string_view name) const;

  /// As MappedFile::require_unchanged, of every file.
  void require_unchanged() const;

 private:
  struct Entry {
    const StoredTensor* tensor = nullptr;
    std::size_t file = 0;  ///< index in files_
  };

  void open_shards(const std::filesystem::path& index);
  void add(SafetensorsFile file);

  std::string listing_;  ///< path of the index or of the single file
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace headroom::checkpoint
