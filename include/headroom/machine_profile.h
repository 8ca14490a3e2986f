// MachineProfile: a machine and its rates. Either curves of headroom's kernels, measured by
// `headroom calibrate`, or datasheet peaks with efficiencies, and the memory that drivers report
// and runtimes take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/collective_rates.h"
#include "headroom/expr.h"
#include "headroom/invocation.h"
#include "headroom/measurement.h"
#include "headroom/workload.h"

namespace headroom {

// Devices by architecture: memory, runtime, and the fractions of peak rates that runs reach.

/// Generation of a device, by its maker's name.
enum class Architecture {
  volta,
  turing,
  ampere,
  ada,
  hopper,
  blackwell,
  cdna,
  rdna,
  gaudi,
  tpu,
  trainium,
  apple,
  cpu,
  other,
};

[[nodiscard]] std::string_view name_of(Architecture architecture) noexcept;
/// The architecture of that name; empty if there is none.
[[nodiscard]] std::optional<Architecture> architecture_named(std::string_view name) noexcept;

/// Basis of a memory figure: a tool printed it on this device, or a named rule gives it.
enum class MemoryBasis { reading, assumed };

[[nodiscard]] std::string_view name_of(MemoryBasis basis) noexcept;

struct MemoryFigure {
  Integer bytes = 0;
  MemoryBasis basis = MemoryBasis::assumed;
  std::string source;
  std::string url;  ///< of the source; may be empty
};

/// A device's memory, ECC as the device ships. The difference is the driver's, or, on Apple's
/// devices, what Metal leaves to the system.
struct DeviceMemory {
  MemoryFigure total;   ///< by the driver: nvidia-smi, rocm-smi, hl-smi; installed memory otherwise
  MemoryFigure usable;  ///< by one process: cudaMemGetInfo, Metal's recommendedMaxWorkingSetSize
};

/// Memory that a process takes on its device besides tensors.
struct RuntimeMemory {
  Integer context_bytes = 0;  ///< the process's context and its loaded kernels
  Integer group_bytes = 0;    ///< the communication library, for each group of ranks
  double fragmentation = 0;   ///< reserved by the allocator on top of activations and buffers
};

/// The runtime of devices of `architecture`; sources beside the figures.
[[nodiscard]] RuntimeMemory runtime_memory(Architecture architecture) noexcept;

/// Serving runs prefill and decode steps, training whole steps with an optimizer.
enum class Purpose { serve, train };

[[nodiscard]] std::string_view name_of(Purpose purpose) noexcept;

/// Fractions of peak rates that are reached, and what engines differ in beside them.
struct Efficiency {
  double matrix = 1;   ///< of peak FLOP/s, by large GEMMs
  double memory = 1;   ///< of memory bandwidth, by all other operators
  double network = 1;  ///< of interconnect bandwidth
  double cache = 1;    ///< serving: of the memory's fraction, by attention over a KV-cache
  double fixed = 1;    ///< factor of the fixed times of kernels and of engines' all-reduces
};

/// Origin of an efficiency: measured on this machine, fitted to measured runs of it, fitted to
/// published runs of this architecture, given by the user, or taken from another architecture.
enum class EfficiencyOrigin { measured, fitted, published, given, assumed };

[[nodiscard]] std::string_view name_of(EfficiencyOrigin origin) noexcept;

/// Relative ranges of a predicted time: nine of ten runs take from time/(1 + range) to
/// time·(1 + range). A time that arithmetic bounds in part has a range between the two.
struct TimeRanges {
  double compute = 0.5;  ///< of operators that arithmetic bounds
  double memory = 0.5;   ///< of all others: memory, fixed times, communication

