// The table of llama.cpp's rates. tests/bench/published_llama.py judges it on every result of
// llama-bench (reports/published.md), docs/device-time.md says how it was fitted.
#include "headroom/llama_cpp_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "architecture_rates.h"

namespace headroom {
namespace {

using detail::LlamaCppDevices;

/// One class of devices with one kind of layers. Fractions are of half_precision_peak() and of the
/// memory's bandwidth; `fixed` multiplies serving_kernel_seconds().
struct ClassRates {
  LlamaCppDevices devices;
  LlamaCppLayers layers;
  double matrix_16_bits;
  double matrix_blocks;
  double memory;
  double fixed;
  double stored_scores;  ///< of `memory`, by attention that stores its scores
  TimeRanges range;
  std::string_view source;
};

/// llama.cpp's scores have 32 bits, and are converted before the product with the values. Fitted
/// with the rows of NVIDIA, all of 2024; Metal's kernels show no such loss.
constexpr double kStoredScores = 0.2;
constexpr double kStoredScoresOnApple = 1;

// Fitted by least absolute errors of logarithms, prompts and decode steps alike, to rows of one
// device. Those of NVIDIA are by builds of May 2024, whose fixed times are 2.9 times those of
// serving engines, and, with half the weight, by builds of 2025 and 2026 with CUDA graphs: 0.85
// times. H100's rows are of 2024 and in 16 bits: 3.5 times, lowered as for the others, and blocks
// in their proportion. RDNA's are of ROCm and Vulkan, whose prompts differ by up to four times.
// Apple's are by builds of 2023 to 2026; those of experts scatter most, since kernels that multiply
// by experts came in 2024 and 2025.
// Ranges hold nine of ten rows of one device, of each device by rates without it, and of later
// builds.
constexpr std::array<ClassRates, 7> kClasses{{
    {LlamaCppDevices::nvidia,
     LlamaCppLayers::dense,
     0.50,
     0.40,
     0.93,
     1.8,
     kStoredScores,
     {0.45, 0.45},
     "llama-bench of llama.cpp on 13 of NVIDIA's devices"},
    {LlamaCppDevices::hopper,
     LlamaCppLayers::dense,
     0.30,
     0.24,
     0.75,
     2.2,
     kStoredScores,
     {0.45, 0.45},
     "llama-bench of llama.cpp on H100 PCIe"},
    {LlamaCppDevices::nvidia,
     LlamaCppLayers::experts,
     0.155,
     0.155,
     0.93,
     1.8,
     kStoredScores,
     {1.4, 0.6},
     "llama-bench of llama.cpp with gpt-oss on DGX Spark"},
    {LlamaCppDevices::rdna,
     LlamaCppLayers::dense,
     0.16,
     0.16,
     0.74,
     1.1,
     kStoredScores,
     {1.3, 0.4},
     "llama-bench of llama.cpp on Radeon AI PRO R9700 and Ryzen AI Max+ 395"},
    {LlamaCppDevices::rdna,
     LlamaCppLayers::experts,
     0.08,
     0.08,
     0.95,
     3.2,
     kStoredScores,
     {2.2, 0.4},
     "llama-bench of llama.cpp on Radeon AI PRO R9700 and Ryzen AI Max+ 395"},
    {LlamaCppDevices::apple,
     LlamaCppLayers::dense,
     0.70,
     0.58,
     0.76,
     2.5,
     kStoredScoresOnApple,
     {0.45, 0.45},
     "llama-bench of llama.cpp on nine of Apple's devices"},
    {LlamaCppDevices::apple,
     LlamaCppLayers::experts,
     0.28,
     0.31,
     0.79,
     3.0,
     kStoredScoresOnApple,
     {1.0, 0.45},
     "llama-bench of llama.cpp on M2 Ultra and M2 Max"},
}};

/// Hopper's results are of dense models alone.
std::optional<LlamaCppDevices> devices_of(Architecture architecture, LlamaCppLayers layers) {
  const auto devices = detail::architecture_rates(architecture).llama_cpp;
  const bool lends = devices == LlamaCppDevices::hopper && layers == LlamaCppLayers::experts;
  return lends ? LlamaCppDevices::nvidia : devices;
}

double cache_of(const ClassRates& rates, AttentionImplementation attention) noexcept {
  return attention == AttentionImplementation::eager ? rates.stored_scores : 1;
}

bool is_fitted_to_own_runs(const DatasheetRates& sheet) noexcept {
  return std::ranges::find(sheet.fitted, Purpose::serve, &FittedEfficiency::purpose) !=
         sheet.fitted.end();
}

/// FLOP/s of GEMMs with sums in 16 bits, as ggml's CUDA backend asks for (CUBLAS_COMPUTE_16F in
/// ggml-cuda.cu): half the peak in int8, twice the 16-bit peak that GeForce's datasheets state,
/// whose sums have 32 bits.
double half_precision_peak(const DatasheetRates& sheet) noexcept {
  return std::max(sheet.float16_flops_per_s, sheet.int8_ops_per_s.value_or(0) / 2);
}

/// Of the datasheet's 16-bit peak.
double matrix_of(const ClassRates& rates, LlamaCppWeights weights,
                 const DatasheetRates& sheet) noexcept {
  const double fraction =
      weights == LlamaCppWeights::blocks ? rates.matrix_blocks : rates.matrix_16_bits;
  return std::min(1.0, fraction * half_precision_peak(sheet) / sheet.float16_flops_per_s);
}

/// A number of a block of several values, as GGUF stores them, not of each value.
bool is_ggml_block(const StorageRule& rule) noexcept {
  return rule.format && rule.format->values.block.in > 1 && rule.format->beside.empty();
}

bool has_routed_experts(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    if (stack.ffn_of(variant).experts) return true;
  }
  return false;
}

}  // namespace

