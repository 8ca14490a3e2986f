#include "processors.h"

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "cgroups.h"

namespace headroom::measured {
namespace {

namespace fs = std::filesystem;

/// Quota and period of one group, in microseconds; a quota that is no positive number is none.
struct QuotaReading {
  double quota = 0;
  double period = 0;
};

QuotaReading reading_of(const Cgroup& group) {
  QuotaReading reading;
  switch (group.version) {
    case CgroupVersion::one: {
      std::ifstream(group.folder / "cpu.cfs_quota_us") >> reading.quota;
      std::ifstream(group.folder / "cpu.cfs_period_us") >> reading.period;
      return reading;
    }
    case CgroupVersion::two:  // "max 100000" without a quota
      std::ifstream(group.folder / "cpu.max") >> reading.quota >> reading.period;
      return reading;
  }
  return reading;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& root) {
  std::optional<double> least;
  for (const Cgroup& group : cgroups_of(root, "cpu")) {
    const QuotaReading reading = reading_of(group);
    if (reading.quota <= 0 || reading.period <= 0) continue;
    const double processors = reading.quota / reading.period;
    least = std::min(processors, least.value_or(processors));
  }
  return least;
}

int usable_processors(const fs::path& root) {
  const int in_mask = omp_get_num_procs();
  const double quota = std::floor(cpu_quota(root).value_or(in_mask));
  return std::max(1, static_cast<int>(std::min<double>(in_mask, quota)));
}

void use_usable_processors() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): one thread so far
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return;
  omp_set_num_threads(usable_processors());
}

}  // namespace headroom::measured
