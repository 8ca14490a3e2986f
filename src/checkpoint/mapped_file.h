// Memory-mapped files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace headroom::checkpoint {

/// A regular file, mapped read-only for its lifetime. The file must not shrink meanwhile: reading a
/// removed page ends the process.
class MappedFile {
 public:
  /// Throws Error{invalid_input} if `path` cannot be opened or is not a regular file,
  /// Error{missing_resource} if it cannot be mapped.
  explicit MappedFile(const std::filesystem::path& path);

  /// All bytes of the file; moving this object does not move them.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* pages) const noexcept;
  };

  std::unique_ptr<std::byte[], Unmap> pages_;  ///< null for an empty file
};

}  // namespace headroom::checkpoint
