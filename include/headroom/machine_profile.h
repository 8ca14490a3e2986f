// MachineProfile: rates of a machine. Either curves of headroom's kernels, measured by
// `headroom calibrate`, or datasheet peaks with assumed efficiencies.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/interconnect.h"
#include "headroom/kernel_table.h"
#include "headroom/measurement.h"
#include "headroom/workload.h"

namespace headroom {

/// Bandwidth of all threads together at one working set.
struct BandwidthPoint {
  std::int64_t working_set_bytes = 0;
  double bytes_per_s = 0;
};

/// Measurements with one number of threads.
struct ThreadProfile {
  int threads = 1;
  std::vector<KernelTable> tables;
  std::vector<BandwidthPoint> read;     ///< by ascending working set
  std::vector<BandwidthPoint> write;    ///< by ascending working set
  double step_overhead_s = 0;           ///< per operator, outside its kernel
  double cold_step_overhead_s = 0;      ///< extra after weights that evict every cache
  double probe_compute_s = 0;           ///< of a fixed GEMM, to detect drift
  double probe_memory_s = 0;            ///< of a fixed memory read, to detect drift
  std::int64_t probe_memory_bytes = 0;  ///< read by that probe
};

/// Measured curves, one profile per number of threads.
struct MeasuredRates {
  std::vector<ThreadProfile> by_threads;
};

/// Datasheet peaks, all without sparsity, and the fractions of them that are assumed achievable.
/// Empty where the publisher gives no figure or the machine has no such unit.
struct DatasheetRates {
  std::optional<double> float32_flops_per_s;
  std::optional<double> tensor_float32_flops_per_s;  ///< float32 rounded to TF32 or similar
  double float16_flops_per_s = 0;                    ///< float16 and bfloat16
  std::optional<double> float8_flops_per_s;
  std::optional<double> int8_ops_per_s;
  std::optional<double> float4_flops_per_s;
  double memory_bytes_per_s = 0;
  std::int64_t memory_bytes = 0;
  std::optional<double> power_w;  ///< board power limit
  double compute_efficiency = 0;  ///< assumed fraction of peak
  double memory_efficiency = 0;   ///< assumed fraction of peak
  std::string source;
  std::string url;  ///< of the source; may be empty
};

/// GEMM peak for `dtype`; 8-bit types run at the 16-bit rate on machines without 8-bit units. Empty
/// if the datasheet has no figure.
[[nodiscard]] std::optional<double> peak_flops_per_s(const DatasheetRates& rates,
                                                     DType dtype) noexcept;

/// A machine with its rates.
struct MachineProfile {
  std::string name;
  std::string date;                         ///< of the measurement, or of the datasheet
  MachineContext context;                   ///< validity of a measurement
  std::int64_t last_level_cache_bytes = 0;  ///< usable by one program, if measured
  std::variant<MeasuredRates, DatasheetRates> rates;
  std::optional<Interconnect> interconnect;  ///< empty if unknown
};

/// Curves measured with `threads` threads (0: the largest measured number); null for a datasheet.
/// Throws Error{invalid_input} if the machine was not measured with that number.
[[nodiscard]] const ThreadProfile* curves_of(const MachineProfile& machine, int threads);
/// The table of one kernel.
[[nodiscard]] const KernelTable& table_of(const ThreadProfile& profile, KernelKind kind);
/// The highest FLOP/s of any measured GEMM.
[[nodiscard]] double peak_flops_per_s(const ThreadProfile& profile);

/// Slowdown of a machine since its calibration, as factors of time.
struct Drift {
  double compute = 1;
  double memory = 1;
};

/// The profile in its JSON form (reports/machines.schema.json).
[[nodiscard]] std::string profile_to_json(const MachineProfile& profile);
/// Throws Error{invalid_input} naming `where` and what is wrong.
[[nodiscard]] MachineProfile profile_from_json(std::string_view text, const std::string& where);

/// Folder of this user's measured machines: $XDG_DATA_HOME/headroom/machines.
[[nodiscard]] std::filesystem::path profile_folder();
/// The profile that `calibrate` stored here for `backend`; empty if none.
[[nodiscard]] std::optional<MachineProfile> load_own_profile(std::string_view backend);
/// Creates that folder. Throws Error{missing_resource} if it is not writable, so that a calibration
/// fails before it starts.
void prepare_profile_folder();
/// Stores `profile` in that folder, whole or not at all. Throws Error{missing_resource}.
std::filesystem::path store_own_profile(const MachineProfile& profile, std::string_view backend);

/// Machines of the built-in catalogue, from datasheets.
[[nodiscard]] std::vector<MachineProfile> catalogue_machines();
/// Finds a machine by catalogue name, or reads the profile of a file. Throws Error{invalid_input}
/// that suggests the closest names.
[[nodiscard]] MachineProfile find_machine(const std::string& name_or_file);

}  // namespace headroom
