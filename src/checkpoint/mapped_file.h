// A file's bytes in memory without reading them all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace headroom::checkpoint {

/// A regular file, mapped read-only for as long as this lives. The file must not shrink meanwhile:
/// reading pages that are gone ends the process.
class MappedFile {
 public:
  /// Throws Error{invalid_input} when `path` cannot be opened or is no regular file,
  /// Error{missing_resource} when it cannot be mapped.
  explicit MappedFile(const std::filesystem::path& path);

  /// All bytes of the file; they stay where they are when this is moved.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* pages) const noexcept;
  };

  std::unique_ptr<std::byte[], Unmap> pages_;  ///< none for an empty file
};

}  // namespace headroom::checkpoint
