// Mapped files that another program truncates: reading a removed page raises SIGBUS.
// Internal to src/checkpoint.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace headroom::checkpoint {

/// Guards a mapping against the removal of its pages. A handler of SIGBUS, installed with the first
/// guard, maps zeros in place of the removed pages and marks the mapping; signals for other
/// addresses go to the handler before it. Threads may read meanwhile. Only 4096 mappings are
/// guarded at once, more than any published model has files.
class MappingGuard {
 public:
  /// `pages` begin at a page.
  explicit MappingGuard(std::span<const std::byte> pages);
  MappingGuard(MappingGuard&& other) noexcept : slot_(std::exchange(other.slot_, kNoSlot)) {}
  MappingGuard& operator=(MappingGuard&& other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~MappingGuard();

  /// Returns whether a page was read that the file no longer has.
  [[nodiscard]] bool lost_pages() const noexcept;

 private:
  static constexpr std::size_t kNoSlot = static_cast<std::size_t>(-1);
  std::size_t slot_;
};

}  // namespace headroom::checkpoint
