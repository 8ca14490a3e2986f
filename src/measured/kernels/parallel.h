// Distribution of work over OpenMP's threads.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace headroom::measured {

/// Minimum number of elements for which a second thread pays.
inline constexpr std::int64_t kSerialElements = 16384;

/// Indices [begin, end).
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
};

/// Part `index` of [0, total), split into `parts` nearly equal parts with bounds that are multiples
/// of `granule`. The last parts may be empty.
inline Range partition(std::int64_t total, std::int64_t parts, std::int64_t index,
                       std::int64_t granule = 1) {
  // Runs in every kernel on every thread, so without the checks of ceil_div.
  const std::int64_t granules = (total + granule - 1) / granule;
  return {std::min(total, granules * index / parts * granule),
          std::min(total, granules * (index + 1) / parts * granule)};
}

/// The calling thread's part of [0, total); call it in a parallel region.
inline Range thread_range(std::int64_t total, std::int64_t granule = 1) {
  return partition(total, omp_get_num_threads(), omp_get_thread_num(), granule);
}

/// True if shares in multiples of `granule` leave threads idle for at most a sixteenth of the time.
inline bool is_balanced(std::int64_t total, std::int64_t granule, std::int64_t threads) {
  constexpr std::int64_t kMostIdle = 16;
  const std::int64_t granules = (total + granule - 1) / granule;
  const std::int64_t rounds = (granules + threads - 1) / threads;
  return (rounds * threads - granules) * kMostIdle <= granules;
}

}  // namespace headroom::measured
