// What the operating system says of the machine and of this process. Internal to src/measured.
#pragma once

#include <cstdint>

#include "headroom/measurement.h"
#include "kernels/gemm.h"

namespace headroom::measured {

/// Memory that can be had without swapping, in bytes; 0 where the system does not say.
[[nodiscard]] std::int64_t available_memory_bytes();

/// Resident memory of this process now, and the most it has had.
[[nodiscard]] std::int64_t resident_bytes();
[[nodiscard]] std::int64_t peak_resident_bytes();

/// Makes the peak count from now on, where the system allows it.
void reset_peak_resident();

[[nodiscard]] MachineContext machine_context(int threads, Backend backend);

}  // namespace headroom::measured
