// Element-wise kernels. Arrays are dense; nothing is allocated.
#pragma once

#include <cstdint>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// x = f(x) over `count` elements. gelu_new equals gelu_tanh.
void activate(ActivationKind kind, float* x, std::int64_t count);

/// out = f(gate) * up. gate_up [rows, 2, width] has the gate first; out [rows, width] must not
/// overlap it.
void activate_gated(ActivationKind kind, const float* gate_up, float* out, std::int64_t rows,
                    std::int64_t width);

/// x += r over `count` elements.
void add_residual(float* x, const float* r, std::int64_t count);

/// x *= f(gate) over `count` elements.
void multiply_by_activation(ActivationKind kind, const float* gate, float* x, std::int64_t count);

/// x += factor · r over `count` elements.
void add_scaled_residual(float* x, const float* r, float factor, std::int64_t count);

/// x *= factor over `count` elements.
void scale(float* x, float factor, std::int64_t count);

/// x = cap · tanh(x / cap) over `count` elements.
void soft_cap(float* x, float cap, std::int64_t count);

/// Clamps x to ±limit over `count` elements.
void clamp(float* x, float limit, std::int64_t count);

/// x *= sigmoid(gate) for every row, x [rows, width] and gate [rows].
void gate_rows(float* x, const float* gate, std::int64_t rows, std::int64_t width);

/// `activate` on the calling thread alone, for kernels whose output is still in cache.
void activate_here(ActivationKind kind, float* x, std::int64_t count);

}  // namespace headroom::measured
