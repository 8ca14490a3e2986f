// Calibrated GEMMs of weights that run as they are stored.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "calibrate/calibrate.h"
#include "headroom/machine_profile.h"

namespace headroom::cli {

/// Weights by the names of their formats, in any case: "q4_k", "4bit-1x128-s16". Throws
/// Error{invalid_input} for a name that no GEMM reads as it is stored.
[[nodiscard]] std::vector<measured::GemmWeights> types_named(std::span<const std::string> formats);

/// The formats of `formats` without GEMMs for every number of threads in `machine`.
[[nodiscard]] std::vector<std::string> missing_gemms(const MachineProfile& machine,
                                                     std::span<const std::string> formats);

/// Those of `formats` whose GEMMs were measured quickly, with any number of threads.
[[nodiscard]] std::vector<std::string> quick_gemms(const MachineProfile& machine,
                                                   std::span<const std::string> formats);

/// Measures GEMMs of these formats with a progress bar, and adds them to `machine`, this machine's
/// profile. Throws Interrupted if a signal ends it.
void measure_stored_gemms(MachineProfile& machine, std::span<const std::string> formats,
                          const measured::CalibrateOptions& options);

}  // namespace headroom::cli
