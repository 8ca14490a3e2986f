#include "bandwidth.h"

#include <algorithm>
#include <array>

#if defined(__CLFLUSHOPT__)
#include <immintrin.h>
#endif

#include "cache_line.h"
#include "parallel.h"
#include "simd.h"

namespace headroom::measured {
namespace {

/// Independent sums, so that no addition waits for another.
constexpr std::size_t kSums = 8;
constexpr std::int64_t kStep = static_cast<std::int64_t>(kSums) * simd::kLanes;

float read(const float* values, Range range) {
  std::array<simd::Floats, kSums> sums = {};
  for (std::int64_t i = range.begin; i + kStep <= range.end; i += kStep) {
    simd::unroll<kSums>([&](auto s) {
      sums[s] += simd::load(values + i + static_cast<std::int64_t>(s) * simd::kLanes);
    });
  }
  for (std::size_t s = 1; s < kSums; ++s) sums[0] += sums[s];
  return simd::sum(sums[0]);
}

}  // namespace

float read_all(const float* values, std::int64_t count) {
  float total = 0;
#pragma omp parallel reduction(+ : total) if (count >= kSerialElements)
  total += read(values, thread_range(count, kStep));
  return total;
}

void write_all(float* values, std::int64_t count, float value) {
#pragma omp parallel if (count >= kSerialElements)
  {
    const Range range = thread_range(count, kStep);
    std::fill_n(values + range.begin, range.size(), value);
  }
}

#if defined(__CLFLUSHOPT__)

bool flush_lines(const float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; i += kCacheLineFloats) {
    _mm_clflushopt(const_cast<float*>(values + i));  // flushing does not write
  }
  _mm_sfence();
  return true;
}

#else

bool flush_lines(const float* /*values*/, std::int64_t /*count*/) { return false; }

#endif

}  // namespace headroom::measured
