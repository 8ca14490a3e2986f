// A measured machine whose times follow simple laws.
#pragma once

#include <utility>

#include "headroom/machine_profile.h"

namespace headroom::test {

/// A table whose times follow `law` at every point.
template <class Law>
KernelTable table_by(KernelKind kind, KernelGrid axes, const Law& law) {
  KernelTable table = unmeasured_table(kind, std::move(axes));
  for (std::size_t number = 0; number < table.seconds.size(); ++number) {
    table.seconds[number] = law(point_of(table.axes, number));
    table.spread[number] = 0.02;
  }
  return table;
}

/// Two threads, each time in proportion to the work.
inline MachineProfile measured_profile() {
  ThreadProfile threads;
  threads.threads = 2;
  threads.step_overhead_s = 1e-7;
  threads.cold_step_overhead_s = 2e-6;
  threads.probe_compute_s = 1e-3;
  threads.probe_memory_s = 2e-3;
  threads.probe_memory_bytes = 1 << 27;
  threads.read = {{1 << 20, 1e10}};
  threads.write = {{1 << 20, 5e9}};
  for (const KernelInfo& info : kernel_kinds()) {
    const KernelGrid axes(info.axes.size(), {1, 10});
    threads.tables.push_back(table_by(info.kind, axes, [&](const KernelSizes& sizes) {
      return 1e-9 * work_of(info.kind, sizes);
    }));
  }
  MachineProfile profile;
  profile.name = "a machine";
  profile.date = "2025-01-01";
  profile.last_level_cache_bytes = 1 << 25;
  profile.context.cpu = "a processor";
  profile.context.logical_cpus = 2;
  profile.rates = MeasuredRates{{threads}};
  return profile;
}

}  // namespace headroom::test
