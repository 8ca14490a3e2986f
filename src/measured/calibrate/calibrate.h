// Calibration: this machine's curves, measured with the kernels that the forward pass is made of.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "headroom/machine_profile.h"
#include "kernels/gemm.h"

namespace headroom::measured {

/// How many points are measured, and how long each.
enum class Effort { quick, full };

struct CalibrateOptions {
  Backend backend = Backend::eigen;
  Effort effort = Effort::full;
  std::vector<int> threads;  ///< numbers of threads; empty: one, and all processors
};

/// Told of the share that is done, from 0 to 1; returns false to stop.
using CalibrateObserver = std::function<bool(double share)>;

/// Measures everything. Throws Error{invalid_input} when it was stopped.
[[nodiscard]] MachineProfile calibrate(const CalibrateOptions& options,
                                       const CalibrateObserver& observer);

/// Sizes at which kernels are measured, by axis. None is a size of a preset: the profile must
/// predict, not remember. A quick calibration leaves out every second size.
[[nodiscard]] KernelGrid calibration_axes(KernelKind kind, Effort effort);

}  // namespace headroom::measured
