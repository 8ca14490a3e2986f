#include "headroom/engine_rates.h"

#include "headroom/llama_cpp_rates.h"
#include "headroom/predict.h"
#include "headroom/storage.h"

namespace headroom {
namespace {

DeviceRates with_llama_cpp(DeviceRates rates, const SourcedEfficiency& reached,
                           const DatasheetRates& sheet) {
  rates.flops_per_s = sheet.float16_flops_per_s;
  rates.layer_gemm_flops_per_s.reset();
  rates.layer_gemm_matrix.reset();
  rates.processors = rates.layer_gemm_processors = 0;
  rates.efficiency = reached.fractions;
  rates.efficiency_origin = reached.origin;
  rates.efficiency_source = reached.source;
  rates.time_range = reached.range;
  rates.kernel_s =
      reached.fractions.fixed * serving_kernel_seconds(sheet.architecture, DType::float16);
  rates.layer_gemm_kernel_s = rates.kernel_s;
  return rates;
}

/// Every mix of quantize has the rates of blocks, most of whose results are of Q4_K and Q8_0:
/// ggml's kernels multiply all blocks by activations in int8, and the rate of memory counts their
/// bytes. Groups of codes have those of serving engines for 16 bits, as int4: kernels widen the
/// codes to the type of the activations.
LlamaCppKernels kernels_of(const ModelSpec& spec, const PlanQuery& query) {
  return llama_cpp_kernels(converted(spec, query.weights), query.attention);
}

/// The datasheet of `machine`, where llama.cpp's kernels run on it.
const DatasheetRates* llama_cpp_sheet(const MachineProfile& machine, const ModelSpec& spec,
                                      const PlanQuery& query, std::optional<Engine> asked) {
  if (!runs_in_llama_cpp(spec, query, asked)) return nullptr;
  return std::get_if<DatasheetRates>(&machine.rates);
}

}  // namespace

bool runs_in_llama_cpp(const ModelSpec& spec, const PlanQuery& query, std::optional<Engine> asked) {
  const bool other_arithmetic = query.arithmetic && *query.arithmetic != query.dtype;
  if (query.purpose == Purpose::train || other_arithmetic) return false;
  if (asked) return *asked == Engine::llama_cpp;
  return has_ggml_blocks(converted(spec, query.weights));
}

DeviceRates engine_rates(const MachineProfile& machine, const ModelSpec& spec,
                         const PlanQuery& query, std::optional<Engine> asked) {
  DeviceRates rates = device_rates(machine, query.purpose, query.dtype, query.arithmetic);
  const DatasheetRates* const sheet = llama_cpp_sheet(machine, spec, query, asked);
  if (sheet == nullptr) return rates;
  const auto reached = llama_cpp_efficiency(*sheet, kernels_of(spec, query));
  return reached ? with_llama_cpp(std::move(rates), *reached, *sheet) : rates;
}

std::optional<std::string> note_on_engine(const MachineProfile& machine, const ModelSpec& spec,
                                          const PlanQuery& query, std::optional<Engine> asked) {
  const DatasheetRates* const sheet = llama_cpp_sheet(machine, spec, query, asked);
  if (sheet == nullptr) return std::nullopt;
  const LlamaCppKernels kernels = kernels_of(spec, query);
  const bool as_asked = asked && llama_cpp_efficiency(*sheet, kernels);
  return as_asked ? std::nullopt : note_on_llama_cpp(*sheet, kernels);
}

}  // namespace headroom
