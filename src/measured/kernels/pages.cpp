#include "pages.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace headroom::measured {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kChunk = 32 * kHugePage;

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

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

}  // namespace

#if defined(__linux__)

std::byte* map_pages(std::size_t bytes) {
  // Enough to cut an aligned piece out of; what is left over at both ends goes back at once.
  const std::size_t wanted = rounded_up(bytes, 4096);
  const std::size_t slack = bytes >= kHugePage ? kHugePage : 0;
  void* const mapped = mmap(nullptr, wanted + slack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(mapped);
  if (slack == 0) return first;
  const std::size_t before =
      (kHugePage - reinterpret_cast<std::uintptr_t>(mapped) % kHugePage) % kHugePage;
  if (before > 0) munmap(first, before);
  if (slack > before) munmap(first + before + wanted, slack - before);
  // Only advice: without it the memory is as good, but slower.
  madvise(first + before, wanted, MADV_HUGEPAGE);
  return first + before;
}

void unmap_pages(std::byte* pages, std::size_t bytes) noexcept {
  munmap(pages, rounded_up(bytes, 4096));
}

#else

std::byte* map_pages(std::size_t bytes) {
  auto* const pages = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kHugePage}));
  std::fill_n(pages, bytes, std::byte{0});
  return pages;
}

void unmap_pages(std::byte* pages, std::size_t /*bytes*/) noexcept {
  ::operator delete (pages, std::align_val_t{kHugePage});
}

#endif

std::byte* take_from_pool(std::size_t bytes) { return pool().take(bytes); }

void give_to_pool(std::byte* memory, std::size_t bytes) noexcept {
  pool().give_back(memory, bytes);
}

}  // namespace headroom::measured
