// Calibration: performance curves of this machine, measured with the kernels of the forward pass.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/machine_profile.h"
#include "kernels/gemm.h"
#include "quantization/group_format.h"

namespace headroom::measured {

using Effort = CalibrationEffort;

struct CalibrateOptions {
  Backend backend = Backend::eigen;
  Effort effort = Effort::full;
  std::vector<int> threads;  ///< numbers of threads; empty: doubling_threads of this machine
};

/// 1, 2, 4, … and `processors`.
[[nodiscard]] std::vector<int> doubling_threads(int processors);

/// Called with the completed fraction, from 0 to 1; returns false to stop.
using CalibrateObserver = std::function<bool(double fraction)>;

/// Measures all kernels. Throws Interrupted if the observer or a signal stops it.
[[nodiscard]] MachineProfile calibrate(const CalibrateOptions& options,
                                       const CalibrateObserver& observer);

/// Grid of sizes at which a kernel is measured; empty for composed ones (timed_kernels.h). No size
/// is that of a preset: the profile must predict, not remember. A quick calibration skips every
/// second size.
[[nodiscard]] KernelGrid calibration_axes(KernelKind kind, Effort effort);

/// Grid of GEMMs of weights as they are stored, whose inputs fill whole blocks.
[[nodiscard]] KernelGrid stored_gemm_axes(Effort effort);

/// Weights of GEMMs as they are stored: in blocks, multiplied with int8 activations as `measure`
/// does by default, or in groups, with float32 ones.
using GemmWeights = std::variant<checkpoint::GgmlType, headroom::detail::GroupFormat>;

/// Name of their curves in a profile: "Q4_K", "4bit-1x128-s16".
[[nodiscard]] std::string format_name(const GemmWeights& weights);

/// Measures GEMMs of weights in the forms of `types` with the numbers of threads of `machine`, this
/// machine's profile, and adds them to it. Throws Interrupted as calibrate does.
void calibrate_stored_gemms(MachineProfile& machine, std::span<const GemmWeights> types,
                            const CalibrateOptions& options, const CalibrateObserver& observer);

}  // namespace headroom::measured
