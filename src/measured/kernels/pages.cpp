#include "pages.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <vector>

#include "cache_line.h"
#include "headroom/expr.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace headroom::measured {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kChunk = 32 * kHugePage;

/// Size of the mapping for a request: one of a few sizes, so that cached pages fit again. Untouched
/// pages use no memory.
std::size_t mapped_bytes(std::size_t bytes) {
  return round_up(bytes, std::max(kPage, std::bit_floor(bytes) / 8));
}

#if defined(__linux__)

std::byte* system_pages(std::size_t bytes) {
  // Map enough for an aligned range; unmap the rest at both ends at once.
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
  // Advice only: without huge pages the memory works, but slower.
  madvise(first + before, bytes, MADV_HUGEPAGE);
  return first + before;
}

void release_pages(std::byte* pages, std::size_t bytes) noexcept { munmap(pages, bytes); }

void drop_contents(std::byte* pages, std::size_t bytes) noexcept {
  madvise(pages, bytes, MADV_DONTNEED);
}

#else

std::byte* system_pages(std::size_t bytes) {
  auto* const pages = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kHugePage}));
  std::fill_n(pages, bytes, std::byte{0});
  return pages;
}

void release_pages(std::byte* pages, std::size_t /*bytes*/) noexcept {
  ::operator delete (pages, std::align_val_t{kHugePage});
}

void drop_contents(std::byte* /*pages*/, std::size_t /*bytes*/) noexcept {}

#endif

/// An address range, handed out from its start.
struct Chunk {
  std::byte* begin = nullptr;
  std::size_t size = 0;
  std::size_t used = 0;
  std::size_t live = 0;  ///< bytes in use

  [[nodiscard]] bool contains(const std::byte* memory) const {
    return memory >= begin && memory < begin + size;
  }
};

class Pool {
 public:
  std::byte* allocate(std::size_t bytes) {
    bytes = round_up(bytes, kCacheLine);
    const std::lock_guard lock(mutex_);
    auto room = std::ranges::find_if(
        chunks_, [&](const Chunk& one) { return one.size - one.used >= bytes; });
    if (room == chunks_.end()) {
      const std::size_t size = std::max(kChunk, round_up(bytes, kHugePage));
      room = chunks_.insert(room, {map_pages(size), size, 0, 0});
    }
    Chunk& chunk = *room;
    std::byte* const memory = chunk.begin + chunk.used;
    chunk.used += bytes;
    chunk.live += bytes;
    return memory;
  }

  void deallocate(std::byte* memory, std::size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    const auto chunk =
        std::ranges::find_if(chunks_, [&](const Chunk& one) { return one.contains(memory); });
    chunk->live -= round_up(bytes, kCacheLine);
    if (chunk->live > 0) return;
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

/// Cache of freed pages, oldest first.
class PageCache {
 public:
  void add_keeper() {
    const std::lock_guard lock(mutex_);
    ++keepers_;
  }

  void remove_keeper() {
    const std::lock_guard lock(mutex_);
    if (--keepers_ == 0) shrink_to(0);
  }

  /// Returns the smallest cached range that holds `bytes` without wasting too much; null if there
  /// is none.
  std::byte* take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto best = pages_.end();
    for (auto one = pages_.begin(); one != pages_.end(); ++one) {
      const bool fits = one->bytes >= bytes && one->bytes <= kMaxWaste * bytes;
      if (fits && (best == pages_.end() || one->bytes < best->bytes)) best = one;
    }
    if (best == pages_.end()) return nullptr;
    const Pages taken = *best;
    bytes_ -= taken.bytes;
    pages_.erase(best);
    if (taken.bytes > bytes) oversized_.push_back(taken);
    return taken.begin;
  }

  /// Caches or releases pages that were requested as `bytes`.
  void put(std::byte* begin, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const Pages pages = as_mapped(begin, bytes);
    if (keepers_ == 0 || pages.bytes > kCapacity) return release_pages(pages.begin, pages.bytes);
    shrink_to(kCapacity - pages.bytes);
    pages_.push_back(pages);
    bytes_ += pages.bytes;
  }

 private:
  static constexpr std::size_t kCapacity = std::size_t{768} << 20;
  static constexpr std::size_t kMaxWaste = 4;

  struct Pages {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
  };

  /// The whole mapping, which may be larger than the request.
  Pages as_mapped(std::byte* begin, std::size_t bytes) {
    const auto found = std::ranges::find(oversized_, begin, &Pages::begin);
    if (found == oversized_.end()) return {begin, bytes};
    const Pages pages = *found;
    oversized_.erase(found);
    return pages;
  }

  /// Releases the oldest pages until at most `max_bytes` are cached.
  void shrink_to(std::size_t max_bytes) {
    while (bytes_ > max_bytes) {
      release_pages(pages_.front().begin, pages_.front().bytes);
      bytes_ -= pages_.front().bytes;
      pages_.pop_front();
    }
  }

  std::mutex mutex_;
  std::deque<Pages> pages_;
  std::size_t bytes_ = 0;
  std::vector<Pages> oversized_;  ///< handed out for smaller requests
  int keepers_ = 0;
};

PageCache& page_cache() {
  static PageCache cache;
  return cache;
}

}  // namespace

std::byte* map_pages(std::size_t bytes) {
  bytes = mapped_bytes(bytes);
  std::byte* const pages = page_cache().take(bytes);
  return pages != nullptr ? pages : system_pages(bytes);
}

void unmap_pages(std::byte* pages, std::size_t bytes) noexcept {
  page_cache().put(pages, mapped_bytes(bytes));
}

void discard_pages(std::span<const std::byte> memory) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t before = round_up(begin, std::uintptr_t{kPage}) - begin;
  if (memory.size() < before + kPage) return;
  const std::size_t bytes = (memory.size() - before) / kPage * kPage;
  drop_contents(const_cast<std::byte*>(memory.data()) + before, bytes);
}

PageKeeper::PageKeeper() { page_cache().add_keeper(); }
PageKeeper::~PageKeeper() { page_cache().remove_keeper(); }

std::byte* pool_allocate(std::size_t bytes) { return pool().allocate(bytes); }

void pool_deallocate(std::byte* memory, std::size_t bytes) noexcept {
  pool().deallocate(memory, bytes);
}

}  // namespace headroom::measured
