// Kernel calls of operators with a state of constant size (state_op.h). Internal to src/predict.
#pragma once

#include "headroom/op.h"
#include "kernel_calls.h"

namespace headroom::detail {

/// Calls of curves that do the work of the operator's kernel.
[[nodiscard]] std::vector<KernelCall> state_calls(const ShortConvolution& op,
                                                  const Bindings& sizes);
[[nodiscard]] std::vector<KernelCall> state_calls(const StateSpaceScan& op, const Bindings& sizes);
[[nodiscard]] std::vector<KernelCall> state_calls(const GatedDelta& op, const Bindings& sizes);
[[nodiscard]] std::vector<KernelCall> state_calls(const TokenShift& op, const Bindings& sizes);
[[nodiscard]] std::vector<KernelCall> state_calls(const TokenMix& op, const Bindings& sizes);
[[nodiscard]] std::vector<KernelCall> state_calls(const ValueBonus& op, const Bindings& sizes);
[[nodiscard]] std::vector<KernelCall> state_calls(const WeightedKeyValue& op,
                                                  const Bindings& sizes);

}  // namespace headroom::detail
