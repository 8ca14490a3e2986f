#include <algorithm>
#include <array>

#include "headroom/parallel_plan.h"
#include "headroom/storage.h"
#include "quantised.h"

namespace headroom {
namespace {

/// Elements per scale of 8-bit Adam, and the smallest tensor that it quantises: bitsandbytes'
/// values.
constexpr Integer kAdamBlock = 256;
constexpr Integer kSmallestQuantised = 4096;
constexpr Integer kFloat32StateBytes = 4;

/// Sizes of one layer's copy of a weight.
struct WeightSizes {
  Integer elements = 1;
  Integer rows_and_columns = 0;  ///< summed over its matrices; 0 for a vector
};

WeightSizes sizes_of(const Weight& weight, const Bindings& sizes) {
  WeightSizes weight_sizes;
  for (const Expr& size : weight.shape) {
    weight_sizes.elements = checked_multiply(weight_sizes.elements, size.evaluate(sizes));
  }
  if (weight.shape.size() < 2 || weight_sizes.elements == 0) return weight_sizes;
  const Integer rows = weight.shape[weight.shape.size() - 2].evaluate(sizes);
  const Integer columns = weight.shape.back().evaluate(sizes);
  weight_sizes.rows_and_columns = weight_sizes.elements / (rows * columns) * (rows + columns);
  return weight_sizes;
}

Integer adam_8bit_bytes(const WeightSizes& weight_sizes) {
  if (weight_sizes.elements < kSmallestQuantised)
    return 2 * kFloat32StateBytes * weight_sizes.elements;
  return 2 *
         (weight_sizes.elements + kFloat32StateBytes * ceil_div(weight_sizes.elements, kAdamBlock));
}

Integer optimizer_state_bytes(const Weight& weight, const WeightSizes& weight_sizes,
                              const StatePolicy& policy) {
  const Integer one = info(policy.recipe).state_bytes;
  switch (policy.optimizer) {
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
      return one * weight_sizes.elements;
    case Optimizer::adam:
      return 2 * one * weight_sizes.elements;
    case Optimizer::adam_8bit:
      return adam_8bit_bytes(weight_sizes);
    case Optimizer::adafactor:
      return one * (weight_sizes.rows_and_columns > 0 ? weight_sizes.rows_and_columns
                                                      : weight_sizes.elements);
    case Optimizer::muon:
      break;
  }
  const bool by_muon = is_layer_matrix(weight);
  return (by_muon ? 1 : 2) * one * weight_sizes.elements;
}

/// Of one layer's copy of a weight, in the recipe's types.
Integer stored_bytes(const Weight& weight, const RecipeInfo& recipe, Integer elements) {
  if (!is_layer_matrix(weight)) return recipe.weight_bytes * elements;
  return recipe.layer_matrix_bytes * elements +
         recipe.scaled_copies * ceil_div(elements, Integer{kMxfp8.grain.in});
}

StateBytes states_of_layer(const Weight& weight, const StatePolicy& policy, const Bindings& sizes) {
  const RecipeInfo& recipe = info(policy.recipe);
  const WeightSizes weight_sizes = sizes_of(weight, sizes);
  const Integer weight_bytes = stored_bytes(weight, recipe, weight_sizes.elements);
  const Integer own_bytes = std::min(weight_bytes, recipe.weight_bytes * weight_sizes.elements);
  if (weight.training == Training::frozen || weight.kind == WeightKind::buffer) {
    const bool quantised = policy.adapter == AdapterKind::qlora && is_layer_matrix(weight);
    return {quantised ? detail::nf4_bytes(weight_sizes.elements) : weight_bytes, 0, 0};
  }
  return {weight_bytes, recipe.gradient_bytes * weight_sizes.elements,
          recipe.master_bytes * weight_sizes.elements +
              optimizer_state_bytes(weight, weight_sizes, policy),
          weight_bytes - own_bytes};
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
  copies = checked_add(copies, other.copies);
  return *this;
}

StateBytes state_bytes(const Weight& weight, const StatePolicy& policy, const Bindings& sizes) {
  const StateBytes one = states_of_layer(weight, policy, sizes);
  const Integer layers = weight.repeat.evaluate(sizes);
  return {checked_multiply(layers, one.weights), checked_multiply(layers, one.gradients),
          checked_multiply(layers, one.optimizer), checked_multiply(layers, one.copies)};
}

StateBytes zero_sharded(const StateBytes& states, Zero zero, std::int64_t replicas) {
  StateBytes rank = states;
  switch (zero) {
    case Zero::weights:
      rank.weights = ceil_div(states.weights, replicas);
      rank.copies = ceil_div(states.copies, replicas);
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
