// Memory nodes (NUMA): a processor reads the memory of its own socket faster than that of others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace headroom::measured {

/// Puts `rows` rows of equal size on the nodes of the threads that read them, each its thread_range
/// in multiples of `granule`. Call it before the rows are written: pages in use stay where they
/// are. Huge pages stay whole. Does nothing on machines with one node, for less than 4 MiB a node,
/// nor if threads are not bound to processors (OMP_PROC_BIND), since those move between nodes. The
/// system takes it as advice.
void place_rows(std::span<const std::byte> memory, std::int64_t rows, std::int64_t granule);

}  // namespace headroom::measured
