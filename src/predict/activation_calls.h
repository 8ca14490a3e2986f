// Kernel calls of activations. Internal to src/predict.
#pragma once

#include <vector>

#include "kernel_calls.h"

namespace headroom::detail {

/// Kernels that compute an activation, or run as long as it does.
struct ActivationKernels {
  KernelKind plain;
  KernelKind gated;  ///< activation(gate) · up
};

[[nodiscard]] ActivationKernels kernels_of(ActivationKind kind);

/// The calls of an activation of `elements` values, not gated.
[[nodiscard]] std::vector<KernelCall> activation_calls(ActivationKind kind, double elements,
                                                       MeasuredEngine engine);

}  // namespace headroom::detail
