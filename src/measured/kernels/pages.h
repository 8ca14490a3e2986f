// Pages from the system, for what is large: they go back the moment they are freed, and come as
// huge pages where the system has them, since a weight stream touches too many small ones for the
// TLB.
#pragma once

#include <cstddef>

namespace headroom::measured {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Pages, zeroed unless a PageKeeper hands them out again, aligned to a huge one from that size on.
/// Throws std::bad_alloc.
[[nodiscard]] std::byte* map_pages(std::size_t bytes);
void unmap_pages(std::byte* pages, std::size_t bytes) noexcept;

/// While one lives, pages that are freed are kept for the next that ask for as many: where operands
/// come and go all the time, the system takes longer to make new ones than kernels do to read them.
class PageKeeper {
 public:
  PageKeeper();
  PageKeeper(const PageKeeper&) = delete;
  PageKeeper& operator=(const PageKeeper&) = delete;
  ~PageKeeper();
};

/// Room for weights, which come one after another and stay: they lie side by side, so that small
/// matrices share huge pages too. Memory goes back in chunks, when all of a chunk is freed.
[[nodiscard]] std::byte* take_from_pool(std::size_t bytes);
void give_to_pool(std::byte* memory, std::size_t bytes) noexcept;

}  // namespace headroom::measured
