// Options for the types of weights, activations and arithmetic.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headroom/storage.h"
#include "options.h"

namespace headroom::cli {

/// Use of weights: `run` leaves out float16, which no kernel runs.
enum class WeightUse { counted, run };

/// Words of help of --weights: the names of WeightType, and FORMAT for those of groups.
[[nodiscard]] std::string weight_choices(WeightUse use);
/// The form that `word` names. Throws a usage error with the words of `use`.
[[nodiscard]] WeightForm parse_weights(const std::string& names, const std::string& word,
                                       WeightUse use);

/// Types of GEMMs.
[[nodiscard]] Choices<DType> arithmetic_choices();
[[nodiscard]] Choices<InferenceRecipe> inference_recipe_choices();

/// Types that a word of --dtype stands for.
struct TypeWord {
  std::optional<DType> activations;       ///< empty: auto
  std::optional<InferenceRecipe> recipe;  ///< of weights and GEMMs, for a type of 8 bits
};

/// Parses a word of --dtype: "fp8" and "int8" keep the activations' type and choose a recipe.
[[nodiscard]] TypeWord parse_type_word(const std::string& names, const std::string& word);
/// Parses a type of activations; "auto" is empty. Refuses types of 8 bits.
[[nodiscard]] std::optional<DType> parse_activation_type(const std::string& names,
                                                         const std::string& word);

/// Adds --weights.
Option add_weights_option(Command command, std::optional<WeightForm>& weights);
/// Adds --dtype for activations alone; `description` names its default.
Option add_activation_type_option(Command command, std::optional<DType>& dtype,
                                  const char* description);
/// Adds --dtype; a type of 8 bits leaves `dtype` empty and calls `set_recipe`.
Option add_dtype_option(Command command, std::optional<DType>& dtype,
                        const std::function<void(InferenceRecipe)>& set_recipe,
                        const char* description);
/// Adds --arithmetic.
Option add_arithmetic_option(Command command, std::optional<DType>& arithmetic);
/// Adds --weights, --dtype, --arithmetic and --recipe.
std::vector<Option> add_type_options(Command command, WorkloadRequest& request);

}  // namespace headroom::cli
