// Memory that this process may still allocate: the least of the limits that the system sets.
// Internal to src/measured.
#pragma once

#include <filesystem>
#include <string>

#include "headroom/expr.h"

namespace headroom::measured {

/// A limit on further allocations. `source` names who sets it: "memory.max of the cgroup /ci".
struct MemoryLimit {
  Integer bytes = 0;
  std::string source;
};

/// The least of: MemAvailable; the limit of every cgroup of this process, versions 1 and 2, less
/// its use without page cache; RLIMIT_AS and RLIMIT_DATA less their use; and the address space of
/// the processor. Reads `root`/proc and `root`/sys/fs/cgroup; files that are absent set no limit.
/// Sources: proc(5); Linux kernel, Documentation/admin-guide/cgroup-v1/memory.rst and
/// cgroup-v2.rst.
[[nodiscard]] MemoryLimit memory_limit(const std::filesystem::path& root = "/");

}  // namespace headroom::measured
