// Memory and hardware facts from the operating system. Internal to src/measured.
#pragma once

#include <cstdint>

#include "headroom/measurement.h"
#include "kernels/gemm.h"

namespace headroom::measured {

/// Memory available without swapping, in bytes; 0 if the system does not report it.
[[nodiscard]] std::int64_t available_memory_bytes();

/// Resident memory of this process now, and its peak, in bytes.
[[nodiscard]] std::int64_t resident_bytes();
[[nodiscard]] std::int64_t peak_resident_bytes();

/// Resets the peak of resident memory to its present value, if the system allows it.
void reset_peak_resident();

/// Describes the machine and this build; `backend` multiplies matrices.
[[nodiscard]] MachineContext machine_context(int threads, Backend backend);

}  // namespace headroom::measured
