// The beginning of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace headroom::checkpoint {

/// The first bytes of a file, which hold its header. On a machine of 64 bits they are the whole
/// file, memory-mapped; the page for browsers reads no more of a file that may exceed its
/// addresses.
struct FileHead {
  std::span<const std::byte> bytes;
  std::uint64_t file_size = 0;  ///< of the whole file

  FileHead(std::span<const std::byte> head, std::uint64_t size) : bytes(head), file_size(size) {}
  /// A whole file.
  FileHead(std::span<const std::byte> whole)  // NOLINT(google-explicit-constructor)
      : FileHead(whole, whole.size()) {}

  [[nodiscard]] bool is_whole() const noexcept { return bytes.size() == file_size; }
};

/// Throws Error{missing_resource}: what is asked for lies beyond the bytes that were read.
[[noreturn]] void refuse_partial(const std::string& file);

}  // namespace headroom::checkpoint
