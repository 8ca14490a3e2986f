// MachineProfile: what a machine can do. Measured by `headroom calibrate` as curves of this tool's
// own kernels, or taken from a datasheet, which is an assumption and says so.
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

/// Bytes a second that all threads read together, by working set.
struct BandwidthPoint {
  std::int64_t working_set_bytes = 0;
  double bytes_per_s = 0;
};

/// Everything that was measured with one number of threads.
struct ThreadProfile {
  int threads = 1;
  std::vector<KernelTable> tables;
  std::vector<BandwidthPoint> read;     ///< ascending working sets
  std::vector<BandwidthPoint> write;    ///< likewise
  double step_overhead_s = 0;           ///< of one operator, beside its kernel
  double cold_step_overhead_s = 0;      ///< more than that behind weights that fill every cache
  double probe_compute_s = 0;           ///< a fixed product, to see drift by
  double probe_memory_s = 0;            ///< a fixed read of memory, likewise
  std::int64_t probe_memory_bytes = 0;  ///< that it reads
};

/// Measured curves.
struct MeasuredRates {
  std::vector<ThreadProfile> by_threads;
};

/// A datasheet's peaks, all of them dense, and the shares of them that are assumed to be reached.
/// Empty where the publisher gives no figure or the machine has no such unit.
struct DatasheetRates {
  std::optional<double> float32_flops_per_s;
  std::optional<double> tensor_float32_flops_per_s;  ///< float32 rounded to TF32 or alike
  double float16_flops_per_s = 0;                    ///< float16 and bfloat16
  std::optional<double> float8_flops_per_s;
  std::optional<double> int8_ops_per_s;
  std::optional<double> float4_flops_per_s;
  double memory_bytes_per_s = 0;
  std::int64_t memory_bytes = 0;
  std::optional<double> power_w;  ///< that the whole device may draw
  double compute_efficiency = 0;  ///< assumed
  double memory_efficiency = 0;   ///< assumed
  std::string source;
  std::string url;  ///< of the publisher; empty where there is none
};

/// The peak for matrix products of that type: 8 bits run at the 16-bit rate where the machine has
/// no unit of their own. Empty where the datasheet gives none.
[[nodiscard]] std::optional<double> peak_flops_per_s(const DatasheetRates& rates,
                                                     DType dtype) noexcept;

struct MachineProfile {
  std::string name;
  std::string date;                         ///< of the measurement, or of the datasheet
  MachineContext context;                   ///< that a measurement is valid for
  std::int64_t last_level_cache_bytes = 0;  ///< of it, what a program gets, where that was measured
  std::variant<MeasuredRates, DatasheetRates> rates;
  std::optional<Interconnect> interconnect;  ///< where it is known
};

/// The curves measured with so many threads, or for 0 with the most; null for a datasheet. Throws
/// Error{invalid_input} where the machine was not measured with so many.
[[nodiscard]] const ThreadProfile* curves_of(const MachineProfile& machine, int threads);
[[nodiscard]] const KernelTable& table_of(const ThreadProfile& profile, KernelKind kind);
/// The most operations a second that any product reached.
[[nodiscard]] double peak_flops_per_s(const ThreadProfile& profile);

/// Factors by which a machine is slower now than when it was measured.
struct Drift {
  double compute = 1;
  double memory = 1;
};

/// The profile in its JSON form (reports/machines.schema.json).
[[nodiscard]] std::string profile_to_json(const MachineProfile& profile);
/// Throws Error{invalid_input} naming `where` and what is wrong.
[[nodiscard]] MachineProfile profile_from_json(std::string_view text, const std::string& where);

/// Where this user's measured machines are kept: $XDG_DATA_HOME/headroom/machines.
[[nodiscard]] std::filesystem::path profile_folder();
/// The profile that `calibrate` wrote with this backend here; none if it never did.
[[nodiscard]] std::optional<MachineProfile> load_own_profile(std::string_view backend);
/// Makes that folder. Throws Error{missing_resource} where a profile could not be written into it,
/// so that this is known before a calibration.
void prepare_profile_folder();
/// Writes it there, whole or not at all. Throws Error{missing_resource}.
std::filesystem::path store_own_profile(const MachineProfile& profile, std::string_view backend);

/// Machines of the catalogue, from datasheets.
[[nodiscard]] std::vector<MachineProfile> catalogue_machines();
/// The catalogue's machine of that name, or the profile in that file. Throws Error{invalid_input}
/// with the closest names.
[[nodiscard]] MachineProfile find_machine(const std::string& name_or_file);

}  // namespace headroom
