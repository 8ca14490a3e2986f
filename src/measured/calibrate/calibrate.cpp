#include "calibrate.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "cpu_watch.h"
#include "interruption.h"
#include "last_cache.h"
#include "probes.h"
#include "processors.h"
#include "system.h"

namespace headroom::measured {
namespace {

/// Lower quartile of gauge readings over half a second: the machine's speed without other load.
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

/// A gauge per profile, and the budgets of its points.
struct Gauges {
  std::vector<std::unique_ptr<Gauge>> gauges;
  LinearProbes probes;

  explicit Gauges(const CalibrateOptions& options) : probes{options.backend, {}} {}

  Budget& add(const CalibrateOptions& options, int threads, std::int64_t memory_bytes) {
    gauges.push_back(std::make_unique<Gauge>(options.backend, threads, memory_bytes));
    Budget& budget = probes.budgets.emplace_back(budget_of(options.effort));
    budget.gauge = gauges.back().get();
    return budget;
  }
};

}  // namespace

std::vector<int> doubling_threads(int processors) {
  std::vector<int> counts;
  for (int threads = 1; threads < processors; threads *= 2) counts.push_back(threads);
  counts.push_back(processors);
  return counts;
}

void calibrate_stored_gemms(MachineProfile& machine, std::span<const GemmWeights> types,
                            const CalibrateOptions& options, const CalibrateObserver& observer) {
  const PageKeeper keeper;
  auto& profiles = std::get<MeasuredRates>(machine.rates).by_threads;
  Gauges gauges(options);
  for (const ThreadProfile& profile : profiles) {
    // Times count at the speed that the machine had when its other kernels were measured.
    gauges.add(options, profile.threads, profile.probe_memory_bytes).reference = {
        profile.probe_compute_s, profile.probe_memory_s};
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto on_progress = [&](double fraction) {
      return observer((static_cast<double>(i) + fraction) / static_cast<double>(types.size()));
    };
    if (!probe_stored_gemms(gauges.probes, types[i], profiles, on_progress)) {
      throw headroom::detail::Interrupted();
    }
  }
  release_shared_floats();
}

MachineProfile calibrate(const CalibrateOptions& options, const CalibrateObserver& observer) {
  constexpr double kLinearFraction = 0.6;  // approximate fraction of the total time
  const CpuWatch watch;
  const PageKeeper keeper;
  MachineProfile profile;
  profile.context = machine_context(omp_get_num_procs(), options.backend);
  profile.name = profile.context.cpu;
  profile.date = utc_timestamp();
  profile.effort = options.effort;
  profile.last_level_cache_bytes = last_level_cache_bytes();
  std::vector<ThreadProfile> by_threads;
  Gauges gauges(options);
  const LinearProbes& linears = gauges.probes;
  for (const int threads :
       options.threads.empty() ? doubling_threads(usable_processors()) : options.threads) {
    Budget& budget = gauges.add(options, threads, uncached_bytes());
    budget.reference = reference_of(*budget.gauge);
    ThreadProfile& threads_profile = by_threads.emplace_back();
    threads_profile.threads = threads;
    threads_profile.probe_compute_s = budget.reference.compute_s;
    threads_profile.probe_memory_s = budget.reference.memory_s;
    threads_profile.probe_memory_bytes = uncached_bytes();
  }
  const auto on_linear_progress = [&](double fraction) {
    return observer(kLinearFraction * fraction);
  };
  if (!probe_linears(linears, by_threads, on_linear_progress))
    throw headroom::detail::Interrupted();
  double done = kLinearFraction;
  for (std::size_t t = 0; t < by_threads.size(); ++t) {
    ThreadProfile& threads_profile = by_threads[t];
    Budget budget = linears.budgets[t];
    const double step = (1 - kLinearFraction) / static_cast<double>(2 * by_threads.size());
    omp_set_num_threads(threads_profile.threads);
    probe_attention(budget, threads_profile.tables);
    probe_step_attention(budget, threads_profile.tables);
    if (!observer(done += step)) throw headroom::detail::Interrupted();
    probe_elementwise(budget, threads_profile.tables);
    probe_overheads(budget, threads_profile);
    budget.resource = Resource::memory;
    threads_profile.read = probe_read(budget);
    threads_profile.write = probe_write(budget);
    if (!observer(done += step)) throw headroom::detail::Interrupted();
  }
  for (std::size_t t = 0; t < by_threads.size(); ++t) {
    const GaugeReading usual = gauges.gauges[t]->usual(linears.budgets[t].reference);
    by_threads[t].usual_compute_s = usual.compute_s;
    by_threads[t].usual_memory_s = usual.memory_s;
  }
  release_shared_floats();
  profile.context.other_programs_cpus = watch.other_programs_cpus();
  profile.rates = MeasuredRates{std::move(by_threads)};
  return profile;
}

}  // namespace headroom::measured
