// Size of a cache line.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headroom::measured {

inline constexpr std::size_t kCacheLine = 64;  ///< bytes
inline constexpr std::int64_t kCacheLineFloats = 16;

}  // namespace headroom::measured
