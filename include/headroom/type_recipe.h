// Recipes: published combinations of the types of weights and arithmetic for inference.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "headroom/weight_storage.h"
#include "headroom/workload.h"

namespace headroom {

enum class InferenceRecipe {
  w8a8,      ///< 8-bit integer weights and GEMMs
  w8a8_fp8,  ///< FP8 weights and GEMMs
  w8a16,     ///< 8-bit integer weights, 16-bit GEMMs
  w4a16,     ///< 4-bit integer weights, 16-bit GEMMs
};

/// A recipe's types. Activations between operators have 16 bits in all of them.
struct InferenceRecipeInfo {
  InferenceRecipe recipe;
  std::string_view name;
  WeightType weights;
  std::optional<DType> arithmetic;  ///< of the layers' GEMMs; empty: that of the activations
  std::string_view source;
};

/// All recipes, in order of the enumeration.
[[nodiscard]] const std::array<InferenceRecipeInfo, 4>& inference_recipes() noexcept;
[[nodiscard]] const InferenceRecipeInfo& info(InferenceRecipe recipe) noexcept;

}  // namespace headroom
