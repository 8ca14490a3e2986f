// The bandwidth of plain reading: the best of several sums over an array far larger than the
// caches, in memory like that of the weights. Prints one JSON object.
//   g++ -std=c++20 -O3 -march=native -fopenmp -I src/measured/kernels read_bandwidth.cpp
//   usage: read_bandwidth [THREADS [MB [RUNS]]]
#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "aligned.h"

namespace {

/// Keeps a result alive, so that the compiler cannot drop what made it.
volatile float g_sink = 0;

/// Each thread reads four streams at once, since one alone does not fill the memory's lines.
float read_all(const headroom::measured::AlignedVector<float>& values) {
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

}  // namespace

int main(int count, char** arguments) {
  const auto argument = [&](int at, int otherwise) {
    return count > at ? std::max(1, std::atoi(arguments[at])) : otherwise;
  };
  const int threads = argument(1, 1);
  const int megabytes = argument(2, 512);
  const int runs = argument(3, 8);
  omp_set_num_threads(threads);
  const headroom::measured::AlignedVector<float> values(
      static_cast<std::size_t>(megabytes) * 250'000, 1.0F);
  const double bytes = static_cast<double>(values.size()) * sizeof(float);
  std::vector<double> seconds;
  for (int run = 0; run <= runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    g_sink = read_all(values);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (run > 0) seconds.push_back(taken.count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf(
      "{\"threads\": %d, \"bytes\": %.0f, \"median_bytes_per_s\": %.0f, \"best_bytes_per_s\": "
      "%.0f}\n",
      threads, bytes, bytes / seconds[seconds.size() / 2], bytes / seconds.front());
  return 0;
}
