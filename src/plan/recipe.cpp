#include <cstddef>

#include "enum_table.h"
#include "headroom/parallel_plan.h"
#include "headroom/storage.h"

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

// Transformer Engine saves an 8-bit copy of a GEMM's input alone (pytorch/module/linear.py, v2.9);
// with scaling by tensor, Megatron-LM does so also of the attention's output, which attention saves
// in 16 bits, and otherwise reads the latter (core/transformer/attention.py, save_original_input).
constexpr SavedInputs kByTensor{0, 0, SavedInputs::Shared::copied};
constexpr SavedInputs kMicroscaled{kMxfp8.grain.in, 1};  // E8M0
constexpr SavedInputs kTiles{128, 4};  // 1 × 128 with float32 scales: 2412.19437, section 3.3.2

// Transformer Engine keeps 16-bit weights, and an FP8 copy of each layer matrix with its transpose,
// since Hopper's FP8 GEMMs take both operands along the contraction only, and MXFP8's scales stand
// for 32 values along it.
constexpr std::array<RecipeInfo, 7> kRecipes{{
    {.recipe = Recipe::float32,
     .name = "float32",
     .weight_bytes = 4,
     .layer_matrix_bytes = 4,
     .gradient_bytes = 4,
     .state_bytes = 4,
     .source = "all in float32: 16 bytes per parameter with Adam"},
    {.recipe = Recipe::bfloat16,
     .name = "bfloat16",
     .weight_bytes = 2,
     .layer_matrix_bytes = 2,
     .gradient_bytes = 2,
     .state_bytes = 2,
     .source = "all in 16 bit: 8 bytes with Adam"},
    {.recipe = Recipe::mixed,
     .name = "mixed",
     .weight_bytes = 2,
     .layer_matrix_bytes = 2,
     .gradient_bytes = 2,
     .master_bytes = 4,
     .state_bytes = 4,
     .source = "arXiv 1910.02054, section 3.1: 16 bytes with Adam"},
    {.recipe = Recipe::megatron,
     .name = "megatron",
     .weight_bytes = 2,
     .layer_matrix_bytes = 2,
     .gradient_bytes = 4,
     .master_bytes = 4,
     .state_bytes = 4,
     .source = "Megatron-LM, float32 gradients: 18 bytes with Adam"},
    {.recipe = Recipe::fp8_transformer_engine,
     .name = "fp8-transformer-engine",
     .weight_bytes = 2,
     .layer_matrix_bytes = 4,
     .gradient_bytes = 4,
     .master_bytes = 4,
     .state_bytes = 4,
     .arithmetic = DType::float8,
     .saved_inputs = kByTensor,
     .source = "Transformer Engine, fp8_autocast with cached FP8 weights: 20 bytes with Adam"},
    {.recipe = Recipe::mxfp8_transformer_engine,
     .name = "mxfp8-transformer-engine",
     .weight_bytes = 2,
     .layer_matrix_bytes = 4,
     .scaled_copies = 2,
     .gradient_bytes = 4,
     .master_bytes = 4,
     .state_bytes = 4,
     .arithmetic = DType::float8,
     .saved_inputs = kMicroscaled,
     .source = "Transformer Engine, MXFP8BlockScaling with cached weights: 20.06 bytes with Adam"},
    {.recipe = Recipe::fp8_deepseek_v3,
     .name = "fp8-deepseek-v3",
     .weight_bytes = 2,
     .layer_matrix_bytes = 1,
     .gradient_bytes = 4,
     .master_bytes = 4,
     .state_bytes = 2,
     .arithmetic = DType::float8,
     .dispatch = DType::float8,
     .saved_inputs = kTiles,
     .source = "arXiv 2412.19437, section 3.3: 13 bytes with Adam"},
}};
static_assert(detail::lists_every<kRecipes>(&RecipeInfo::recipe));

}  // namespace

Integer SavedInputs::bytes(Integer values) const {
  const Integer scales = block == 0 ? 0 : ceil_div(values, Integer{block}) * scale_bytes;
  return checked_add(values, scales);
}

const std::array<OptimizerInfo, 6>& optimizers() noexcept { return kOptimizers; }

const std::array<RecipeInfo, 7>& recipes() noexcept { return kRecipes; }

const OptimizerInfo& info(Optimizer optimizer) noexcept {
  return kOptimizers[static_cast<std::size_t>(optimizer)];
}

const RecipeInfo& info(Recipe recipe) noexcept {
  return kRecipes[static_cast<std::size_t>(recipe)];
}

}  // namespace headroom
