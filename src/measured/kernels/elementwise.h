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

/// As activate_gated, but a gate first loses its row's mean and `deviations` standard deviations,
/// and is 0 if that is negative.
void activate_cut_gates(ActivationKind kind, double deviations, const float* gate_up, float* out,
                        std::int64_t rows, std::int64_t width);

/// As activate_gated, but activated gates are at most `limit`, and what they multiply is clamped to
/// ±limit.
void activate_limited_gates(ActivationKind kind, double limit, const float* gate_up, float* out,
                            std::int64_t rows, std::int64_t width);

/// out = c(gate, gate_cap)·sigmoid(gate)·c(up, up_cap), where c(x, cap) = cap·tanh(x / cap); an up
/// of cap 0 stays as it is (SiTU). Shapes as in activate_gated.
void activate_capped_gates(float gate_cap, float up_cap, const float* gate_up, float* out,
                           std::int64_t rows, std::int64_t width);

/// x += r over `count` elements.
void add_residual(float* x, const float* r, std::int64_t count);

/// x *= f(gate) over `count` elements.
void multiply_by_activation(ActivationKind kind, const float* gate, float* x, std::int64_t count);

/// Every row of x [gates, width] times f(gate) of its own.
void multiply_rows_by_activation(ActivationKind kind, const float* gate, float* x,
                                 std::int64_t gates, std::int64_t width);

/// x += factor · r over `count` elements.
void add_scaled_residual(float* x, const float* r, float factor, std::int64_t count);

/// x *= factor over `count` elements.
void scale(float* x, float factor, std::int64_t count);

/// Every row of x [rows, width] times `factors` [width].
void scale_rows(float* x, const float* factors, std::int64_t rows, std::int64_t width);

/// Every row of x [rows, width] plus `vector` [width].
void shift_rows(float* x, const float* vector, std::int64_t rows, std::int64_t width);

/// Stored constants of xIELU, the trained ones before their softplus.
struct XieluConstants {
  float positive = 0;
  float negative = 0;
  float slope = 0.5F;    ///< β
  float bound = -1e-6F;  ///< largest argument of expm1
};

/// x = xIELU(x) over `count` elements (arXiv 2411.13010, eq. 13): α_p·x² + β·x above 0, and
/// (exp(x) - 1 - x)·α_n + β·x elsewhere, with α_n = β + softplus(negative).
void xielu(const XieluConstants& constants, float* x, std::int64_t count);

/// x = cap · tanh(x / cap) over `count` elements.
void soft_cap(float* x, float cap, std::int64_t count);

/// Least and greatest value of a clamp.
struct ValueBounds {
  float least = 0;
  float greatest = 0;
};

/// Clamps x to `bounds` over `count` elements.
void clamp(float* x, ValueBounds bounds, std::int64_t count);

/// x *= sigmoid(gate) for every row, x [rows, width] and gate [rows].
void gate_rows(float* x, const float* gate, std::int64_t rows, std::int64_t width);

/// `activate` on the calling thread alone, for kernels whose output is still in cache.
void activate_here(ActivationKind kind, float* x, std::int64_t count);

}  // namespace headroom::measured
