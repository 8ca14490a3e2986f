#include "headroom/device_rates.h"

#include <algorithm>
#include <utility>

#include "architecture_rates.h"
#include "headroom/predict.h"

namespace headroom {
namespace {

void add_host(const MachineProfile& machine, const detail::ArchitectureRates& known,
              DeviceRates& rates) {
  rates.host_bytes_per_s = known.host_bytes_per_s;
  rates.in_host_memory = known.in_host_memory;
  if (!machine.host) return;
  rates.in_host_memory = !machine.host->bytes_per_s;
  rates.host_bytes_per_s = machine.host->bytes_per_s.value_or(rates.host_bytes_per_s);
  rates.host_link_is_assumed = false;
}

/// Latency of NCCL's all-gather and reduce-scatter on 2 to 8 devices with NVLink, which SimuMax
/// measured on B200 (configs/system/b200_bf16_ceperm.json: 23 to 26 µs, and 8 to 9 µs a step).
constexpr double kNcclLatency = 24e-6;
constexpr double kNcclStep = 8e-6;
/// A step between nodes takes this much longer: 14.0 µs over the network for 3.4 over NVLink, by
/// NCCL's own model of rings (src/graph/tuning.cc, hwLat, Simple).
constexpr double kNcclNodeStep = 10.6e-6;

/// A measured machine's rates are reached already.
constexpr double kMeasuredEfficiency = 1;

/// The layers' arithmetic on `machine`: PyTorch converts weights of 8 and 4 bits to the
/// activations' type, `dtype`, in which its curves were measured.
DType measured_arithmetic(const MachineProfile& machine, DType arithmetic, DType dtype) {
  const auto* const measured = std::get_if<MeasuredRates>(&machine.rates);
  const bool is_pytorch = measured != nullptr && measured->engine == MeasuredEngine::pytorch;
  return is_pytorch && bytes_of(arithmetic) == 1 ? dtype : arithmetic;
}

/// Collectives reach this of a port: 44 of 50 GB/s by DeepEP between 8 nodes (docs/legacy.md, whose
/// logical 51 count a token's own node), 85 to 96 of 100 by NCCL between 3
/// (github.com/NVIDIA/nccl-tests/issues/119). Architectures differ in links inside the node.
constexpr double kPortFraction = 0.85;

/// As given for the whole network; fitted together with the links inside the node.
double port_fraction(const DatasheetRates& sheet, Purpose purpose, DType dtype, double network) {
  if (sheet.given.network) return *sheet.given.network;
  const double known = known_efficiency(sheet.architecture, purpose, dtype).fractions.network;
  return std::min(1.0, kPortFraction * (network / known));
}

void add_rates(const MachineProfile& machine, const ThreadProfile& profile, Purpose purpose,
               DType dtype, DeviceRates& rates) {
  const MeasuredDevice device =
      std::get<MeasuredRates>(machine.rates).device.value_or(MeasuredDevice{});
  rates.flops_per_s = peak_flops_per_s(profile);
  rates.memory_bytes_per_s = profile.read.back().bytes_per_s;
  rates.memory_bytes = device.memory_bytes;
  const detail::ArchitectureRates& shared = detail::architecture_rates(device.architecture);
  add_host(machine, shared, rates);
  rates.runtime = runtime_memory(device.architecture);
  // Headroom's own profiles have collectives of processes, but no link.
  const bool has_network = machine.collectives && machine.interconnect;
  const double assumed = known_efficiency(Architecture::cpu, purpose, dtype).fractions.network;
  const double network = has_network ? kMeasuredEfficiency : assumed;
  rates.efficiency = {kMeasuredEfficiency, kMeasuredEfficiency, network};
  rates.efficiency_origin = EfficiencyOrigin::measured;
  rates.efficiency_source =
      has_own_kernels(machine) ? "headroom calibrate" : "PyTorch's fastest GEMM and reads";
  if (!has_network) rates.efficiency_source += "; the network assumed";
  if (has_own_kernels(machine)) return;
  rates.kernel_s = purpose == Purpose::train ? shared.training_kernel_s
                                             : serving_kernel_seconds(device.architecture, dtype);
  rates.layer_gemm_kernel_s = rates.kernel_s;
}

void add_rates(const MachineProfile& machine, const DatasheetRates& sheet, Purpose purpose,
               DType dtype, DeviceRates& rates) {
  const EffectiveRates effective = effective_rates(sheet, purpose, dtype);
  rates.flops_per_s = effective.peak_flops_per_s;
  rates.processors = rates.layer_gemm_processors = effective.processors;
  rates.memory_bytes_per_s = sheet.memory_bytes_per_s;
  rates.memory_bytes = sheet.memory.total.bytes;
  const detail::ArchitectureRates& shared = detail::architecture_rates(sheet.architecture);
  add_host(machine, shared, rates);
  rates.driver_bytes = sheet.memory.total.bytes - sheet.memory.usable.bytes;
  rates.runtime = runtime_memory(sheet.architecture);
  const SourcedEfficiency reached = efficiency_of(sheet, purpose, dtype);
  rates.efficiency = reached.fractions;
  rates.port_fraction = port_fraction(sheet, purpose, dtype, reached.fractions.network);
  rates.efficiency_origin = reached.origin;
  rates.efficiency_source = efficiency_source_of(sheet, purpose, dtype);
  rates.kernel_s = purpose == Purpose::train ? reached.fractions.fixed * shared.training_kernel_s
                                             : effective.kernel_s;
  rates.layer_gemm_kernel_s = rates.kernel_s;
  rates.time_range = reached.range;
}

}  // namespace

DeviceRates device_rates(const MachineProfile& machine, Purpose purpose, DType dtype) {
  DeviceRates rates;
  rates.name = machine.name;
  if (purpose == Purpose::train || !has_own_kernels(machine)) {
    rates.collective_latency_s = kNcclLatency;
    rates.collective_step_s = kNcclStep;
    rates.collective_node_step_s = kNcclNodeStep;
  }
  const Interconnect assumed = assumed_interconnect();
  rates.link = machine.interconnect.value_or(assumed);
  rates.network_is_assumed = !rates.link.inter_node_bytes_per_s.has_value();
  rates.link_is_assumed = !machine.interconnect.has_value();
  if (rates.network_is_assumed) rates.link.inter_node_bytes_per_s = assumed.inter_node_bytes_per_s;
  rates.network_is_assumed = rates.network_is_assumed || rates.link_is_assumed;
  if (const ThreadProfile* const curves = curves_of(machine, 0, dtype)) {
    add_rates(machine, *curves, purpose, dtype, rates);
  } else {
    add_rates(machine, std::get<DatasheetRates>(machine.rates), purpose, dtype, rates);
  }
  return rates;
}

DeviceRates device_rates(const MachineProfile& machine, Purpose purpose, DType dtype,
                         std::optional<DType> arithmetic) {
  DeviceRates rates = device_rates(machine, purpose, dtype);
  if (!arithmetic) return rates;
  rates.conversion = conversion_note(machine, *arithmetic);
  const DeviceRates layers =
      device_rates(machine, purpose, measured_arithmetic(machine, *arithmetic, dtype));
  rates.time_range = layers.time_range;
  rates.layer_gemm_processors = layers.processors;
  rates.layer_gemm_kernel_s = layers.kernel_s;
  rates.layer_gemm_matrix = layers.efficiency.matrix;
  // The planner multiplies by the efficiency of `dtype`.
  rates.layer_gemm_flops_per_s =
      layers.flops_per_s * layers.efficiency.matrix / rates.efficiency.matrix;
  return rates;
}

DeviceRates rates_without_speed(std::string name, Integer memory_bytes) {
  DeviceRates rates;
  rates.name = std::move(name);
  rates.memory_bytes = memory_bytes;
  rates.runtime = runtime_memory(Architecture::cpu);
  rates.in_host_memory = true;
  rates.link = assumed_interconnect();
  rates.efficiency_origin = EfficiencyOrigin::assumed;
  rates.efficiency_source = "speed not measured";
  return rates;
}

}  // namespace headroom
