// Bandwidth of plain reading: the best of several sums over an array far larger than the caches, in
// the same kind of pages as weights. Prints one JSON object. compare.py has the command that
// compiles it.
//   usage: read_bandwidth [THREADS [MB [RUNS]]]
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../plain_read.h"

namespace {

/// Keeps a result alive, so that the compiler cannot drop its computation.
volatile float g_sink = 0;

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
    g_sink = headroom::bench::read_all(values);
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
