// Vectors of float32 as wide as the machine's registers, through the vector extensions of GCC and
// Clang. Arithmetic and comparisons are the built-in operators; `a * b + c` becomes a fused
// multiply–add if the machine has one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "cache_line.h"

namespace headroom::measured::simd {

// The width is part of every name, so that files compiled for different machines do not mix.
#if defined(__AVX512F__)
inline namespace wide64 {
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline namespace wide32 {
inline constexpr int kVectorBytes = 32;
#else
inline namespace wide16 {
inline constexpr int kVectorBytes = 16;
#endif

/// Floats in one vector.
inline constexpr std::int64_t kLanes = kVectorBytes / 4;

using Floats [[gnu::vector_size(kVectorBytes)]] = float;
using Ints [[gnu::vector_size(kVectorBytes)]] = std::int32_t;
using Words [[gnu::vector_size(kVectorBytes)]] = std::uint32_t;
using Halves [[gnu::vector_size(kVectorBytes / 2)]] = std::uint16_t;

/// Unaligned load.
inline Floats load(const float* from) {
  Floats value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline void store(float* to, Floats value) { std::memcpy(to, &value, sizeof value); }

/// Prefetches the cache line of an element to read or write.
[[gnu::always_inline]] inline void prefetch_to_read(const float* at) { __builtin_prefetch(at); }
[[gnu::always_inline]] inline void prefetch_to_write(const float* at) { __builtin_prefetch(at, 1); }

/// Prefetches the cache lines of `count` floats to read or write. Always inlined: GCC takes a
/// function that only prefetches for one without effect and drops its calls.
[[gnu::always_inline]] inline void prefetch_to_read(const float* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kCacheLineFloats) prefetch_to_read(from + i);
  prefetch_to_read(from + count - 1);  // one line more if the first is unaligned
}
[[gnu::always_inline]] inline void prefetch_to_write(const float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kCacheLineFloats) prefetch_to_write(to + i);
  prefetch_to_write(to + count - 1);
}

/// Loads the first `count` lanes; the others are zero.
inline Floats load_first(const float* from, std::int64_t count) {
  Floats value = {};
  std::memcpy(&value, from, static_cast<std::size_t>(count) * sizeof(float));
  return value;
}

inline void store_first(float* to, Floats value, std::int64_t count) {
  std::memcpy(to, &value, static_cast<std::size_t>(count) * sizeof(float));
}

/// bfloat16 is the upper half of a float32.
inline Floats load(const std::uint16_t* from) {
  Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  return std::bit_cast<Floats>(__builtin_convertvector(halves, Words) << 16);
}

/// Subtracting zero is exact for every value, so that compilers drop it; adding zero is not.
inline Floats broadcast(float value) { return value - Floats{}; }

/// Returns the second operand if either is NaN.
inline Floats max(Floats a, Floats b) { return a > b ? a : b; }
inline Floats min(Floats a, Floats b) { return a < b ? a : b; }

/// 0, 1, 2, … over the lanes.
inline Ints lane_indices() {
  Ints lanes = {};
  for (int i = 0; i < static_cast<int>(kLanes); ++i) lanes[i] = i;
  return lanes;
}

/// Calls body(0), body(1), … body(count - 1) with compile-time constants, so that arrays indexed by
/// them stay in registers.
template <std::size_t count, class Body>
[[gnu::always_inline]] inline void unroll(const Body& body) {
  [&]<std::size_t... indices>(std::index_sequence<indices...>) __attribute__((always_inline)) {
    (body(std::integral_constant<std::size_t, indices>{}), ...);
  }
  (std::make_index_sequence<count>{});
}

namespace folding {

/// Rotates the lanes by `distance`.
template <std::int64_t distance, std::size_t... lanes>
inline Floats rotate_lanes(Floats value, std::index_sequence<lanes...>) {
  return __builtin_shufflevector(value, value, (static_cast<int>(lanes) + distance) % kLanes...);
}

/// Combines all lanes into one, by halves.
template <std::int64_t half = kLanes / 2, class Combine>
inline float fold(Floats value, const Combine& combine) {
  const Floats other = rotate_lanes<half>(value, std::make_index_sequence<kLanes>{});
  const Floats combined = combine(value, other);
  if constexpr (half == 1) {
    return combined[0];
  } else {
    return fold<half / 2>(combined, combine);
  }
}

}  // namespace folding

inline float sum(Floats value) {
  return folding::fold(value, [](Floats a, Floats b) { return a + b; });
}

inline float largest(Floats value) {
  return folding::fold(value, [](Floats a, Floats b) { return max(a, b); });
}

}  // namespace

}  // namespace headroom::measured::simd
