// Memory-mapped files.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "file_head.h"
#include "mapping_guard.h"

namespace headroom::checkpoint {

/// A regular file, mapped read-only for its lifetime. If another program truncates it meanwhile,
/// the removed pages read as zeros: call `require_unchanged` before using what was read.
class MappedFile {
 public:
  /// Throws Error{missing_resource} if `path` cannot be opened or mapped, Error{invalid_input} if
  /// it is not a regular file.
  explicit MappedFile(const std::filesystem::path& path);

  /// All bytes of the file; moving this object does not move them.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  [[nodiscard]] FileHead head() const noexcept;

  /// Throws Error{invalid_input} if the file was written or truncated after it was opened. A file
  /// that was replaced under its name, or removed, is still whole here.
  void require_unchanged() const;

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* pages) const noexcept;
  };

  std::filesystem::path path_;
  struct stat opened_ {};
  std::unique_ptr<std::byte[], Unmap> pages_;  ///< null for an empty file
  std::optional<MappingGuard> guard_;          ///< ends before the mapping
};

/// Takes the whole pages of `bytes`, part of a mapped file, out of the process's memory. Reading
/// them again takes them from the file.
void release_pages(std::span<const std::byte> bytes) noexcept;

}  // namespace headroom::checkpoint
