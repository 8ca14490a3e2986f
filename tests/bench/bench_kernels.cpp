// How fast the kernels are: products against each other, streams against the bandwidth of a plain
// read. A benchmark, not a test: it prints the best of several interleaved rounds and judges
// nothing.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "aligned.h"
#include "gemm.h"

namespace {

using namespace headroom;
using namespace headroom::measured;
using Clock = std::chrono::steady_clock;
using Calls = std::vector<std::function<void()>>;

/// Keeps a result alive, so that the compiler cannot drop what made it.
volatile float g_sink = 0;

/// Least seconds of each call, over rounds that make every call once.
std::vector<double> least_seconds(int rounds, const Calls& calls) {
  std::vector<double> least(calls.size(), 1e30);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto start = Clock::now();
      calls[i]();
      const std::chrono::duration<double> taken = Clock::now() - start;
      least[i] = std::min(least[i], taken.count());
    }
  }
  return least;
}

AlignedVector<float> random_floats(std::int64_t count) {
  static std::minstd_rand generator(1);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  AlignedVector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

struct Shape {
  std::int64_t out;
  std::int64_t in;
};

void bench_linear(Shape shape, std::int64_t rows) {
  const AlignedVector<float> weight = random_floats(shape.out * shape.in);
  const AlignedVector<float> bias = random_floats(shape.out);
  const AlignedVector<float> x = random_floats(rows * shape.in);
  AlignedVector<float> y = random_floats(rows * shape.out);
  const std::array parts{LinearPart{weight, bias}};
  Calls calls;
  for (const Backend backend : {Backend::eigen, Backend::onednn}) {
    if (!is_available(backend)) continue;
    const auto linear = std::make_shared<PackedLinear>(
        parts, shape.in,
        LinearOptions{.backend = backend, .rows = RowRange::many, .typical_rows = rows});
    linear->prepare(rows);
    calls.emplace_back([&, linear] { linear->run(x.data(), y.data(), rows); });
  }
  std::string line = fmt::format("linear {:>4} x {:>4} -> {:>4}", rows, shape.in, shape.out);
  const double flops = 2.0 * static_cast<double>(rows * shape.in * shape.out);
  for (const double seconds : least_seconds(12, calls)) {
    line += fmt::format(" {:>8.1f}", flops / seconds * 1e-9);
  }
  fmt::print("{}\n", line);
}

void bench_linears() {
  fmt::print("\nGFLOP/s                            eigen   onednn\n");
  for (const std::int64_t rows : {128, 512, 1024}) {
    for (const Shape shape : {Shape{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}}) {
      bench_linear(shape, rows);
    }
  }
}

/// The sum of all values, over all threads; what it costs is reading them.
float read_all(const AlignedVector<float>& values) {
  constexpr std::int64_t kAtOnce = 256;
  const auto count = static_cast<std::int64_t>(values.size()) / kAtOnce;
  float total = 0;
#pragma omp parallel for reduction(+ : total) schedule(static)
  for (std::int64_t block = 0; block < count; ++block) {
    const float* from = values.data() + block * kAtOnce;
    std::array<float, 64> sums{};
    for (std::int64_t i = 0; i < kAtOnce; i += 64) {
#pragma omp simd
      for (std::int64_t lane = 0; lane < 64; ++lane) {
        sums[static_cast<std::size_t>(lane)] += from[i + lane];
      }
    }
    for (const float sum : sums) total += sum;
  }
  return total;
}

void bench_streams() {
  constexpr Shape shape{28672, 4096};
  constexpr double kBytes = 4.0 * shape.out * shape.in;
  const AlignedVector<float> weight = random_floats(shape.out * shape.in);
  const std::array parts{LinearPart{weight, {}}};
  const AlignedVector<float> x = random_floats(8 * shape.in);
  AlignedVector<float> y = random_floats(8 * shape.out);
  PackedLinear wide(parts, shape.in, {.rows = RowRange::few});
  PackedLinear narrow(parts, shape.in, {.rows = RowRange::few, .storage = WeightStorage::bfloat16});
  fmt::print("\nGB/s of {:.0f} MB of weights    read  float32  bfloat16\n", kBytes * 1e-6);
  for (const std::int64_t rows : {1, 2, 4, 8}) {
    const std::vector<double> seconds = least_seconds(
        12, {[&] { g_sink = read_all(weight); }, [&] { wide.run(x.data(), y.data(), rows); },
             [&] { narrow.run(x.data(), y.data(), rows); }});
    fmt::print("stream {} rows {:>21.1f} {:>8.1f} {:>8.1f}\n", rows, kBytes / seconds[0] * 1e-9,
               kBytes / seconds[1] * 1e-9, kBytes / 2 / seconds[2] * 1e-9);
  }
}

}  // namespace

int main() {
  for (const int threads : {1, 2}) {
    omp_set_num_threads(threads);
    fmt::print("\n--- threads: {}\n", threads);
    bench_linears();
    bench_streams();
  }
  return 0;
}