bool has_ggml_blocks(const ModelSpec& spec) {
  return std::ranges::any_of(spec.storage.rules, is_ggml_block);
}

LlamaCppKernels llama_cpp_kernels(const ModelSpec& spec, AttentionImplementation attention) {
  return {has_ggml_blocks(spec) ? LlamaCppWeights::blocks : LlamaCppWeights::bits16,
          has_routed_experts(spec) ? LlamaCppLayers::experts : LlamaCppLayers::dense, attention};
}

std::optional<SourcedEfficiency> llama_cpp_efficiency(const DatasheetRates& sheet,
                                                      const LlamaCppKernels& kernels) noexcept {
  const auto devices = devices_of(sheet.architecture, kernels.layers);
  if (!devices || is_fitted_to_own_runs(sheet)) return std::nullopt;
  const auto* const rates = std::ranges::find_if(kClasses, [&](const ClassRates& one) {
    return one.devices == *devices && one.layers == kernels.layers;
  });
  const Efficiency known =
      known_efficiency(sheet.architecture, Purpose::serve, DType::float16).fractions;
  const Efficiency reached{matrix_of(*rates, kernels.weights, sheet), rates->memory, known.network,
                           cache_of(*rates, kernels.attention), rates->fixed};
  return with_given({reached, EfficiencyOrigin::published, rates->source, rates->range},
                    sheet.given);
}

std::optional<std::string> note_on_llama_cpp(const DatasheetRates& sheet,
                                             const LlamaCppKernels& kernels) {
  const std::string_view weights = kernels.weights == LlamaCppWeights::blocks
                                       ? "weights in ggml's blocks: "
                                       : std::string_view{};
  if (llama_cpp_efficiency(sheet, kernels)) {
    return fmt::format("{}times are of llama.cpp's kernels", weights);
  }
  if (is_fitted_to_own_runs(sheet)) return std::nullopt;
  return fmt::format(
      "{}no results of llama.cpp are known on {} devices, so times are those of serving engines",
      weights, name_of(sheet.architecture));
}

}  // namespace headroom
