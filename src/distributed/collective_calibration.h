// Measures the collectives of parallel plans between the processes that run.
#pragma once

#include "headroom/collective_rates.h"
#include "headroom/machine_profile.h"
#include "processes.h"

namespace headroom::distributed {

/// Times every collective over payloads, in groups of each size that divides the processes, all
/// groups at the same time. A quick calibration skips every second payload. Every process must call
/// it, and gets the same tables; their date is empty.
[[nodiscard]] CollectiveRates measure_collectives(Processes& processes, CalibrationEffort effort);

/// Hosts of all processes.
struct Hosts {
  std::int64_t count = 1;
  std::int64_t processes_here = 1;  ///< on this process's host
};

/// Every process must call it.
[[nodiscard]] Hosts hosts_of(Processes& processes);

}  // namespace headroom::distributed
