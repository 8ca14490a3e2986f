// Large memory as pages from the system. They return to it when freed, and are huge pages where
// available: a stream of weights touches too many 4 KiB pages for the TLB.
#pragma once

#include <cstddef>
#include <span>

namespace headroom::measured {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Maps pages, aligned to huge pages from that size on. They are zeroed unless a PageKeeper returns
/// cached ones. Throws std::bad_alloc.
[[nodiscard]] std::byte* map_pages(std::size_t bytes);
void unmap_pages(std::byte* pages, std::size_t bytes) noexcept;

/// Returns the whole pages of `memory`, which is the process's own and not read again before it is
/// written, to the system, without freeing the addresses.
void discard_pages(std::span<const std::byte> memory) noexcept;

/// While a PageKeeper lives, freed pages are cached for later requests of similar size. Calibration
/// frees and requests operands all the time, and new pages cost more than the kernels that read
/// them.
class PageKeeper {
 public:
  PageKeeper();
  PageKeeper(const PageKeeper&) = delete;
  PageKeeper& operator=(const PageKeeper&) = delete;
  ~PageKeeper();
};

/// Memory for weights, which are allocated one after another and stay. The pool packs them densely,
/// so small matrices share huge pages. A chunk returns to the system when all of it is freed.
[[nodiscard]] std::byte* pool_allocate(std::size_t bytes);
void pool_deallocate(std::byte* memory, std::size_t bytes) noexcept;

}  // namespace headroom::measured
