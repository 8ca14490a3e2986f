// Options for the types of weights, activations and arithmetic.
#pragma once

#include "headroom/storage.h"
#include "options.h"

namespace headroom::cli {

[[nodiscard]] Choices<WeightType> weight_type_choices();
/// Types of GEMMs.
[[nodiscard]] Choices<DType> arithmetic_choices();
[[nodiscard]] Choices<InferenceRecipe> inference_recipe_choices();

/// Parses a type of activations; "auto" is empty. Refuses types of 8 bits.
[[nodiscard]] std::optional<DType> parse_activation_type(const std::string& names,
                                                         const std::string& word);

/// Adds --weights.
Option add_weights_option(Command command, std::optional<WeightType>& weights);
/// Adds --dtype; `description` names its default.
Option add_dtype_option(Command command, std::optional<DType>& dtype, const char* description);
/// Adds --arithmetic.
Option add_arithmetic_option(Command command, std::optional<DType>& arithmetic);
/// Adds --weights, --dtype, --arithmetic and --recipe.
std::vector<Option> add_type_options(Command command, WorkloadRequest& request);

}  // namespace headroom::cli
