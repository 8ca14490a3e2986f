#include <cstddef>

#include "enum_table.h"
#include "headroom/parallel_plan.h"

namespace headroom {
namespace {

constexpr std::array<OptimizerInfo, 6> kOptimizers{{
    {Optimizer::sgd, "sgd", "no state"},
    {Optimizer::momentum, "momentum", "one state per parameter"},
    {Optimizer::adam, "adam", "arXiv 1412.6980: two states per parameter; AdamW alike"},
    {Optimizer::adam_8bit, "adam-8bit", "arXiv 2110.02861: two states of one byte, float32 scales"},
    {Optimizer::adafactor, "adafactor", "arXiv 1804.04235: a row and a column per matrix"},
    {Optimizer::muon, "muon", "one state for the layers' matrices, Adam's for all else"},
}};
static_assert(detail::lists_every<kOptimizers>(&OptimizerInfo::optimizer));

// Transformer Engine keeps 16-bit weights, and an FP8 copy of each layer matrix with its transpose,
// since Hopper's FP8 GEMMs take both operands along the contraction only.
constexpr std::array<RecipeInfo, 6> kRecipes{{
    {Recipe::float32,
     "float32",
     4,
     4,
     4,
     0,
     4,
     {},
     {},
     "all in float32: 16 bytes per parameter with Adam"},
    {Recipe::bfloat16, "bfloat16", 2, 2, 2, 0, 2, {}, {}, "all in 16 bit: 8 bytes with Adam"},
    {Recipe::mixed,
     "mixed",
     2,
     2,
     2,
     4,
     4,
     {},
     {},
     "arXiv 1910.02054, section 3.1: 16 bytes with Adam"},
    {Recipe::megatron,
     "megatron",
     2,
     2,
     4,
     4,
     4,
     {},
     {},
     "Megatron-LM, float32 gradients: 18 bytes with Adam"},
    {Recipe::fp8_transformer_engine,
     "fp8-transformer-engine",
     2,
     4,
     4,
     4,
     4,
     DType::float8,
     {},
     "Transformer Engine, fp8_autocast with cached FP8 weights: 20 bytes with Adam"},
    {Recipe::fp8_deepseek_v3, "fp8-deepseek-v3", 2, 1, 4, 4, 2, DType::float8, DType::float8,
     "arXiv 2412.19437, section 3.3: 13 bytes with Adam"},
}};
static_assert(detail::lists_every<kRecipes>(&RecipeInfo::recipe));

}  // namespace

const std::array<OptimizerInfo, 6>& optimizers() noexcept { return kOptimizers; }

const std::array<RecipeInfo, 6>& recipes() noexcept { return kRecipes; }

const OptimizerInfo& info(Optimizer optimizer) noexcept {
  return kOptimizers[static_cast<std::size_t>(optimizer)];
}

const RecipeInfo& info(Recipe recipe) noexcept {
  return kRecipes[static_cast<std::size_t>(recipe)];
}

}  // namespace headroom
