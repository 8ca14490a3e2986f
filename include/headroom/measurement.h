// Measurement: what a run really did. Small on purpose, so that another engine's run can be written
// in its JSON form by hand (reports/measure.schema.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_source.h"
#include "headroom/workload.h"

namespace headroom {

/// What is run: one pass over a prompt, one decode step on a filled KV-cache, or a whole greedy
/// generation, which is both.
enum class MeasuredPhase { prefill, decode, generate };

[[nodiscard]] std::string_view name_of(MeasuredPhase phase) noexcept;

/// Times of repeated runs, in seconds. The median absolute deviation is the spread.
struct TimeStatistics {
  double median_s = 0;
  double mad_s = 0;
  double min_s = 0;
  double max_s = 0;
  std::vector<double> samples_s;  ///< every run, in order
};

/// Median, spread and extremes of `samples_s`, which must not be empty.
[[nodiscard]] TimeStatistics summarize(std::vector<double> samples_s);

/// One operator of the run whose time is nearest the median, all layers together.
struct OperatorMeasurement {
  std::string path;
  double time_s = 0;
  std::int64_t matrix_flops = 0;
  std::int64_t bytes = 0;  ///< operands read and written, each once
};

/// What was counted while it ran: FLOPs of the operands that kernels multiplied, bytes held.
struct MeasuredCounts {
  std::int64_t parameters = 0;  ///< numbers that were loaded, tied ones once
  std::int64_t matrix_flops = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t kv_cache_bytes = 0;
};

struct MeasuredMemory {
  std::int64_t arena_peak_bytes = 0;
  /// Weights as they are laid out; more than they count where a layout is held beside another.
  std::int64_t weights_held_bytes = 0;
  std::int64_t rss_before_bytes = 0;  ///< of the process, before the model was loaded
  std::int64_t rss_peak_bytes = 0;
};

/// The machine and build that a run is valid for.
struct MachineContext {
  std::string cpu;
  int logical_cpus = 0;
  int threads = 0;
  std::vector<std::string> caches;  ///< "L2 1 MiB", …
  std::string frequency_governor;   ///< empty where the system does not say
  std::string compiler;
  std::string backend;
  double load_average = 0;  ///< of the last minute, before the run
};

/// What headroom calls itself as an engine.
inline constexpr std::string_view kOwnEngine = "headroom";

struct Measurement {
  std::string engine;  ///< kOwnEngine, or another engine's name
  Model model;
  MeasuredPhase phase = MeasuredPhase::prefill;
  Workload workload;
  std::int64_t new_tokens = 0;  ///< generate only
  TimeStatistics time;
  std::optional<double> ttft_s;  ///< time to first token
  std::optional<double> tpot_s;  ///< time per output token, (total − TTFT)/(new tokens − 1)
  MeasuredCounts counted;
  MeasuredMemory memory;
  std::vector<OperatorMeasurement> operators;
  MachineContext context;
  std::vector<std::string> warnings;
};

}  // namespace headroom