  /// That of a time, of which arithmetic bounds `compute_share`.
  [[nodiscard]] double of(double compute_share) const noexcept {
    return compute_share * compute + (1 - compute_share) * memory;
  }
};

/// Efficiencies with their origin. `source` names the runs, or the architecture that lends them.
struct SourcedEfficiency {
  Efficiency fractions;
  EfficiencyOrigin origin = EfficiencyOrigin::assumed;
  std::string_view source;
  TimeRanges range;  ///< of a time predicted with them
};

/// A measured run that efficiencies were fitted to.
struct FittingRun {
  std::string model;
  std::string plan;   ///< "tp 8 · dp 2"
  double time_s = 0;  ///< of an iteration, or of the figure that was measured
};

/// Efficiencies fitted to measured runs of a machine (rate_fit.h).
struct FittedEfficiency {
  Purpose purpose = Purpose::train;
  /// Of activations in the runs; GEMMs of other types keep their known ratio to it.
  DType dtype = DType::bfloat16;
  Efficiency fractions;
  Efficiency deviations;  ///< relative standard deviations of `fractions`
  double range = 0.5;     ///< of all times, as SourcedEfficiency::range
  std::int64_t runs = 0;
  std::vector<FittingRun> fitted_to{};  ///< those runs; empty in files of earlier versions
};

/// Efficiencies of `architecture` for arithmetic in `dtype`. The table and its sources are in
/// src/machine/efficiency.cpp.
[[nodiscard]] SourcedEfficiency known_efficiency(Architecture architecture, Purpose purpose,
                                                 DType dtype) noexcept;

// Interconnect: bandwidth between the devices of a machine.

/// Bandwidths of one device in one direction: half of a datasheet's bidirectional figure.
struct Interconnect {
  std::int64_t devices_per_node = 8;
  double intra_node_bytes_per_s = 0;  ///< to all other devices of the node together
  /// The device's part of the node's network bandwidth; empty if the machine includes no network.
  std::optional<double> inter_node_bytes_per_s;
  std::string source;
  std::string intra_node_kind;  ///< "NVLink 4", "PCIe 4.0 x16", …
  std::string inter_node_kind;  ///< "InfiniBand NDR", …, or empty
};

/// A device's link to its host's memory.
struct HostLink {
  std::string kind;  ///< "PCIe 4.0 x16", "NVLink-C2C", …
  /// In one direction; empty: the device computes in the host's memory.
  std::optional<double> bytes_per_s;
  std::string source;
};

/// Default for a machine without an interconnect: eight devices on PCIe 4 x16 (32 GB/s per
/// direction) with a 200 Gb/s port each.
[[nodiscard]] inline Interconnect assumed_interconnect() {
  return {8,
          32e9,
          25e9,
          "assumed: 8 devices a node on PCIe 4 x16, a 200 Gb/s port for each",
          "PCIe 4.0 x16",
          "200 Gb/s"};
}

// KernelTable: times of a kernel over a grid of sizes, with interpolation between them.

/// A kernel whose time is measured over a grid of sizes; the axes are named at each. `cold`
/// operands come from memory, as in a model larger than the caches; `warm` ones from the last-level
/// cache, as in a small model. `stream` kernels multiply few rows and read weights once;
/// `linear_bfloat16` multiplies any number of rows. `step` kernels attend with one query per
/// sequence; `group` is the number of query heads per key-value head.
enum class KernelKind {
  linear_cold,               ///< rows, in_features, out_features
  linear_warm,               ///< rows, in_features, out_features
  stream_float32_cold,       ///< rows, in_features, out_features
  stream_float32_warm,       ///< rows, in_features, out_features
  linear_bfloat16_cold,      ///< rows, in_features, out_features
  linear_bfloat16_warm,      ///< rows, in_features, out_features
  attention_scores,          ///< batch · heads, queries, keys, head_dim
  attention_softmax,         ///< batch · heads, queries, keys
  attention_softmax_causal,  ///< batch · heads, queries, keys; causal mask
  attention_softmax_biased,  ///< batch · heads, queries, keys; reads a bias per pair
  attention_context,         ///< batch · heads, queries, keys, head_dim
  attention_fused,           ///< batch · heads, queries, keys, head_dim
  attention_fused_causal,    ///< batch · heads, group, queries, keys, head_dim
  step_scores_cold,          ///< batch · key-value heads, group, keys, head_dim
  step_scores_warm,          ///< batch · key-value heads, group, keys, head_dim
  step_context_cold,         ///< batch · key-value heads, group, keys, head_dim
  step_context_warm,         ///< batch · key-value heads, group, keys, head_dim
  step_fused_cold,           ///< batch · key-value heads, group, keys, head_dim
  step_fused_warm,           ///< batch · key-value heads, group, keys, head_dim
  linear_attention,          ///< batch · heads, queries, head_dim
  linear_attention_causal,   ///< batch · heads, queries, head_dim
  layer_norm,                ///< rows, width
  rms_norm,                  ///< rows, width
  relu,                      ///< elements
  gelu,                      ///< elements
  gelu_tanh,                 ///< elements
  silu,                      ///< elements
  tanh,                      ///< elements
  relu_gated,                ///< elements of the output
  gelu_gated,                ///< elements of the output
  gelu_tanh_gated,           ///< elements of the output
  silu_gated,                ///< elements of the output
  residual_add,              ///< elements
  scale,                     ///< elements
  feature_map,               ///< elements
  rotary,                    ///< elements of queries and keys
  relative_position_bias,    ///< heads · queries · keys
  embedding,                 ///< tokens, width
  copy,                      ///< elements
};

/// Name and axes of a kernel.
struct KernelInfo {
  KernelKind kind;
  std::string_view name;
  std::span<const std::string_view> axes;
};

/// All kinds, in order.
[[nodiscard]] std::span<const KernelInfo> kernel_kinds() noexcept;
[[nodiscard]] const KernelInfo& info_of(KernelKind kind) noexcept;

/// Sizes of one kernel call, one per axis.
using KernelSizes = std::vector<double>;

/// Work of a call, to which time is proportional once a kernel is saturated: multiply-adds (without
/// those under a causal mask), or elements.
[[nodiscard]] double work_of(KernelKind kind, const KernelSizes& sizes);

/// Ascending sizes along each axis of a kernel. Grid points are numbered row-major.
using KernelGrid = std::vector<std::vector<double>>;

[[nodiscard]] std::size_t point_count(const KernelGrid& grid);
/// Sizes at point `number`.
[[nodiscard]] KernelSizes point_of(const KernelGrid& grid, std::size_t number);
/// Number of the point with index `at[axis]` along each axis.
[[nodiscard]] std::size_t point_number(const KernelGrid& grid, std::span<const std::size_t> at);

/// Median time of a kernel over a grid of sizes, for one number of threads.
struct KernelTable {
  KernelKind kind = KernelKind::copy;
  KernelGrid axes;
  /// By point; empty for points that would take too long to measure.
  std::vector<std::optional<double>> seconds;
  std::vector<double> spread;  ///< by point: median absolute deviation / median
};

/// Table with no point measured.
[[nodiscard]] KernelTable unmeasured_table(KernelKind kind, KernelGrid axes);

/// Number of points of a calibration, and time per point.
enum class CalibrationEffort { quick, full };

[[nodiscard]] std::string_view name_of(CalibrationEffort effort) noexcept;

/// Times of GEMMs that read their weights as they are stored: blocks of one of block_formats().
/// Activations are quantised to int8, as `measure` does.
struct StoredGemm {
  std::string format;  ///< of the weights: "Q4_K"
  KernelTable cold;    ///< linear_cold
  KernelTable warm;    ///< linear_warm
  CalibrationEffort effort = CalibrationEffort::full;
};

/// Formats that headroom's GEMMs can read as they are stored, by the names of ggml's types.
[[nodiscard]] std::span<const std::string_view> block_formats() noexcept;

/// A measured time with its spread.
struct KernelTime {
  double seconds = 0;
  double spread = 0;  ///< relative: median absolute deviation / median
};

/// Time of a call. Inside the grid: interpolated between the logarithms of sizes and times.
/// Outside: scaled by work from the nearest edge.
[[nodiscard]] KernelTime time_of(const KernelTable& table, const KernelSizes& sizes);

/// Bandwidth of all threads together at one working set.
struct BandwidthPoint {
  std::int64_t working_set_bytes = 0;
  double bytes_per_s = 0;
};

/// Slowdown of a machine against its calibrated times, as factors of time.
struct Drift {
  double compute = 1;
  double memory = 1;
};

/// Measurements with one number of threads.
struct ThreadProfile {
  int threads = 1;
  DType dtype = DType::float32;  ///< of activations, and of PyTorch's weights
  std::vector<KernelTable> tables;
  std::vector<StoredGemm> stored_gemms;  ///< at most one per format; measured when asked for
  std::vector<BandwidthPoint> read;      ///< by ascending working set
  std::vector<BandwidthPoint> write;     ///< by ascending working set
  double step_overhead_s = 0;            ///< per operator, outside its kernel
  double cold_step_overhead_s = 0;       ///< extra after weights that evict every cache
  double probe_compute_s = 0;            ///< of a fixed GEMM, to detect drift
  double probe_memory_s = 0;             ///< of a fixed memory read, to detect drift
  std::int64_t probe_memory_bytes = 0;   ///< read by that probe
  double usual_compute_s = 0;            ///< median of the GEMM, undisturbed; 0: unknown
  double usual_memory_s = 0;             ///< likewise of the read
};

/// Slowdown by the machine's usual load, which predictions assume: medians of the probes while the
/// calibration ran and no other process disturbed them, against their times without any load. 1
/// where a profile does not have them.
[[nodiscard]] Drift usual_drift(const ThreadProfile& profile) noexcept;

/// Program whose kernels a profile has: headroom itself, which computes in float32, or PyTorch
/// without a compiler (tests/bench/torch_calibrate.py), with curves for each type.
enum class MeasuredEngine { headroom, pytorch };

[[nodiscard]] std::string_view name_of(MeasuredEngine engine) noexcept;

/// Device that PyTorch ran on.
struct MeasuredDevice {
  Architecture architecture = Architecture::cpu;
  Integer memory_bytes = 0;  ///< as its driver reports it
  /// Kernels queue up behind the host, so that an operator takes the longer of the host's time and
  /// its kernels'.
  bool runs_behind_host = false;
};

/// Measured curves, one profile per number of threads and type.
struct MeasuredRates {
  std::vector<ThreadProfile> by_threads;
  MeasuredEngine engine = MeasuredEngine::headroom;
  std::optional<MeasuredDevice> device{};  ///< of PyTorch; headroom measures this machine
};

/// Efficiencies that a user's machine or options give instead of the known ones.
struct GivenEfficiency {
  std::optional<double> matrix;
  std::optional<double> memory;
  std::optional<double> network;
};

/// Units of a GPU that compute tiles of GEMMs on their own: streaming multiprocessors or compute
/// units.
struct Processors {
  std::int64_t count = 0;
  std::string source;
};

/// Datasheet peaks, all without sparsity. Empty where the publisher gives no figure or the machine
/// has no such unit.
struct DatasheetRates {
  Architecture architecture = Architecture::other;
  std::optional<double> float32_flops_per_s;
  std::optional<double> tensor_float32_flops_per_s;  ///< float32 rounded to TF32 or similar
  double float16_flops_per_s = 0;                    ///< float16 and bfloat16
  std::optional<double> float8_flops_per_s;
  std::optional<double> int8_ops_per_s;
  std::optional<double> float4_flops_per_s;  ///< MXFP4 and NVFP4
  std::optional<double> int4_ops_per_s;
  double memory_bytes_per_s = 0;
  std::int64_t memory_bytes = 0;  ///< by the datasheet, in powers of 1000
  DeviceMemory memory;
  std::optional<double> power_w;  ///< board power limit
  std::optional<Processors> processors{};
  GivenEfficiency given;
  std::vector<FittedEfficiency> fitted;  ///< at most one per purpose
  std::string source;
  std::string url;  ///< of the source; may be empty
};

/// Type in which a device computes GEMMs of `dtype`: `dtype` itself, or bfloat16 where its
/// datasheet has no figure for a type of 8 or 4 bits. Engines then convert the weights as they read
/// them (vLLM runs FP8 on Ampere and NVFP4 on Hopper with its weight-only Marlin kernels).
[[nodiscard]] DType computed_type(const DatasheetRates& rates, DType dtype) noexcept;

/// GEMM peak of computed_type(). Empty if the datasheet has no figure.
[[nodiscard]] std::optional<double> peak_flops_per_s(const DatasheetRates& rates,
                                                     DType dtype) noexcept;

/// `known` with what options or the machine's file give in its place; the range stays.
[[nodiscard]] SourcedEfficiency with_given(SourcedEfficiency known,
                                           const GivenEfficiency& given) noexcept;

/// The efficiencies that every command uses: the known ones of the architecture, or those given.
[[nodiscard]] SourcedEfficiency efficiency_of(const DatasheetRates& rates, Purpose purpose,
                                              DType dtype) noexcept;

/// The source of efficiency_of() in words; of fitted ones the first of their runs: "fitted to 4
/// runs: llama-3-70b tp 8 in 0.281 s, …".
[[nodiscard]] std::string efficiency_source_of(const DatasheetRates& rates, Purpose purpose,
                                               DType dtype);

/// A machine with its rates.
struct MachineProfile {
  std::string name;
  std::string date;                         ///< of the measurement, or of the datasheet
  MachineContext context;                   ///< validity of a measurement
  std::int64_t last_level_cache_bytes = 0;  ///< usable by one program, if measured
  std::variant<MeasuredRates, DatasheetRates> rates;
  std::optional<Interconnect> interconnect;      ///< empty if unknown
  std::optional<HostLink> host{};                ///< empty: by the architecture
  std::optional<CalibrationEffort> effort{};     ///< of a measurement; empty in older files
  std::optional<Invocation> produced_by{};       ///< empty in older files, and in those of people
  std::optional<CollectiveRates> collectives{};  ///< between processes; empty if not measured
};

/// Says that `machine` converts GEMMs of `arithmetic` to another type, as headroom's own kernels
/// convert all to float32; empty if it does not.
[[nodiscard]] std::optional<std::string> conversion_note(const MachineProfile& machine,
                                                         DType arithmetic);

/// Returns whether the profile has curves of headroom's own kernels, which compute in float32.
[[nodiscard]] bool has_own_kernels(const MachineProfile& machine) noexcept;
/// Memory that one process can use; empty if the profile does not state it.
[[nodiscard]] std::optional<Integer> usable_memory(const MachineProfile& machine) noexcept;
/// Curves measured with `threads` threads (0: the largest measured number) in `dtype`, which
/// headroom's own kernels ignore; null for a datasheet. Throws Error{invalid_input} if the machine
/// was not measured with that number or type.
[[nodiscard]] const ThreadProfile* curves_of(const MachineProfile& machine, int threads,
                                             DType dtype = DType::float32);
/// The table of one kernel. Throws Error{invalid_input} if it was not measured.
[[nodiscard]] const KernelTable& table_of(const ThreadProfile& profile, KernelKind kind);
/// The GEMMs of weights in `format`; null if they were not measured.
[[nodiscard]] const StoredGemm* find_stored_gemm(const ThreadProfile& profile,
                                                 std::string_view format) noexcept;
/// The highest FLOP/s of any measured GEMM.
[[nodiscard]] double peak_flops_per_s(const ThreadProfile& profile);

/// The profile in its JSON form (reports/machines.schema.json).
[[nodiscard]] std::string profile_to_json(const MachineProfile& profile);
/// Reads that form. Throws Error{invalid_input} that names `where` and the fault.
[[nodiscard]] MachineProfile profile_from_json(std::string_view text, const std::string& where);

/// Folder of this user's measured machines: $XDG_DATA_HOME/headroom/machines.
[[nodiscard]] std::filesystem::path profile_folder();
/// The profile that `calibrate` stored for this `backend` on the machine and build that `here`
/// describes; one of an earlier version of headroom, for any machine, if there is no other. Empty
/// if there is none. Throws Error that names a file that cannot be read.
[[nodiscard]] std::optional<MachineProfile> load_own_profile(std::string_view backend,
                                                             const MachineContext& here);
/// Creates that folder. Throws Error{missing_resource} if it is not writable, so that a calibration
/// fails before it starts.
void prepare_profile_folder();

/// A file with a profile. `kept_because` says why the previous profile is kept; empty if it was
/// replaced.
struct StoredFile {
  std::filesystem::path file;
  std::string kept_because;
};
/// Stores `profile` in that folder, whole or not at all, under its machine and build; the profile
/// before is kept beside it as ".previous". A quick calibration does not replace a full one, nor
/// one that other programs disturbed an undisturbed one. Throws Error{missing_resource}.
/// Collectives and stored GEMMs of the profile before stay unless `profile` has its own.
[[nodiscard]] StoredFile store_own_profile(const MachineProfile& profile, std::string_view backend);
/// Stores `profile`, the own one with other collectives or stored GEMMs; likewise, and always.
[[nodiscard]] StoredFile store_extended_profile(const MachineProfile& profile,
                                                std::string_view backend);

/// Machines of the built-in catalogue, from datasheets.
[[nodiscard]] std::vector<MachineProfile> catalogue_machines();
/// Finds a machine by catalogue name, or reads the profile of a file. Throws Error{invalid_input}
/// that suggests the closest names.
[[nodiscard]] MachineProfile find_machine(const std::string& name_or_file);

}  // namespace headroom
