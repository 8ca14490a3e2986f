#include "enum_table.h"
#include "headroom/storage.h"

namespace headroom {
namespace {

constexpr std::array<InferenceRecipeInfo, 8> kInferenceRecipes{{
    {InferenceRecipe::w8a8, "w8a8", WeightType::int8, DType::int8,
     "SmoothQuant, arXiv 2211.10438, section 4: GEMMs of the layers in INT8"},
    {InferenceRecipe::w8a8_fp8, "w8a8-fp8", WeightType::float8, DType::float8,
     "vLLM, quantization fp8: GEMMs of the layers in FP8 (E4M3)"},
    {InferenceRecipe::w8a8_mxfp8, "w8a8-mxfp8", kMxfp8, DType::float8,
     "vLLM and SGLang, quantization mxfp8 (OCP Microscaling Formats 1.0)"},
    {InferenceRecipe::w8a16, "w8a16", WeightType::int8, std::nullopt,
     "GPTQ, arXiv 2210.17323: weights only, 16-bit GEMMs"},
    {InferenceRecipe::w4a16, "w4a16", WeightType::int4, std::nullopt,
     "AWQ, arXiv 2306.00978: weights only, 16-bit GEMMs"},
    {InferenceRecipe::w4a4, "w4a4", WeightType::int4, DType::int4,
     "QuaRot, arXiv 2404.00456: GEMMs of the layers in INT4"},
    {InferenceRecipe::w4a4_mxfp4, "w4a4-mxfp4", WeightType::mxfp4, DType::float4,
     "AMD Quark, MXFP4 weights and activations (OCP Microscaling Formats 1.0)"},
    {InferenceRecipe::w4a4_nvfp4, "w4a4-nvfp4", WeightType::nvfp4, DType::float4,
     "NVIDIA Model Optimizer, NVFP4 weights and activations"},
}};
static_assert(detail::lists_every<kInferenceRecipes>(&InferenceRecipeInfo::recipe));

}  // namespace

const std::array<InferenceRecipeInfo, 8>& inference_recipes() noexcept { return kInferenceRecipes; }

const InferenceRecipeInfo& info(InferenceRecipe recipe) noexcept {
  return kInferenceRecipes[static_cast<std::size_t>(recipe)];
}

}  // namespace headroom
