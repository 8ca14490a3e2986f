// MachineProfile: what a machine can do. Measured by `headroom calibrate` as curves of this tool's
// own kernels, or taken from a datasheet, which is an assumption and says so.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/measurement.h"

namespace headroom {

/// A kernel whose time is measured over a grid of sizes. `cold` weights come from memory, as in a
/// model that no cache holds; `warm` ones from the last cache, as in a small one.
enum class KernelKind {
  linear_cold,               ///< rows, in_features, out_features
  linear_warm,               ///< the same
  stream_float32_cold,       ///< the same; few rows, weights read once
  stream_float32_warm,       ///< the same
  stream_bfloat16_cold,      ///< the same
  stream_bfloat16_warm,      ///< the same
  attention_scores,          ///< batch · heads, queries, keys, head_dim
  attention_softmax,         ///< batch · heads, queries, keys
  attention_softmax_biased,  ///< the same, with a bias read for every pair
  attention_context,         ///< batch · heads, queries, keys, head_dim
  attention_fused,           ///< the same
  attention_fused_causal,    ///< the same
  linear_attention,          ///< batch · heads, queries, head_dim
  linear_attention_causal,   ///< the same
  layer_norm,                ///< rows, width
  rms_norm,                  ///< rows, width
  relu,                      ///< elements
  gelu,                      ///< elements
  gelu_tanh,                 ///< elements
  silu,                      ///< elements
  tanh,                      ///< elements
  relu_gated,                ///< elements of the output
  gelu_gated,                ///< the same
  gelu_tanh_gated,           ///< the same
  silu_gated,                ///< the same
  residual_add,              ///< elements
  scale,                     ///< elements
  feature_map,               ///< elements
  rotary,                    ///< elements of queries and keys
  relative_position_bias,    ///< heads · queries · keys
  embedding,                 ///< tokens, width
  copy,                      ///< elements
};

struct KernelInfo {
  KernelKind kind;
  std::string_view name;
  std::span<const std::string_view> axes;
};

/// Every kind, in order.
[[nodiscard]] std::span<const KernelInfo> kernel_kinds() noexcept;
[[nodiscard]] const KernelInfo& info_of(KernelKind kind) noexcept;

/// Sizes of one kernel call, as its axes.
using KernelSizes = std::vector<double>;

/// What grows in proportion to time once a kernel is saturated: multiply-adds, or elements.
[[nodiscard]] double work_of(KernelKind kind, const KernelSizes& sizes);

/// Median seconds of a kernel over a grid of sizes, for one number of threads.
struct KernelTable {
  KernelKind kind = KernelKind::copy;
  std::vector<std::vector<double>> axes;  ///< ascending sizes along each axis
  /// Row-major over the axes; empty where a point would have taken too long to measure.
  std::vector<std::optional<double>> seconds;
  std::vector<double> spread;  ///< median absolute deviation over the median, likewise
};

/// A time with what its measurement scattered.
struct KernelTime {
  double seconds = 0;
  double spread = 0;  ///< a share of it
};

/// The time of a call: interpolated between the logarithms of sizes and times; beyond the grid in
/// proportion to the work.
[[nodiscard]] KernelTime time_of(const KernelTable& table, const KernelSizes& sizes);

/// Bytes a second that all threads read together, by working set.
struct BandwidthPoint {
  std::int64_t working_set_bytes = 0;
  double bytes_per_s = 0;
};

/// Everything that was measured with one number of threads.
struct ThreadProfile {
  int threads = 1;
  std::vector<KernelTable> tables;
  std::vector<BandwidthPoint> read;   ///< ascending working sets
  std::vector<BandwidthPoint> write;  ///< likewise
  double step_overhead_s = 0;         ///< of one operator, beside its kernel
  double probe_compute_s = 0;         ///< a fixed product, to see drift by
  double probe_memory_s = 0;          ///< a fixed read of memory, likewise
};

/// Measured curves.
struct MeasuredRates {
  std::vector<ThreadProfile> by_threads;
};

/// A datasheet's peaks, and the shares of them that are assumed to be reached.
struct DatasheetRates {
  double float32_flops_per_s = 0;
  double float16_flops_per_s = 0;  ///< float16 and bfloat16, dense
  double memory_bytes_per_s = 0;
  std::int64_t memory_bytes = 0;
  double compute_efficiency = 0;  ///< assumed
  double memory_efficiency = 0;   ///< assumed
  std::string source;
};

struct MachineProfile {
  std::string name;
  std::string date;        ///< of the measurement, or of the datasheet
  MachineContext context;  ///< that a measurement is valid for
  std::int64_t last_level_cache_bytes = 0;
  std::variant<MeasuredRates, DatasheetRates> rates;
};

/// The profile in its JSON form (reports/machine.schema.json).
[[nodiscard]] std::string profile_to_json(const MachineProfile& profile);
/// Throws Error{invalid_input} naming `where` and what is wrong.
[[nodiscard]] MachineProfile profile_from_json(std::string_view text, const std::string& where);

/// Where this user's measured machines are kept: $XDG_DATA_HOME/headroom/machines.
[[nodiscard]] std::filesystem::path profile_folder();
/// The profile that `calibrate` wrote with this backend here; none if it never did.
[[nodiscard]] std::optional<MachineProfile> load_own_profile(std::string_view backend);
/// Writes it there, whole or not at all. Throws Error{missing_resource}.
std::filesystem::path store_own_profile(const MachineProfile& profile, std::string_view backend);

/// Machines of the catalogue, from datasheets.
[[nodiscard]] std::vector<MachineProfile> catalogue_machines();
/// The catalogue's machine of that name, or the profile in that file. Throws Error{invalid_input}
/// with the closest names.
[[nodiscard]] MachineProfile find_machine(const std::string& name_or_file);

}  // namespace headroom
