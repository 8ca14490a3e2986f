// Cost of one operator. GEMMs are counted by the convention; element-wise work by the factors
// below, one FLOP per elementary operation, transcendental functions included. The factors follow
// from the formulas. Tools disagree on them, so they never mix with matrix FLOPs. Internal to
// src/analytic.
#pragma once

#include "headroom/analysis.h"

namespace headroom::detail {

inline const Expr kActivationBytes = Symbol::activation_bytes;
inline const Expr kIndexBytes = Integer{8};  // token ids are 64-bit, as in PyTorch

/// Forward and backward FLOPs per element.
struct ElementFlops {
  Integer forward;
  Integer backward;
};

/// Forward | backward. relu: max | select. relu_squared: max, square | 2·max(x, 0), select.
/// identity: none. gelu: x·½·(1 + erf(x/√2)) | Φ(x) + x·φ(x). gelu_tanh, gelu_new: ½·x·(1 +
/// tanh(√(2/π)·(x + 0.044715·x³))) | its derivative, with tanh recomputed. silu: x/(1 + e⁻ˣ) | σ·(1
/// + x·(1 − σ)). quick_gelu: as silu, with 1.702·x in σ. tanh | 1 − tanh². sigmoid: 1/(1 + e⁻ˣ) |
/// σ·(1 − σ). softplus: exp, sum, log | sigmoid. clamped_swiglu: min; ·1.702, sigmoid,
/// multiplication; min, max, sum | sigmoid and clamps again, the derivative of x·σ(1.702·x), two
/// selects. clamped_silu: as silu, with min; min, max | the clamps again, two selects. xielu: both
/// branches and a select: α·x², β·x and their sum; min, expm1, subtract, multiply; β·x and a sum |
/// 2·α·x + β; exp, subtract, multiply, add, a select, and for each constant its factor of the
/// output, a multiplication and a sum. Each backward ends with a multiplication by the incoming
/// gradient.
[[nodiscard]] ElementFlops activation_flops(ActivationKind kind) noexcept;

/// layer_norm: sum; subtract, square, sum; scale; weight (and 1 more for the bias) | sums for
/// weight and bias, weight·gradient, two means, and their combination. rms_norm: square, sum;
/// scale; weight | as layer_norm without means and bias.
[[nodiscard]] ElementFlops norm_flops(const NormSpec& norm) noexcept;

/// softmax: max, subtract, exp, sum, divide | multiply, sum, subtract, multiply.
inline constexpr ElementFlops kSoftmaxFlops{5, 4};
/// log-softmax: max, subtract, exp, sum, subtract | exp, subtract the target.
inline constexpr ElementFlops kCrossEntropyFlops{5, 2};
/// √softplus: exp, sum, log, square root | sigmoid, division by twice the output, multiplication.
inline constexpr ElementFlops kSqrtSoftplusFlops{4, 5};
/// rotary: two multiplications and a sum, in both directions.
inline constexpr ElementFlops kRotaryFlops{3, 3};
/// soft cap: divide, tanh, multiply | 1 − tanh², multiply.
inline constexpr ElementFlops kSoftCapFlops{3, 3};
/// unit length: square, sum; divide | multiply by the output, sum; multiply, subtract; divide.
inline constexpr ElementFlops kUnitLengthFlops{3, 5};
/// elu_plus_one: exp and a sum | one multiplication by the derivative. relu: max | select. exp: exp
/// | one multiplication by the output. softmax: as softmax.
[[nodiscard]] ElementFlops feature_map_flops(FeatureMapKind kind) noexcept;
/// One unit of a recurrent cell's step, activations as above; a bias adds one FLOP per gate in both
/// directions. First sums the input and state GEMMs of the gates. rnn: tanh. lstm: three sigmoids,
/// tanh; f·c + i·g; o·tanh(c). gru: two sigmoids, r·(W_hh·h), tanh; (1 − z)·n + z·h. Backward: the
/// sum of both gradients of h; the derivatives of all activations; one multiplication per factor of
/// each forward multiplication, and one sum where two gradients meet.
[[nodiscard]] ElementFlops cell_flops(RecurrentCell cell) noexcept;

/// dropout: multiplications by the mask and by 1/(1 − p), in both directions.
inline constexpr ElementFlops kDropoutFlops{2, 2};

/// Matrix FLOPs of `op`, forward and backward. `owned_parameters` counts the weights that this node
/// is the first to use (the PaLM convention counts per parameter).
struct MatrixFlops {
  Expr forward;
  Expr backward;
};
[[nodiscard]] MatrixFlops matrix_flops(const Op& op, Convention convention,
                                       const Expr& owned_parameters);

/// Element-wise FLOPs of `op`, forward and backward.
struct ElementwiseFlops {
  Expr forward;
  Expr backward;
};
[[nodiscard]] ElementwiseFlops elementwise_flops(const Op& op);

/// Traffic of the forward pass of `node` in one layer, each operand once: bytes read and written
/// without the weights, and the elements of each weight that it reads.
struct Traffic {
  Expr read;
  Expr written;
  std::vector<WeightRead> weights{};
};
[[nodiscard]] Traffic traffic(const Graph& graph, const Node& node);

}  // namespace headroom::detail
