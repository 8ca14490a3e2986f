// Kernels that read and write every element once. Arrays are dense; nothing is allocated.
#pragma once

#include <cstdint>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// x = f(x) over `count` elements. gelu_new computes the same as gelu_tanh.
void activate(ActivationKind kind, float* x, std::int64_t count);

/// out = f(gate) * up. `gate_up` [rows, 2, width], the gate in front; out [rows, width] must not
/// overlap it.
void activate_gated(ActivationKind kind, const float* gate_up, float* out, std::int64_t rows,
                    std::int64_t width);

/// x += r over `count` elements.
void add_residual(float* x, const float* r, std::int64_t count);

/// x *= factor over `count` elements.
void scale(float* x, float factor, std::int64_t count);

/// One thread's part of `activate`, for kernels that finish what is still in their cache.
void activate_here(ActivationKind kind, float* x, std::int64_t count);

}  // namespace headroom::measured
