// Processors that this process may keep busy. Internal to src/measured and the program.
#pragma once

#include <filesystem>
#include <optional>

namespace headroom::measured {

/// CPU time per time that the control groups of this process grant, in processors; empty without a
/// quota. Files are read below `root`. Source: Documentation/admin-guide/cgroup-v2.rst (cpu.max)
/// and Documentation/scheduler/sched-bwc.rst (cpu.cfs_quota_us) of Linux.
[[nodiscard]] std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// Processors of the affinity mask, at most the whole ones of the quota; at least 1. A thread
/// beyond the quota stops all others at their next barrier for the rest of the period.
[[nodiscard]] int usable_processors(const std::filesystem::path& root = "/");

/// Makes usable_processors() the default number of threads, unless OMP_NUM_THREADS states one.
void use_usable_processors();

}  // namespace headroom::measured
