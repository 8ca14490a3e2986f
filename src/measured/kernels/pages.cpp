#include "pages.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace headroom::measured {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kChunk = 32 * kHugePage;

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// What is mapped for so many: one of a few sizes, so that pages that are kept fit again. What is
/// never touched takes no memory.
std::size_t mapped_bytes(std::size_t bytes) {
  return rounded_up(bytes, std::max(kPage, std::bit_floor(bytes) / 8));
}

#if defined(__linux__)

std::byte* system_pages(std::size_t bytes) {
  // Enough to cut an aligned piece out of; what is left over at both ends goes back at once.
  const std::size_t slack = bytes >= kHugePage ? kHugePage : 0;
  void* const mapped = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(mapped);
  if (slack == 0) return first;
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(mapped) % kHugePage) % kHugePage;
  if (before > 0) munmap(first, before);
  if (slack > before) munmap(first + before + bytes, slack - before);
  // Only advice: without it the memory is as good, but slower.
  madvise(first + before, bytes, MADV_HUGEPAGE);
  return first + before;
}

void release_pages(std::byte* pages, std::size_t bytes) noexcept { munmap(pages, bytes); }

#else

std::byte* system_pages(std::size_t bytes) {
  auto* const pages = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kHugePage}));
  std::fill_n(pages, bytes, std::byte{0});
  return pages;
}

void release_pages(std::byte* pages, std::size_t /*bytes*/) noexcept {
  ::operator delete (pages, std::align_val_t{kHugePage});
}

#endif

/// A piece of address space that is handed out from its beginning.
struct Chunk {
  std::byte* begin = nullptr;
  std::size_t size = 0;
  std::size_t used = 0;
  std::size_t held = 0;  ///< bytes that are not given back yet

  [[nodiscard]] bool contains(const std::byte* memory) const {
    return memory >= begin && memory < begin + size;
  }
};

class Pool {
 public:
  std::byte* take(std::size_t bytes) {
    bytes = rounded_up(bytes, kCacheLine);
    const std::lock_guard lock(mutex_);
    auto room = std::ranges::find_if(
        chunks_, [&](const Chunk& one) { return one.size - one.used >= bytes; });
    if (room == chunks_.end()) {
      const std::size_t size = std::max(kChunk, rounded_up(bytes, kHugePage));
      room = chunks_.insert(room, {map_pages(size), size, 0, 0});
    }
    Chunk& chunk = *room;
    std::byte* const memory = chunk.begin + chunk.used;
    chunk.used += bytes;
    chunk.held += bytes;
    return memory;
  }

  void give_back(std::byte* memory, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    const auto chunk =
        std::ranges::find_if(chunks_, [&](const Chunk& one) { return one.contains(memory); });
    chunk->held -= rounded_up(bytes, kCacheLine);
    if (chunk->held > 0) return;
    unmap_pages(chunk->begin, chunk->size);
    chunks_.erase(chunk);
  }

 private:
  std::mutex mutex_;
  std::vector<Chunk> chunks_;
};

Pool& pool() {
  static Pool pool;
  return pool;
}

/// Freed pages, the oldest first.
class Kept {
 public:
  void keep_more() {
    const std::lock_guard lock(mutex_);
    ++keepers_;
  }

  void keep_less() {
    const std::lock_guard lock(mutex_);
    if (--keepers_ == 0) let_go(0);
  }

  /// The fewest kept pages that are enough and no waste; null where there are none.
  std::byte* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto best = pages_.end();
    for (auto one = pages_.begin(); one != pages_.end(); ++one) {
      const bool fits = one->bytes >= bytes && one->bytes <= kMostWaste * bytes;
      if (fits && (best == pages_.end() || one->bytes < best->bytes)) best = one;
    }
    if (best == pages_.end()) return nullptr;
    const Pages taken = *best;
    bytes_ -= taken.bytes;
    pages_.erase(best);
    if (taken.bytes > bytes) larger_.push_back(taken);
    return taken.begin;
  }

  /// Keeps pages, or lets them go, that were asked for as `bytes`.
  void give(std::byte* begin, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const Pages pages = as_mapped(begin, bytes);
    if (keepers_ == 0 || pages.bytes > kMost) return release_pages(pages.begin, pages.bytes);
    let_go(kMost - pages.bytes);
    pages_.push_back(pages);
    bytes_ += pages.bytes;
  }

 private:
  static constexpr std::size_t kMost = std::size_t{768} << 20;
  static constexpr std::size_t kMostWaste = 4;

  struct Pages {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
  };

  /// The whole of pages that may be more than were asked for.
  Pages as_mapped(std::byte* begin, std::size_t bytes) {
    const auto found = std::ranges::find(larger_, begin, &Pages::begin);
    if (found == larger_.end()) return {begin, bytes};
    const Pages pages = *found;
    larger_.erase(found);
    return pages;
  }

  /// Gives the oldest back until no more than `most` bytes are left.
  void let_go(std::size_t most) {
    while (bytes_ > most) {
      release_pages(pages_.front().begin, pages_.front().bytes);
      bytes_ -= pages_.front().bytes;
      pages_.pop_front();
    }
  }

  std::mutex mutex_;
  std::deque<Pages> pages_;
  std::size_t bytes_ = 0;
  std::vector<Pages> larger_;  ///< handed out for fewer than they are
  int keepers_ = 0;
};

Kept& kept() {
  static Kept kept;
  return kept;
}

}  // namespace

std::byte* map_pages(std::size_t bytes) {
  bytes = mapped_bytes(bytes);
  std::byte* const pages = kept().take(bytes);
  return pages != nullptr ? pages : system_pages(bytes);
}

void unmap_pages(std::byte* pages, std::size_t bytes) noexcept {
  kept().give(pages, mapped_bytes(bytes));
}

PageKeeper::PageKeeper() { kept().keep_more(); }
PageKeeper::~PageKeeper() { kept().keep_less(); }

std::byte* take_from_pool(std::size_t bytes) { return pool().take(bytes); }

void give_to_pool(std::byte* memory, std::size_t bytes) noexcept {
  pool().give_back(memory, bytes);
}

}  // namespace headroom::measured
