#include "calibrate.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "headroom/error.h"
#include "probes.h"
#include "system.h"

namespace headroom::measured {
namespace {

/// One thread, and all processors.
std::vector<int> default_threads() {
  const int all = omp_get_num_procs();
  return all == 1 ? std::vector{1} : std::vector{1, all};
}

/// What a step costs beside its kernel: a call through a function object and two clock readings.
double step_overhead(const Budget& budget) {
  using Clock = std::chrono::steady_clock;
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

std::string today() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

[[noreturn]] void stopped() {
  throw Error(ErrorCode::invalid_input, "the calibration was stopped; nothing was stored");
}

}  // namespace

std::int64_t last_level_cache_bytes() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    std::int64_t size = 0;
    char unit = 0;
    if (file >> size >> unit) largest = std::max(largest, size * (unit == 'M' ? 1 << 20 : 1 << 10));
  }
  constexpr std::int64_t kUnknown = std::int64_t{32} << 20;
  return largest > 0 ? largest : kUnknown;
}

DriftProbe probe_drift(Backend backend, int threads) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  constexpr std::int64_t kRows = 224;
  constexpr std::int64_t kWidth = 1088;
  static const AlignedVector<float> weight = filled(kWidth * kWidth);
  const LinearPart part{weight, {}};
  PackedLinear linear(std::span(&part, 1), kWidth,
                      LinearOptions{backend, Epilogue::none, RowRange::many});
  linear.prepare(kRows);
  const AlignedVector<float> x = filled(kRows * kWidth);
  AlignedVector<float> y = filled(kRows * kWidth);
  constexpr Budget kBudget{25, 0.2};
  DriftProbe probe;
  probe.compute_s = time_call(kBudget, [&](std::int64_t /*i*/) {
                      linear.run(x.data(), y.data(), kRows);
                    }).seconds;
  probe.memory_s = 1 / probe_read({9, 0.15}).back().bytes_per_s;
  omp_set_num_threads(before);
  return probe;
}

MachineProfile calibrate(const CalibrateOptions& options, const CalibrateObserver& observer) {
  constexpr double kLinearShare = 0.6;  // of the whole time, roughly
  const Budget budget = budget_of(options.effort);
  MachineProfile profile;
  profile.context = machine_context(omp_get_num_procs(), options.backend);
  profile.name = profile.context.cpu;
  profile.date = today();
  profile.last_level_cache_bytes = last_level_cache_bytes();
  std::vector<ThreadProfile> by_threads;
  for (const int threads : options.threads.empty() ? default_threads() : options.threads) {
    by_threads.emplace_back().threads = threads;
  }
  const auto linear_done = [&](double share) { return observer(kLinearShare * share); };
  if (!probe_linears({options.backend, budget}, by_threads, linear_done)) stopped();
  double done = kLinearShare;
  for (ThreadProfile& one : by_threads) {
    const double share = (1 - kLinearShare) / static_cast<double>(2 * by_threads.size());
    omp_set_num_threads(one.threads);
    probe_attention(budget, one.tables);
    if (!observer(done += share)) stopped();
    probe_elementwise(budget, one.tables);
    one.read = probe_read(budget);
    one.write = probe_write(budget);
    one.step_overhead_s = step_overhead(budget);
    const DriftProbe probe = probe_drift(options.backend, one.threads);
    one.probe_compute_s = probe.compute_s;
    one.probe_memory_s = probe.memory_s;
    if (!observer(done += share)) stopped();
  }
  profile.rates = MeasuredRates{std::move(by_threads)};
  return profile;
}

}  // namespace headroom::measured
