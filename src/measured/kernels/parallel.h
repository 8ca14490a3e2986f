// How kernels share work among OpenMP's threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace headroom::measured {

/// Elements below which waking another thread costs more than it brings.
inline constexpr std::int64_t kSerialElements = 16384;

/// Indices [begin, end).
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// Part `index` of [0, total) in `parts` nearly equal parts whose bounds are multiples of
/// `granule`. Late parts may be empty.
inline Range share(std::int64_t total, std::int64_t parts, std::int64_t index,
                   std::int64_t granule = 1) {
  const std::int64_t granules = (total + granule - 1) / granule;
  return {std::min(total, granules * index / parts * granule),
          std::min(total, granules * (index + 1) / parts * granule)};
}

/// The calling thread's share of [0, total); call it in a parallel region.
inline Range own_share(std::int64_t total, std::int64_t granule = 1) {
  return share(total, omp_get_num_threads(), omp_get_thread_num(), granule);
}

}  // namespace headroom::measured
