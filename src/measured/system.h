// Memory and hardware facts from the operating system. Internal to src/measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headroom/measurement.h"
#include "kernels/gemm.h"

namespace headroom::measured {

/// Resident memory of this process now, and its peak, in bytes; empty without /proc.
[[nodiscard]] std::optional<std::int64_t> resident_bytes();
[[nodiscard]] std::optional<std::int64_t> peak_resident_bytes();

/// Resets the peak of resident memory to its present value, if the system allows it.
void reset_peak_resident();

/// Describes the machine and this build; `backend` multiplies matrices.
[[nodiscard]] MachineContext machine_context(int threads, Backend backend);

/// Now, "2025-01-31T12:00:00Z".
[[nodiscard]] std::string utc_timestamp();

}  // namespace headroom::measured
