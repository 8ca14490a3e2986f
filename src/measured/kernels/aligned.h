// Memory for weights: aligned to cache lines, and to huge pages where it is large, since a weight
// stream touches too many small pages for the TLB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace headroom::measured {

template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::size_t kCacheLine = 64;
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>& /*other*/) noexcept {}

  static std::align_val_t alignment(std::size_t count) {
    return std::align_val_t{count * sizeof(T) >= 2 * kHugePage ? kHugePage : kCacheLine};
  }

  T* allocate(std::size_t count) {
    void* memory = ::operator new(count * sizeof(T), alignment(count));
#if defined(__linux__)
    // Only advice: without it the memory is as good, but slower.
    if (count * sizeof(T) >= 2 * kHugePage) madvise(memory, count * sizeof(T), MADV_HUGEPAGE);
#endif
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, std::size_t count) noexcept {
    ::operator delete(memory, alignment(count));
  }

  friend bool operator==(const AlignedAllocator&, const AlignedAllocator&) { return true; }
};

template <class T>
using AlignedVector = std::vector<T, AlignedAllocator<T>>;

}  // namespace headroom::measured
