#include "headroom/plan.h"
#include "headroom/predict.h"

namespace headroom {
namespace {

/// A measured machine's rates are reached already.
constexpr double kMeasuredEfficiency = 1;

void add_rates(const ThreadProfile& profile, DeviceRates& rates) {
  rates.flops_per_s = peak_flops_per_s(profile);
  rates.memory_bytes_per_s = profile.read.back().bytes_per_s;
  rates.efficiency.matrix = kMeasuredEfficiency;
  rates.efficiency.memory = kMeasuredEfficiency;
}

void add_rates(const DatasheetRates& sheet, DType dtype, DeviceRates& rates) {
  rates.flops_per_s = effective_rates(sheet, dtype).flops_per_s / sheet.compute_efficiency;
  rates.memory_bytes_per_s = sheet.memory_bytes_per_s;
  rates.memory_bytes = sheet.memory_bytes;
}

}  // namespace

DeviceRates device_rates(const MachineProfile& machine, DType dtype) {
  DeviceRates rates;
  rates.name = machine.name;
  const Interconnect assumed = assumed_interconnect();
  rates.link = machine.interconnect.value_or(assumed);
  rates.network_is_assumed = !rates.link.inter_node_bytes_per_s.has_value();
  rates.link_is_assumed = !machine.interconnect.has_value();
  if (rates.network_is_assumed) rates.link.inter_node_bytes_per_s = assumed.inter_node_bytes_per_s;
  rates.network_is_assumed = rates.network_is_assumed || rates.link_is_assumed;
  if (const ThreadProfile* const curves = curves_of(machine, 0)) {
    add_rates(*curves, rates);
  } else {
    add_rates(std::get<DatasheetRates>(machine.rates), dtype, rates);
  }
  return rates;
}

}  // namespace headroom
