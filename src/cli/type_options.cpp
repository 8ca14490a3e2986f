#include "type_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"
#include "headroom/parallel_plan.h"
#include "weight_words.h"

namespace headroom::cli {
namespace {

constexpr const char* kTypesGroup = "Types";
constexpr const char* kActivationTypes = "auto|float32|float16|bfloat16";
constexpr const char* kWeightsHelp =
    "Type to convert weights to (as stored); fp32, fp16, bf16 and fp8 are short forms; FORMAT is "
    "one in groups such as fp8-128x128-s32";
constexpr const char* kTypeWords = "auto|float32|float16|bfloat16|fp8|int8";

}  // namespace

std::string weight_choices(WeightUse use) {
  std::string words;
  for (const auto& [word, type] : detail::weight_words()) {
    const bool is_listed = use == WeightUse::counted || type != WeightType::float16;
    if (word == name_of(type) && is_listed) words += fmt::format("{}|", word);
  }
  return words + "FORMAT";
}

WeightForm parse_weights(const std::string& names, const std::string& word, WeightUse use) {
  if (const auto form = detail::weight_form_named(word)) return *form;
  std::vector<std::string> known;
  for (const detail::WeightWord& one : detail::weight_words()) known.emplace_back(one.word);
  refuse_word(names, word, known, weight_choices(use));
}

Choices<DType> arithmetic_choices() {
  Choices<DType> choices = dtype_choices();
  for (const char* const word : {"float4", "fp4", "nvfp4", "mxfp4"}) {
    choices.emplace_back(word, DType::float4);
  }
  choices.emplace_back("int4", DType::int4);
  return choices;
}

Choices<InferenceRecipe> inference_recipe_choices() {
  Choices<InferenceRecipe> choices;
  for (const InferenceRecipeInfo& one : inference_recipes()) {
    choices.emplace_back(one.name, one.recipe);
  }
  return choices;
}

namespace {

/// The word's type, of 8 bits or more. Refuses other words with those of `shown`.
DType parse_type(const std::string& names, const std::string& word, const char* shown) {
  const Choices<DType> choices = dtype_choices();
  const auto same = [&word](const auto& choice) { return choice.first == word; };
  if (const auto found = std::ranges::find_if(choices, same); found != choices.end()) {
    return found->second;
  }
  std::vector<std::string> known;
  for (const auto& choice : choices) known.push_back(choice.first);
  refuse_word(names, word, known, shown);
}

/// The recipe whose GEMMs take `type`, of 8 bits, on both sides.
InferenceRecipe recipe_of(DType type) {
  const auto computes = [type](const InferenceRecipeInfo& one) { return one.arithmetic == type; };
  return std::ranges::find_if(inference_recipes(), computes)->recipe;
}

}  // namespace

TypeWord parse_type_word(const std::string& names, const std::string& word) {
  if (word == "auto") return {};
  const DType type = parse_type(names, word, kTypeWords);
  if (bytes_of(type) > 1) return {.activations = type, .recipe = {}};
  return {.activations = {}, .recipe = recipe_of(type)};
}

std::optional<DType> parse_activation_type(const std::string& names, const std::string& word) {
  if (word == "auto") return std::nullopt;
  const DType type = parse_type(names, word, kActivationTypes);
  if (bytes_of(type) > 1) return type;
  throw_invalid_input(
      fmt::format("{} {} is not an activation type: use a 16- or 32-bit type", names, word),
      fmt::format("use --weights {0} for the weights, --arithmetic {0} for the GEMMs", word));
}

Option add_weights_option(Command command, std::optional<WeightForm>& weights) {
  const char* const names = "--weights";
  const auto set = [&weights, names](const std::string& word) {
    weights = parse_weights(names, word, WeightUse::counted);
  };
  return command.add_text(names, weight_choices(WeightUse::counted), set, kWeightsHelp)
      .group(kTypesGroup);
}

Option add_activation_type_option(Command command, std::optional<DType>& dtype,
                                  const char* description) {
  const auto set = [&dtype](const std::string& word) {
    dtype = parse_activation_type("--dtype", word);
  };
  return command
      .add_text("--dtype", kActivationTypes, set,
                std::string(description) + "; fp32, fp16, half and bf16 are short forms")
      .group(kTypesGroup);
}

Option add_dtype_option(Command command, std::optional<DType>& dtype,
                        const std::function<void(InferenceRecipe)>& set_recipe,
                        const char* description) {
  const auto set = [&dtype, set_recipe](const std::string& word) {
    const TypeWord types = parse_type_word("--dtype", word);
    dtype = types.activations;
    if (!types.recipe) return;
    set_recipe(*types.recipe);
    count_as_given({"weights", "arithmetic"});
  };
  return command
      .add_text("--dtype", kTypeWords, set,
                std::string(description) +
                    "; fp32, fp16, half and bf16 are short forms; fp8 and int8 stand for --recipe "
                    "w8a8-fp8 and w8a8, which convert weights and GEMMs, not activations")
      .group(kTypesGroup);
}

Option add_arithmetic_option(Command command, std::optional<DType>& arithmetic) {
  return add_choice(command, "--arithmetic", arithmetic, arithmetic_choices(),
                    "Compute type of the layers' GEMMs (the config's for its quantised layers, "
                    "else as --dtype)")
      .group(kTypesGroup);
}

namespace {

/// Refuses a training recipe, which states the types of a whole step, not of one pass.
void refuse_training_recipe(const std::string& names, const std::string& word) {
  const auto is_named = [&word](const RecipeInfo& one) { return one.name == word; };
  if (!std::ranges::any_of(recipes(), is_named)) return;
  refuse_value(names,
               fmt::format("\"{}\" is a training recipe, for fit, plan and train-time", word));
}

/// Refuses weights or GEMMs of another type than the recipe's.
void refuse_contradiction(const InferenceRecipeInfo& recipe, const WorkloadRequest& request) {
  constexpr const char* kHint = "leave out --recipe, or the option that contradicts it";
  if (request.weights && name_of(*request.weights) != name_of(recipe.weights)) {
    throw_invalid_input(fmt::format("--recipe {} stores weights as {}, not {}", recipe.name,
                                    name_of(recipe.weights), name_of(*request.weights)),
                        kHint);
  }
  if (request.arithmetic && request.arithmetic != recipe.arithmetic) {
    throw_invalid_input(
        fmt::format("--recipe {} multiplies in {}, not {}", recipe.name,
                    recipe.arithmetic ? name_of(*recipe.arithmetic) : "the type of --dtype",
                    name_of(*request.arithmetic)),
        kHint);
  }
}

}  // namespace

std::vector<Option> add_type_options(Command command, WorkloadRequest& request) {
  const auto set_recipe = [&request](InferenceRecipe recipe) {
    request.weights = info(recipe).weights;
    request.arithmetic = info(recipe).arithmetic;
  };
  // Callbacks run in the order of the options here: --weights stands beside an 8-bit --dtype, and
  // --recipe sees both.
  const auto set_short_recipe = [&request, set_recipe](InferenceRecipe recipe) {
    const std::optional<WeightForm> chosen = request.weights;
    set_recipe(recipe);
    if (chosen) request.weights = chosen;
  };
  const auto set = [&request, set_recipe](const std::string& word) {
    refuse_training_recipe("--recipe", word);
    const InferenceRecipe recipe = value_of("--recipe", word, inference_recipe_choices());
    refuse_contradiction(info(recipe), request);
    count_as_given({"weights", "arithmetic"});
    set_recipe(recipe);
  };
  return {add_weights_option(command, request.weights),
          add_dtype_option(command, request.dtype, set_short_recipe,
                           "Type of activations (auto: the config's torch_dtype if it has 16 bits, "
                           "else float32)"),
          add_arithmetic_option(command, request.arithmetic),
          command
              .add_text("--recipe", listed(inference_recipe_choices()), set,
                        "Weight and arithmetic types by recipe name")
              .group(kTypesGroup)};
}

}  // namespace headroom::cli
