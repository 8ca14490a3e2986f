// Kernels of headroom that `calibrate` times. The times of its others are composed of those
// (src/predict/timed_calls.h), which costs no accuracy: docs/calibrate.md has the ablation. Machine
// files keep their version, since their fields do: tables of composed kernels are read and not
// used.
#pragma once

#include <algorithm>

#include "headroom/machine_profile.h"

namespace headroom::detail {

/// Kernels without curves of their own, except in files of PyTorch and of earlier versions.
inline constexpr KernelKind kComposedKernels[] = {
    KernelKind::attention_softmax_causal,
    KernelKind::attention_softmax_biased,
    KernelKind::attention_fused_causal,
    KernelKind::relu,
    KernelKind::gelu,
    KernelKind::gelu_tanh,
    KernelKind::silu,
    KernelKind::tanh,
    KernelKind::relu_gated,
    KernelKind::gelu_gated,
    KernelKind::gelu_tanh_gated,
    KernelKind::silu_gated,
    KernelKind::scale,
    KernelKind::feature_map,
    KernelKind::rotary,
    KernelKind::relative_position_bias,
};

/// Returns whether `calibrate` times headroom's own kernel `kind`.
[[nodiscard]] constexpr bool is_timed(KernelKind kind) noexcept {
  return std::ranges::find(kComposedKernels, kind) == std::ranges::end(kComposedKernels);
}

}  // namespace headroom::detail
