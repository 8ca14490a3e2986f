// Measurement: times, counts and memory of a real run. Small on purpose: another engine's run can
// be written by hand in its JSON form (reports/measure.schema.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_source.h"
#include "headroom/op.h"
#include "headroom/workload.h"

namespace headroom {

/// Phase of a run: one prefill of a prompt, one decode step on a filled KV-cache, or a whole greedy
/// generation (prefill, then decode steps).
enum class MeasuredPhase { prefill, decode, generate };

[[nodiscard]] std::string_view name_of(MeasuredPhase phase) noexcept;

/// Times of repeated runs, in seconds. The spread is the median absolute deviation (MAD).
struct TimeStatistics {
  double median_s = 0;
  double mad_s = 0;
  double min_s = 0;
  double max_s = 0;
  std::vector<double> samples_s;  ///< every run, in order
};

/// Computes median, spread and extremes of `samples_s`, which must not be empty.
[[nodiscard]] TimeStatistics summarize(std::vector<double> samples_s);

/// Collectives and sends run between ranks.
enum class OperatorRole { computation, communication };

/// One operator, summed over all layers, of the run whose time is nearest the median.
struct OperatorMeasurement {
  std::string path;
  double time_s = 0;
  std::int64_t matrix_flops = 0;
  std::int64_t bytes = 0;  ///< operands read and written, each once
  OperatorRole role = OperatorRole::computation;
};

/// Counts of the run: FLOPs from the operands of the kernels, bytes from the allocations.
struct MeasuredCounts {
  std::int64_t parameters = 0;  ///< parameters loaded; tied weights count once
  std::int64_t matrix_flops = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t kv_cache_bytes = 0;
};

/// Memory that a run allocated besides weights, KV-cache and inputs.
struct AllocatedMemory {
  /// Arenas of all programs, a generation's prefill and step: tensors, and gaps between them.
  std::int64_t arena_bytes = 0;
  std::int64_t strided_copy_bytes = 0;  ///< dense copies of strided operands of GEMMs
  /// Scratch of attention, convolutions, recurrences, experts and patches.
  std::int64_t kernel_scratch_bytes = 0;
  /// One buffer for all GEMMs: oneDNN's scratchpad, or rows padded for the streaming kernel.
  std::int64_t gemm_scratchpad_bytes = 0;
};

struct MeasuredMemory {
  std::int64_t arena_peak_bytes = 0;  ///< counted: the largest sum of live tensors in an arena
  AllocatedMemory allocated;
  /// Bytes of packed weights; more than `weight_bytes` if a weight is stored for two operators.
  std::int64_t weights_held_bytes = 0;
  std::optional<std::int64_t> rss_before_bytes;  ///< of the process, before loading the model
  std::optional<std::int64_t> rss_peak_bytes;    ///< empty if the system does not report it
};

/// Weights of one type, where weights are held as they are stored.
struct WeightFormat {
  std::string stored;  ///< type in the files: "Q4_K", "F16"
  std::string held;    ///< type in memory: the stored one, or "F32" if it was widened
  std::int64_t parameters = 0;
  std::int64_t bytes = 0;  ///< in memory
};

/// Operations by the processor's own counters, beside those that the kernels' operands give.
struct RetiredOperations {
  /// float32 operations of all kinds, a fused multiply–add as 2: mean of the timed runs. Empty if
  /// nothing was counted.
  std::optional<double> per_run;
  std::string refusal;  ///< why nothing was counted; empty if something was
};

/// Machine and build that a measurement is valid for.
struct MachineContext {
  std::string cpu;
  int logical_cpus = 0;
  int threads = 0;
  std::vector<std::string> caches;  ///< "L2 1 MiB", …
  std::string frequency_governor;   ///< empty if the system does not report it
  std::string compiler;
  std::string backend;
  double load_average = 0;  ///< of the last minute before the run
  /// Processors that other programs used during the run, on average; empty if unknown.
  std::optional<double> other_programs_cpus{};
};

/// Why times measured in `context` are not the machine's own; empty if they are.
[[nodiscard]] std::string disturbance_of(const MachineContext& context);

/// Calls of one collective by one rank in one run, and the bytes that it handed to them: the buffer
/// of an all-reduce or a send, this rank's shard of an all-gather or a reduce-scatter. It is no
/// volume on links, which depends on the algorithm that the library chooses.
struct WireTraffic {
  RankGroup group = RankGroup::tensor;
  CollectiveKind kind = CollectiveKind::none;
  std::int64_t calls = 0;
  std::int64_t bytes = 0;
  bool operator==(const WireTraffic&) const = default;
};

/// Place and work of one process in a run over several.
struct RankMeasurement {
  std::int64_t rank = 0;
  std::int64_t stage = 0;        ///< of the pipeline
  std::int64_t data_rank = 0;    ///< replica, each with its own sequences
  std::int64_t tensor_rank = 0;  ///< in its stage and replica
  std::string host;
  double time_s = 0;           ///< median, from the common start of a run to this rank's end
  double communication_s = 0;  ///< of it, in collectives: transfer, and waiting for other ranks
  MeasuredCounts counted;
  MeasuredMemory memory;
  std::vector<WireTraffic> traffic;
  /// Of the run whose time is nearest time_s; receptions from the stage before come first.
  std::vector<OperatorMeasurement> operators;
};

/// A run over several processes.
struct RanksMeasurement {
  std::string plan;  ///< "tp 2 · pp 2"
  std::vector<RankMeasurement> ranks;

  /// The rank that computed longest: the others wait for it.
  [[nodiscard]] const RankMeasurement& slowest() const;
};

/// Name of headroom as an engine.
inline constexpr std::string_view kOwnEngine = "headroom";

struct Measurement {
  std::string engine;  ///< kOwnEngine, or the name of another engine
  Model model;
  MeasuredPhase phase = MeasuredPhase::prefill;
  Workload workload;
  std::int64_t new_tokens = 0;  ///< generate only
  TimeStatistics time;
  std::optional<double> ttft_s;  ///< time to first token
  std::optional<double> tpot_s;  ///< time per output token, (total − TTFT)/(new tokens − 1)
  MeasuredCounts counted;
  std::optional<RetiredOperations> retired{};  ///< empty unless asked for
  MeasuredMemory memory;
  /// Types of the weights by descending bytes; empty unless weights are held as stored.
  std::vector<WeightFormat> weight_formats{};
  /// Type in which activations multiply: float32 or int8 with weights in blocks, bfloat16 with
  /// bfloat16 weights if asked for; empty otherwise.
  std::string activations{};
  /// Codes of weights in groups are integers, and were decoded to multiply float32 activations.
  bool integers_decoded = false;
  std::vector<OperatorMeasurement> operators;
  /// Tokens that a generation chose, of each sequence; empty unless asked for.
  std::vector<std::vector<std::int64_t>> generated_ids{};
  /// All ranks of a run over several processes; the fields above are those of rank 0, its time that
  /// of the whole run. Empty on one process.
  std::optional<RanksMeasurement> ranks{};
  MachineContext context;
  std::vector<std::string> warnings;
  bool interrupted = false;  ///< ended by a signal: has the runs completed before
};

}  // namespace headroom
