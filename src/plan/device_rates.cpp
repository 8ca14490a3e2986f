#include "headroom/plan.h"
#include "headroom/predict.h"

namespace headroom {
namespace {

/// A measured machine's rates are reached already.
constexpr double kMeasuredEfficiency = 1;

void add_rates(const ThreadProfile& profile, Purpose purpose, DType dtype, DeviceRates& rates) {
  rates.flops_per_s = peak_flops_per_s(profile);
  rates.memory_bytes_per_s = profile.read.back().bytes_per_s;
  rates.runtime = runtime_memory(Architecture::cpu);
  // The network was not measured.
  const double network = known_efficiency(Architecture::cpu, purpose, dtype).fractions.network;
  rates.efficiency = {kMeasuredEfficiency, kMeasuredEfficiency, network};
  rates.efficiency_origin = EfficiencyOrigin::measured;
  rates.efficiency_source = "headroom calibrate; the network assumed";
}

void add_rates(const DatasheetRates& sheet, Purpose purpose, DType dtype, DeviceRates& rates) {
  rates.flops_per_s = effective_rates(sheet, purpose, dtype).peak_flops_per_s;
  rates.memory_bytes_per_s = sheet.memory_bytes_per_s;
  rates.memory_bytes = sheet.memory.total.bytes;
  rates.driver_bytes = sheet.memory.total.bytes - sheet.memory.usable.bytes;
  rates.runtime = runtime_memory(sheet.architecture);
  const SourcedEfficiency reached = efficiency_of(sheet, purpose, dtype);
  rates.efficiency = reached.fractions;
  rates.efficiency_origin = reached.origin;
  rates.efficiency_source = reached.source;
}

}  // namespace

DeviceRates device_rates(const MachineProfile& machine, Purpose purpose, DType dtype) {
  DeviceRates rates;
  rates.name = machine.name;
  const Interconnect assumed = assumed_interconnect();
  rates.link = machine.interconnect.value_or(assumed);
  rates.network_is_assumed = !rates.link.inter_node_bytes_per_s.has_value();
  rates.link_is_assumed = !machine.interconnect.has_value();
  if (rates.network_is_assumed) rates.link.inter_node_bytes_per_s = assumed.inter_node_bytes_per_s;
  rates.network_is_assumed = rates.network_is_assumed || rates.link_is_assumed;
  if (const ThreadProfile* const curves = curves_of(machine, 0)) {
    add_rates(*curves, purpose, dtype, rates);
  } else {
    add_rates(std::get<DatasheetRates>(machine.rates), purpose, dtype, rates);
  }
  return rates;
}

DeviceRates device_rates(const MachineProfile& machine, Purpose purpose, DType dtype,
                         std::optional<DType> arithmetic) {
  DeviceRates rates = device_rates(machine, purpose, dtype);
  if (!arithmetic) return rates;
  rates.conversion = conversion_note(machine, *arithmetic);
  const DeviceRates layers = device_rates(machine, purpose, *arithmetic);
  // The planner multiplies by the efficiency of `dtype`.
  rates.layer_gemm_flops_per_s =
      layers.flops_per_s * layers.efficiency.matrix / rates.efficiency.matrix;
  return rates;
}

}  // namespace headroom
