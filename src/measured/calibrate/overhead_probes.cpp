// Probes of the overhead of operators outside their kernels.
#include <algorithm>

#include "clock.h"
#include "kernels/normalize.h"
#include "last_cache.h"
#include "probes.h"

namespace headroom::measured {
namespace {

/// Overhead of a step: a call through a function object and two clock readings.
double step_overhead(const Budget& budget) {
  constexpr int kSteps = 100;
  std::int64_t calls = 0;
  const std::function<void()> step = [&calls] { ++calls; };
  const KernelTime time = time_call(budget, [&](std::int64_t /*i*/) {
    for (int i = 0; i < kSteps; ++i) {
      volatile const auto before = Clock::now().time_since_epoch().count();
      step();
      (void)before;
    }
  });
  return time.seconds / kSteps;
}

/// Extra time of a one-token operator after a GEMM that streams its weights: its weights come from
/// memory, its code from a farther cache, its input from other cores. Measured with a norm, for all
/// operators.
double try_cold_step_overhead() {
  constexpr std::int64_t kWidth = 1000;
  constexpr std::int64_t kSlice = kCycleBytes / 4;
  constexpr std::int64_t kSteps = 25;
  const std::int64_t count = std::max(uncached_bytes(), 2 * kCycleBytes) / 4;
  const float* const weights = shared_floats(count);
  const std::int64_t slices = count / kSlice;
  AlignedVector<float> x = random_floats(kWidth);
  AlignedVector<float> y = random_floats(kWidth);
  std::vector<double> extra_s;
  for (std::int64_t i = 0; i < kSteps; ++i) {
    read_through(weights + i % slices * kSlice, kSlice);
#pragma omp parallel for schedule(static)
    for (std::int64_t j = 0; j < kWidth; ++j) x[static_cast<std::size_t>(j)] += 1.0F;
    const float* const scale = weights + (i + slices / 2) % slices * kSlice;
    const auto time = [&] {
      const auto start = Clock::now();
      layer_norm({1, kWidth, scale, scale + kWidth, 1e-5F}, x.data(), y.data());
      return seconds_since(start);
    };
    const double cold = time();
    extra_s.push_back(std::max(0.0, cold - time()));
  }
  return summarize(std::move(extra_s)).median_s;
}

/// Minimum of several tries, a few hundredths of a second apart: other processes easily add
/// microseconds.
double cold_step_overhead(const Budget& budget) {
  constexpr int kTries = 5;
  double least = try_cold_step_overhead();
  for (int i = 1; i < kTries; ++i) {
    if (budget.gauge != nullptr) (void)budget.gauge->read();
    least = std::min(least, try_cold_step_overhead());
  }
  return least;
}

}  // namespace

void probe_overheads(const Budget& budget, ThreadProfile& profile) {
  profile.step_overhead_s = step_overhead(budget);
  profile.cold_step_overhead_s = cold_step_overhead(budget);
}

}  // namespace headroom::measured
