// Plain reading of memory: the reference for weight streams.
#pragma once

#include <omp.h>

#include <array>
#include <cstdint>

#include "aligned.h"

namespace headroom::bench {

/// Returns the sum of all values, computed by all threads; its cost is reading them. Each thread
/// reads four streams at once, since one alone does not saturate memory.
inline float read_all(const measured::AlignedVector<float>& values) {
  constexpr std::int64_t kStreams = 4;
  constexpr std::int64_t kWidth = 16;
  float total = 0;
#pragma omp parallel reduction(+ : total)
  {
    const std::int64_t parts = omp_get_num_threads() * kStreams;
    const std::int64_t length = static_cast<std::int64_t>(values.size()) / parts / kWidth * kWidth;
    const float* from = values.data() + omp_get_thread_num() * kStreams * length;
    std::array<float, kStreams * kWidth> sums{};
    for (std::int64_t i = 0; i < length; i += kWidth) {
      for (std::int64_t stream = 0; stream < kStreams; ++stream) {
        const float* at = from + stream * length + i;
        __builtin_prefetch(at + 256);
        float* to = sums.data() + stream * kWidth;
#pragma omp simd
        for (std::int64_t lane = 0; lane < kWidth; ++lane) to[lane] += at[lane];
      }
    }
    for (const float sum : sums) total += sum;
  }
  return total;
}

}  // namespace headroom::bench
