// The measurements of ranks on their way to the first one, which writes the report.
#pragma once

#include <vector>

#include "communicator.h"
#include "headroom/measurement.h"

namespace headroom::cli {

/// The measurements of all ranks in their order, on rank 0; none on the others. Every rank must
/// call it.
[[nodiscard]] std::vector<RankMeasurement> gathered(const RankMeasurement& own,
                                                    measured::Coordinator& world);

}  // namespace headroom::cli
