// FLOPs of one element; their derivations stand in op_cost.h.
#include "op_cost.h"

namespace headroom::detail {

ElementFlops activation_flops(ActivationKind kind) noexcept {
  switch (kind) {
    case ActivationKind::identity:
      return {0, 0};
    case ActivationKind::relu:
      return {1, 1};
    case ActivationKind::relu_squared:
      return {2, 3};
    case ActivationKind::gelu:
      return {5, 11};
    case ActivationKind::gelu_tanh:
    case ActivationKind::gelu_new:
      return {9, 19};
    case ActivationKind::quick_gelu:
      return {5, 10};
    case ActivationKind::silu:
      return {4, 8};
    case ActivationKind::sigmoid:
      return {3, 3};
    case ActivationKind::softplus:
      return {3, 4};
    case ActivationKind::clamped_swiglu:
      return {9, 14};
    case ActivationKind::clamped_silu:
      return {7, 13};
    case ActivationKind::xielu:
      return {11, 14};
    case ActivationKind::tanh:
      break;
  }
  return {1, 3};
}

ElementFlops feature_map_flops(FeatureMapKind kind) noexcept {
  switch (kind) {
    case FeatureMapKind::elu_plus_one:
      return {2, 1};
    case FeatureMapKind::relu:
      return activation_flops(ActivationKind::relu);
    case FeatureMapKind::exp:
      return {1, 1};
    case FeatureMapKind::softmax:
      break;
  }
  return kSoftmaxFlops;
}

ElementFlops cell_flops(RecurrentCell cell) noexcept {
  const ElementFlops sigmoid = activation_flops(ActivationKind::sigmoid);
  const ElementFlops tanh = activation_flops(ActivationKind::tanh);
  const Integer sums = gates_of(cell);
  switch (cell) {
    case RecurrentCell::rnn:
      return {sums + tanh.forward, 1 + tanh.backward};
    case RecurrentCell::gru:
      // Of z·h and (1 − z)·n: dz = (h − n)·dh, dn, dh; of r·(W_hh·h): two.
      return {sums + 1 + 2 * sigmoid.forward + tanh.forward + 4,
              1 + 2 * sigmoid.backward + tanh.backward + 2 + 2 + 1 + 2 + 1};
    case RecurrentCell::lstm:
      break;
  }
  // Of o·tanh(c): two, and a sum with the incoming gradient of c; of f·c + i·g: four.
  return {sums + 3 * sigmoid.forward + 2 * tanh.forward + 3 + 1,
          1 + 3 * sigmoid.backward + 2 * tanh.backward + 2 + 1 + 4};
}

ElementFlops norm_flops(const NormSpec& norm) noexcept {
  // Without a weight, the forward pass saves one multiplication and the backward pass its gradient.
  Integer weight = 0;
  Integer weight_backward = 0;
  if (norm.weight == NormWeight::none) {
    weight = -1;
    weight_backward = -3;
  }
  if (norm.weight == NormWeight::one_plus) weight = 1;
  if (norm.kind == NormKind::rms_norm) return {4 + weight, 8 + weight_backward};
  return norm.bias ? ElementFlops{7 + weight, 11 + weight_backward}
                   : ElementFlops{6 + weight, 10 + weight_backward};
}

}  // namespace headroom::detail
