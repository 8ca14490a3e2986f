// Reads a header of a million tensors: headroom_bench_inspect FILE writes it, reads it a few times,
// and prints the best time and the peak memory.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "headroom/headroom.h"
#include "support/many_tensors.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: headroom_bench_inspect FILE.safetensors\n");
    return 2;
  }
  constexpr int kRuns = 5;
  constexpr std::int64_t kTensors = 1'000'000;
  const std::filesystem::path path = argv[1];
  headroom::test::write_many_tensors(path, kTensors);
  double best = 1e300;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    const headroom::Inspection inspection = headroom::inspect(path.string());
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
    if (inspection.all.tensors != kTensors) return 4;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{} tensors in {:.2f} s, {} MB peak memory, including the writer of the file\n",
             kTensors, best, usage.ru_maxrss / 1000);
  std::filesystem::remove(path);
}
