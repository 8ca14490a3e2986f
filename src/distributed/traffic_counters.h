// Counts what a process hands to MPI, in MPI's profiling layer. Internal to src/distributed.
#pragma once

#include <mpi.h>

#include <vector>

#include "headroom/measurement.h"

namespace headroom::distributed {

/// From now on counts the collectives on `communicator` as traffic of `group`. Others are not
/// counted.
void count_traffic_of(MPI_Comm communicator, RankGroup group);
void stop_counting(MPI_Comm communicator);

/// Counts since the start, by group and collective.
[[nodiscard]] std::vector<WireTraffic> counted_traffic();

}  // namespace headroom::distributed
