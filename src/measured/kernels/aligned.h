// Vectors aligned to cache lines, for scratch memory and for weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "cache_line.h"
#include "pages.h"

namespace headroom::measured {

/// Takes small blocks from the heap, large ones as pages that return to the system when freed.
/// Otherwise temporary copies made while weights are packed would leave holes in the heap.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{kCacheLine};
  static constexpr std::size_t kMinMappedBytes = std::size_t{1} << 17;

  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>& /*other*/) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes >= kMinMappedBytes) return reinterpret_cast<T*>(map_pages(bytes));
    return static_cast<T*>(::operator new(bytes, kAlignment));
  }

  void deallocate(T* memory, std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(T);
    if (bytes >= kMinMappedBytes) return unmap_pages(reinterpret_cast<std::byte*>(memory), bytes);
    ::operator delete(memory, kAlignment);
  }

  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

/// Takes memory from the weight pool, for blocks that live as long as the model.
template <class T>
struct PoolAllocator {
  using value_type = T;

  PoolAllocator() = default;
  template <class U>
  explicit PoolAllocator(const PoolAllocator<U>& /*other*/) noexcept {}

  T* allocate(std::size_t count) { return reinterpret_cast<T*>(pool_allocate(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) noexcept {
    pool_deallocate(reinterpret_cast<std::byte*>(memory), count * sizeof(T));
  }

  friend bool operator==(const PoolAllocator&, const PoolAllocator&) { return true; }
};

template <class T>
using PooledVector = std::vector<T, PoolAllocator<T>>;

/// As PoolAllocator. Elements that a vector adds without a value are left as the memory is, so that
/// it touches no page before its owner writes it.
template <class T>
struct UnfilledAllocator : PoolAllocator<T> {
  template <class U>
  struct rebind {
    using other = UnfilledAllocator<U>;
  };

  UnfilledAllocator() = default;
  template <class U>
  explicit UnfilledAllocator(const UnfilledAllocator<U>& /*other*/) noexcept {}

  template <class U>
  void construct(U* element) noexcept {
    ::new (static_cast<void*>(element)) U;
  }
  template <class U, class... Values>
  void construct(U* element, Values&&... values) {
    ::new (static_cast<void*>(element)) U(std::forward<Values>(values)...);
  }
};

/// Packed weights, whose owner writes all elements once.
template <class T>
using UnfilledVector = std::vector<T, UnfilledAllocator<T>>;

}  // namespace headroom::measured
