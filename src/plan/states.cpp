#include <algorithm>
#include <array>

#include "headroom/training.h"
#include "quantised.h"

namespace headroom {
namespace {

/// A block of the 8-bit optimizer that shares one scale, and the least tensor that is quantised at
/// all: bitsandbytes' values.
constexpr Integer kAdamBlock = 256;
constexpr Integer kLeastQuantised = 4096;
constexpr Integer kFloat32 = 4;

/// A weight of one layer as numbers.
struct Shape {
  Integer elements = 1;
  Integer rows_and_columns = 0;  ///< of all its matrices; 0 for a vector
};

Shape shape_of(const Weight& weight, const Bindings& sizes) {
  Shape shape;
  for (const Expr& size : weight.shape) {
    shape.elements = checked_multiply(shape.elements, size.evaluate(sizes));
  }
  if (weight.shape.size() < 2 || shape.elements == 0) return shape;
  const Integer rows = weight.shape[weight.shape.size() - 2].evaluate(sizes);
  const Integer columns = weight.shape.back().evaluate(sizes);
  shape.rows_and_columns = shape.elements / (rows * columns) * (rows + columns);
  return shape;
}

Integer adam_8bit_bytes(const Shape& shape) {
  if (shape.elements < kLeastQuantised) return 2 * kFloat32 * shape.elements;
  return 2 * (shape.elements + kFloat32 * ceil_div(shape.elements, kAdamBlock));
}

Integer optimizer_state_bytes(const Weight& weight, const Shape& shape, const StatePolicy& policy) {
  const Integer one = info(policy.recipe).state_bytes;
  switch (policy.optimizer) {
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
      return one * shape.elements;
    case Optimizer::adam:
      return 2 * one * shape.elements;
    case Optimizer::adam_8bit:
      return adam_8bit_bytes(shape);
    case Optimizer::adafactor:
      return one * (shape.rows_and_columns > 0 ? shape.rows_and_columns : shape.elements);
    case Optimizer::muon:
      break;
  }
  const bool by_muon = is_layer_matrix(weight);
  return (by_muon ? 1 : 2) * one * shape.elements;
}

StateBytes states_of_layer(const Weight& weight, const StatePolicy& policy, const Bindings& sizes) {
  const RecipeInfo& recipe = info(policy.recipe);
  const Shape shape = shape_of(weight, sizes);
  if (weight.training == Training::frozen || weight.kind == WeightKind::buffer) {
    const bool quantised = policy.adapter == AdapterKind::qlora && is_layer_matrix(weight);
    return {quantised ? detail::nf4_bytes(shape.elements) : recipe.weight_bytes * shape.elements, 0,
            0};
  }
  return {recipe.weight_bytes * shape.elements, recipe.gradient_bytes * shape.elements,
          recipe.master_bytes * shape.elements + optimizer_state_bytes(weight, shape, policy)};
}

}  // namespace

bool is_layer_matrix(const Weight& weight) noexcept {
  constexpr std::array kInLayers{WeightRole::attention, WeightRole::recurrent,
                                 WeightRole::convolution, WeightRole::mlp};
  const bool in_layers = std::ranges::find(kInLayers, weight.role) != kInLayers.end();
  return in_layers && weight.shape.size() > 1;
}

StateBytes& StateBytes::operator+=(const StateBytes& other) {
  weights = checked_add(weights, other.weights);
  gradients = checked_add(gradients, other.gradients);
  optimizer = checked_add(optimizer, other.optimizer);
  return *this;
}

StateBytes state_bytes(const Weight& weight, const StatePolicy& policy, const Bindings& sizes) {
  const StateBytes one = states_of_layer(weight, policy, sizes);
  const Integer layers = weight.repeat.evaluate(sizes);
  return {checked_multiply(layers, one.weights), checked_multiply(layers, one.gradients),
          checked_multiply(layers, one.optimizer)};
}

StateBytes shared_out(const StateBytes& states, Zero zero, std::int64_t replicas) {
  StateBytes rank = states;
  switch (zero) {
    case Zero::weights:
      rank.weights = ceil_div(states.weights, replicas);
      [[fallthrough]];
    case Zero::gradients:
      rank.gradients = ceil_div(states.gradients, replicas);
      [[fallthrough]];
    case Zero::optimizer:
      rank.optimizer = ceil_div(states.optimizer, replicas);
      break;
    case Zero::none:
      break;
  }
  return rank;
}

}  // namespace headroom
