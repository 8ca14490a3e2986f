// What operators cost beside their kernels.
#include <algorithm>

#include "clock.h"
#include "kernels/bandwidth.h"
#include "kernels/normalize.h"
#include "last_cache.h"
#include "probes.h"

namespace headroom::measured {
namespace {

/// What a step costs beside its kernel: a call through a function object and two clock readings.
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

/// What an operator of one token pays more behind a product that streams its weights: its own
/// weights come from memory, its code from a farther cache, its input from other processors. A norm
/// stands for all.
double one_cold_step_overhead() {
  constexpr std::int64_t kWidth = 1000;
  constexpr std::int64_t kSlice = kNearBytes / 4;
  constexpr std::int64_t kSteps = 25;
  const std::int64_t count = std::max(uncached_bytes(), 2 * kNearBytes) / 4;
  const float* const weights = shared_numbers(count);
  const std::int64_t slices = count / kSlice;
  AlignedVector<float> x = filled(kWidth);
  AlignedVector<float> y = filled(kWidth);
  std::vector<double> more;
  [[maybe_unused]] volatile float kept = 0;  // so that the compiler has to read
  for (std::int64_t i = 0; i < kSteps; ++i) {
    kept = read_all(weights + i % slices * kSlice, kSlice);
#pragma omp parallel for schedule(static)
    for (std::int64_t j = 0; j < kWidth; ++j) x[static_cast<std::size_t>(j)] += 1.0F;
    const float* const scale = weights + (i + slices / 2) % slices * kSlice;
    const auto time = [&] {
      const auto start = Clock::now();
      layer_norm({1, kWidth, scale, scale + kWidth, 1e-5F}, x.data(), y.data());
      return seconds_since(start);
    };
    const double cold = time();
    more.push_back(std::max(0.0, cold - time()));
  }
  return summarize(std::move(more)).median_s;
}

/// The least of some, a few hundredths of a second apart: microseconds are soon lost to others.
double cold_step_overhead(const Budget& budget) {
  constexpr int kTries = 5;
  double least = one_cold_step_overhead();
  for (int i = 1; i < kTries; ++i) {
    if (budget.gauge != nullptr) (void)budget.gauge->read();
    least = std::min(least, one_cold_step_overhead());
  }
  return least;
}

}  // namespace

void probe_overheads(const Budget& budget, ThreadProfile& profile) {
  profile.step_overhead_s = step_overhead(budget);
  profile.cold_step_overhead_s = cold_step_overhead(budget);
}

}  // namespace headroom::measured
