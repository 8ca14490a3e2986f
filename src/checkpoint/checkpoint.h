// The weights of a model: one safetensors file, or several with an index.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "safetensors.h"

namespace headroom::checkpoint {

/// All tensors of a model, mapped for as long as this lives. Moving it moves no data and leaves
/// pointers to its tensors valid.
class Checkpoint {
 public:
  /// Opens a .safetensors file, a model.safetensors.index.json with its shards beside it, or a
  /// folder that holds either; model.safetensors goes first. Throws Error{invalid_input} when there
  /// are no weights, when a file is not valid, or when index and shards do not name exactly the
  /// same tensors.
  explicit Checkpoint(const std::filesystem::path& path);

  /// Whether there are weights to open at `path`, valid or not.
  [[nodiscard]] static bool exists(const std::filesystem::path& path);

  /// The tensor of this name, or null.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;

  /// The names of all tensors, sorted.
  [[nodiscard]] std::vector<std::string> names() const;

  /// The file that holds the tensor; for a name that is not there, the file that would list it.
  [[nodiscard]] const std::string& location(std::string_view name) const;

 private:
  struct Entry {
    const StoredTensor* tensor = nullptr;
    std::size_t file = 0;  ///< index in files_
  };

  void open_shards(const std::filesystem::path& index);
  void add(SafetensorsFile file);

  std::string listing_;  ///< path of the index, or of the only file
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace headroom::checkpoint
