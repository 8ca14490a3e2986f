// Vectors whose memory is aligned to cache lines: for working memory, and for weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "pages.h"

namespace headroom::measured {

/// Small memory from the heap, large memory as pages of its own, which go back at once: what is
/// only held while weights are laid out would leave a heap full of holes.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kCacheLine{64};
  static constexpr std::size_t kLarge = std::size_t{1} << 17;

  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>& /*other*/) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes >= kLarge) return reinterpret_cast<T*>(map_pages(bytes));
    return static_cast<T*>(::operator new(bytes, kCacheLine));
  }

  void deallocate(T* memory, std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(T);
    if (bytes >= kLarge) return unmap_pages(reinterpret_cast<std::byte*>(memory), bytes);
    ::operator delete(memory, kCacheLine);
  }

  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

/// Memory that stays as long as the model does.
template <class T>
struct PoolAllocator {
  using value_type = T;

  PoolAllocator() = default;
  template <class U>
  explicit PoolAllocator(const PoolAllocator<U>& /*other*/) noexcept {}

  T* allocate(std::size_t count) { return reinterpret_cast<T*>(take_from_pool(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept {
    give_to_pool(reinterpret_cast<std::byte*>(memory), count * sizeof(T));
  }

  friend bool operator==(const PoolAllocator&, const PoolAllocator&) { return true; }
};

template <class T>
using PooledVector = std::vector<T, PoolAllocator<T>>;

}  // namespace headroom::measured
