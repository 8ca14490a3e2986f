// Rates and memory of one device, as plans use them: a machine's for one purpose and type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "headroom/machine_profile.h"
#include "headroom/workload.h"

namespace headroom {

/// Rates and memory of one device.
struct DeviceRates {
  std::string name;
  double flops_per_s = 0;
  std::optional<double> layer_gemm_flops_per_s;  ///< of is_layer_gemm, if in another type
  std::optional<double> layer_gemm_matrix;       ///< their fraction of peak, likewise
  std::optional<std::string> conversion;         ///< conversion_note() of that type
  std::int64_t processors = 0;                   ///< as EffectiveRates::processors
  std::int64_t layer_gemm_processors = 0;        ///< likewise, of is_layer_gemm
  double memory_bytes_per_s = 0;
  Integer memory_bytes = 0;  ///< by the driver
  Integer driver_bytes = 0;  ///< part of it that no process gets
  RuntimeMemory runtime;
  Interconnect link;
  bool link_is_assumed = true;       ///< inside a node
  bool network_is_assumed = true;    ///< between nodes; `link` then has the assumed rate
  double host_bytes_per_s = 32e9;    ///< to the host's memory, in one direction
  bool host_link_is_assumed = true;  ///< by the architecture
  bool in_host_memory = false;       ///< the device computes in the host's memory
  Efficiency efficiency;
  double port_fraction = 1;  ///< of a port between nodes, that collectives reach
  EfficiencyOrigin efficiency_origin = EfficiencyOrigin::given;
  std::string efficiency_source;
  TimeRanges time_range;                ///< as SourcedEfficiency::range
  double kernel_s = 0;                  ///< fixed time of a kernel; serving: serving_kernel_seconds
  double layer_gemm_kernel_s = 0;       ///< likewise, of is_layer_gemm
  double collective_latency_s = 10e-6;  ///< of one collective; assumed
  double collective_step_s = 0;         ///< of one of its steps from rank to rank, besides
  double collective_node_step_s = 0;    ///< of such a step between nodes, besides that

  /// False for a machine of which only the memory is known: its plans have no time.
  [[nodiscard]] bool have_speed() const noexcept { return flops_per_s > 0; }
};

/// The rates of `machine` for `purpose` with arithmetic in `dtype`. A measured machine's memory is
/// unknown here and stays 0.
[[nodiscard]] DeviceRates device_rates(const MachineProfile& machine, Purpose purpose, DType dtype);
/// Those rates with the layers' GEMMs in `arithmetic`, at the efficiency of that type; empty:
/// `dtype`.
[[nodiscard]] DeviceRates device_rates(const MachineProfile& machine, Purpose purpose, DType dtype,
                                       std::optional<DType> arithmetic);

/// The memory of a machine of processors whose speed was not measured.
[[nodiscard]] DeviceRates rates_without_speed(std::string name, Integer memory_bytes);

}  // namespace headroom
