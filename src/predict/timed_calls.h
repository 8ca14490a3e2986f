// Replaces calls of kernels that `calibrate` does not time by calls of those that it does. Internal
// to src/predict.
#pragma once

#include <vector>

#include "kernel_calls.h"

namespace headroom::detail {

/// Replaces calls of headroom's composed kernels (timed_kernels.h): causal fused attention by
/// unmasked attention in proportion to its pairs, masked and biased softmax by the plain one, and
/// other element-wise kernels by a sum of two arrays. Files of PyTorch have a table of each kernel,
/// so its calls stay.
[[nodiscard]] std::vector<KernelCall> timed_calls(std::vector<KernelCall> calls,
                                                  MeasuredEngine engine);

}  // namespace headroom::detail
