#include "activation_calls.h"

namespace headroom::detail {
namespace {

/// GPT-2's GELU in PyTorch: 0.5·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) is five scales and powers, a
/// tanh, a sum and a product.
std::vector<KernelCall> gelu_by_operators(double elements) {
  constexpr double kScales = 5;
  constexpr double kPairs = 2;
  return {{KernelKind::scale, {elements}, {}, kScales},
          {KernelKind::residual_add, {elements}, {}, kPairs},
          {KernelKind::tanh, {elements}, {}}};
}

}  // namespace

ActivationKernels kernels_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::relu:
    case ActivationKind::relu_squared:
      return {KernelKind::relu, KernelKind::relu_gated};
    case ActivationKind::identity:
      return {KernelKind::copy, KernelKind::relu_gated};
    case ActivationKind::gelu:
      return {KernelKind::gelu, KernelKind::gelu_gated};
    case ActivationKind::gelu_tanh:
    case ActivationKind::gelu_new:
      return {KernelKind::gelu_tanh, KernelKind::gelu_tanh_gated};
    case ActivationKind::tanh:
      return {KernelKind::tanh, KernelKind::gelu_gated};
    case ActivationKind::quick_gelu:
    case ActivationKind::silu:
    case ActivationKind::sigmoid:
    case ActivationKind::clamped_swiglu:
    case ActivationKind::clamped_silu:
    case ActivationKind::xielu:
    case ActivationKind::softplus:
      break;
  }
  return {KernelKind::silu, KernelKind::silu_gated};
}

std::vector<KernelCall> activation_calls(ActivationKind kind, double elements,
                                         MeasuredEngine engine) {
  if (kind == ActivationKind::gelu_new && engine == MeasuredEngine::pytorch) {
    return gelu_by_operators(elements);
  }
  return {{kernels_of(kind).plain, {elements}, {}}};
}

}  // namespace headroom::detail
