#include "reached_rates.h"

namespace headroom::detail {
namespace {

/// llama.cpp's kernels have tiles of their own, whose waves the fraction of peak includes.
constexpr std::int64_t kNoTiles = 0;

EffectiveRates rates_at(const DatasheetRates& sheet, const Efficiency& reached) {
  const double bytes_per_s = sheet.memory_bytes_per_s * reached.memory;
  return {sheet.float16_flops_per_s,
          sheet.float16_flops_per_s * reached.matrix,
          bytes_per_s,
          kNoTiles,
          reached.fixed * serving_kernel_seconds(sheet.architecture, DType::float16),
          bytes_per_s * reached.cache};
}

}  // namespace

std::optional<SourcedEfficiency> llama_cpp_efficiency_of(const DatasheetRates& sheet,
                                                         const ModelSpec& spec,
                                                         const Workload& workload,
                                                         std::optional<Engine> engine) {
  const bool runs = engine ? *engine == Engine::llama_cpp : has_ggml_blocks(spec);
  if (!runs || workload.arithmetic_type() != workload.dtype) return std::nullopt;
  return llama_cpp_efficiency(sheet, llama_cpp_kernels(spec, workload.attention));
}

ReachedRates reached_rates(const DatasheetRates& sheet, DType dtype,
                           const std::optional<SourcedEfficiency>& llama_cpp) {
  if (llama_cpp) {
    return {rates_at(sheet, llama_cpp->fractions), *llama_cpp, sheet.memory_bytes_per_s};
  }
  return {effective_rates(sheet, Purpose::serve, dtype),
          efficiency_of(sheet, Purpose::serve, dtype), sheet.memory_bytes_per_s};
}

}  // namespace headroom::detail
