#include "calibrate.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>

#include "headroom/error.h"
#include "last_cache.h"
#include "probes.h"
#include "system.h"

namespace headroom::measured {
namespace {

/// One thread, and all processors.
std::vector<int> default_threads() {
  const int all = omp_get_num_procs();
  return all == 1 ? std::vector{1} : std::vector{1, all};
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

/// What a quarter of some readings over half a second are below: the machine as it is while others
/// leave it alone.
GaugeReading reference_of(Gauge& gauge) {
  constexpr std::size_t kReadings = 25;
  std::vector<double> compute;
  std::vector<double> memory;
  for (std::size_t i = 0; i < kReadings; ++i) {
    const GaugeReading reading = gauge.read();
    compute.push_back(reading.compute_s);
    memory.push_back(reading.memory_s);
  }
  std::ranges::nth_element(compute, compute.begin() + kReadings / 4);
  std::ranges::nth_element(memory, memory.begin() + kReadings / 4);
  return {compute[kReadings / 4], memory[kReadings / 4]};
}

[[noreturn]] void stopped() {
  throw Error(ErrorCode::invalid_input, "the calibration was stopped; nothing was stored");
}

}  // namespace

MachineProfile calibrate(const CalibrateOptions& options, const CalibrateObserver& observer) {
  constexpr double kLinearShare = 0.6;  // of the whole time, roughly
  const PageKeeper keeper;
  MachineProfile profile;
  profile.context = machine_context(omp_get_num_procs(), options.backend);
  profile.name = profile.context.cpu;
  profile.date = today();
  profile.last_level_cache_bytes = last_level_cache_bytes();
  std::vector<ThreadProfile> by_threads;
  std::vector<std::unique_ptr<Gauge>> gauges;
  LinearProbes linears{options.backend, {}};
  for (const int threads : options.threads.empty() ? default_threads() : options.threads) {
    gauges.push_back(std::make_unique<Gauge>(options.backend, threads, uncached_bytes()));
    Budget budget = budget_of(options.effort);
    budget.gauge = gauges.back().get();
    budget.reference = reference_of(*budget.gauge);
    linears.budgets.push_back(budget);
    ThreadProfile& one = by_threads.emplace_back();
    one.threads = threads;
    one.probe_compute_s = budget.reference.compute_s;
    one.probe_memory_s = budget.reference.memory_s;
    one.probe_memory_bytes = uncached_bytes();
  }
  const auto linear_done = [&](double share) { return observer(kLinearShare * share); };
  if (!probe_linears(linears, by_threads, linear_done)) stopped();
  double done = kLinearShare;
  for (std::size_t t = 0; t < by_threads.size(); ++t) {
    ThreadProfile& one = by_threads[t];
    Budget budget = linears.budgets[t];
    const double share = (1 - kLinearShare) / static_cast<double>(2 * by_threads.size());
    omp_set_num_threads(one.threads);
    probe_attention(budget, one.tables);
    probe_step_attention(budget, one.tables);
    if (!observer(done += share)) stopped();
    probe_elementwise(budget, one.tables);
    probe_overheads(budget, one);
    budget.pace = Pace::memory;
    one.read = probe_read(budget);
    one.write = probe_write(budget);
    if (!observer(done += share)) stopped();
  }
  release_shared_numbers();
  profile.rates = MeasuredRates{std::move(by_threads)};
  return profile;
}

}  // namespace headroom::measured
