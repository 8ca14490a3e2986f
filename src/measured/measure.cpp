#include "measure.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "clock.h"
#include "headroom/error.h"
#include "runner.h"
#include "system.h"

namespace headroom::measured {
namespace {

constexpr int kFewestRuns = 5;
constexpr int kMostRuns = 100;
constexpr double kLongestSeconds = 20;
/// The standard error of a median is 1.2533·σ/√n, and σ is 1.4826·MAD for a normal spread.
constexpr double kMedianErrorOfMad = 1.2533 * 1.4826;
constexpr double kSteadyShare = 0.005;
constexpr double kNoisyShare = 0.05;
constexpr double kBusyLoad = 0.5;

/// Whether the median of the samples is known to half a per cent.
bool is_steady(const std::vector<double>& samples) {
  if (samples.size() < kFewestRuns) return false;
  const TimeStatistics statistics = summarize(samples);
  const double error =
      kMedianErrorOfMad * statistics.mad_s / std::sqrt(static_cast<double>(samples.size()));
  return error < kSteadyShare * statistics.median_s;
}

std::vector<Sample> collect(Runner& runner, const MeasureOptions& options,
                            const RunObserver& observer) {
  for (int i = 0; i < options.warmup; ++i) (void)runner.run();
  std::vector<Sample> samples;
  std::vector<double> times;
  const int most = options.runs.value_or(kMostRuns);
  const auto start = Clock::now();
  while (static_cast<int>(samples.size()) < most) {
    samples.push_back(runner.run());
    times.push_back(samples.back().total_s);
    const bool goes_on = observer(static_cast<int>(samples.size()), most);
    const bool enough =
        !options.runs && (is_steady(times) || seconds_since(start) > kLongestSeconds);
    if (!goes_on || enough) break;
  }
  return samples;
}

/// The most that a run needs at once: the weights as they are packed, tables, caches and arena.
void require_memory(const ModelSpec& spec, const Workload& workload, const Lengths& lengths) {
  const Graph graph = build_graph(spec, {Phase::prefill, workload.attention});
  const Bindings sizes = sizes_at(graph, lengths);
  Integer bytes = plan_memory(graph, sizes).peak_bytes;
  for (const Weight& weight : graph.weights) {
    bytes += 4 * (weight.repeat * weight.elements()).evaluate(sizes);
  }
  const std::int64_t available = available_memory_bytes();
  if (available == 0 || bytes <= available) return;
  const auto gib = [](Integer value) { return static_cast<double>(value) / (1 << 30); };
  throw Error(ErrorCode::missing_resource,
              fmt::format("a run needs {:.2f} GiB, but {:.2f} GiB are available", gib(bytes),
                          gib(available)),
              spec.name, "use a smaller --batch or --seq, --attention fused, or a smaller model");
}

std::vector<std::string> warnings_about(const Measurement& measurement) {
  std::vector<std::string> warnings;
  const TimeStatistics& time = measurement.time;
  if (time.mad_s > kNoisyShare * time.median_s) {
    warnings.push_back(
        fmt::format("the runs differ by {:.0f} % of the median: the machine is noisy",
                    100 * time.mad_s / time.median_s));
  }
  const MachineContext& context = measurement.context;
  if (context.load_average > kBusyLoad * context.logical_cpus) {
    warnings.push_back(fmt::format("the load was {:.1f} on {} processors: others were at work",
                                   context.load_average, context.logical_cpus));
  }
  if (context.frequency_governor == "powersave") {
    warnings.emplace_back("the frequency governor is powersave: the clock may be low");
  }
  return warnings;
}

Lengths lengths_to_plan(const ModelInputs& inputs, const Workload& workload,
                        const MeasureOptions& options) {
  Lengths lengths = lengths_of(inputs, options.new_tokens);
  lengths.capacity += workload.past_len;
  return lengths;
}

/// Weights laid out for the rows that the phase has; a generation has many first, then few.
SessionOptions session_options(const MeasureOptions& options, const Workload& workload,
                               const ModelInputs& inputs) {
  const std::int64_t rows = inputs.main.batch * inputs.main.seq_len;
  SessionOptions session{options.backend, options.storage, RowRange::both, rows,
                         workload.attention};
  if (options.phase != MeasuredPhase::generate) {
    session.rows = rows <= PackedLinear::kFewRows ? RowRange::few : RowRange::many;
  }
  return session;
}

/// The times of all samples, and what the operators did in the one that is nearest the median.
void store_times(const std::vector<Sample>& samples, const MeasureOptions& options,
                 Measurement& measurement) {
  if (samples.empty()) throw Error(ErrorCode::invalid_input, "nothing was measured");
  std::vector<double> totals;
  totals.reserve(samples.size());
  for (const Sample& sample : samples) totals.push_back(sample.total_s);
  measurement.time = summarize(totals);
  const Sample& nearest = *std::ranges::min_element(samples, {}, [&](const Sample& sample) {
    return std::abs(sample.total_s - measurement.time.median_s);
  });
  measurement.operators = nearest.operators;
  if (options.phase != MeasuredPhase::generate) return;
  measurement.ttft_s = nearest.ttft_s;
  if (options.new_tokens > 1) {
    measurement.tpot_s =
        (nearest.total_s - nearest.ttft_s) / static_cast<double>(options.new_tokens - 1);
  }
}

/// What was counted while it ran, and the memory it took.
void store_counts(const ModelWeights& weights, const Runner& runner, Measurement& measurement) {
  for (const OperatorMeasurement& one : measurement.operators) {
    measurement.counted.matrix_flops += one.matrix_flops;
  }
  measurement.counted.parameters = weights.parameters();
  measurement.counted.weight_bytes = weights.bytes();
  measurement.counted.kv_cache_bytes = runner.kv_cache_bytes();
  measurement.memory.weights_held_bytes = weights.held_bytes();
  measurement.memory.arena_peak_bytes = runner.arena_peak_bytes();
  measurement.memory.rss_peak_bytes = peak_resident_bytes();
}

}  // namespace

Measurement measure(Model model, const Workload& workload, WeightSource& source,
                    std::optional<ModelInputs> given, const MeasureOptions& options,
                    const RunObserver& observer) {
  if (options.threads > 0) omp_set_num_threads(options.threads);
  Measurement measurement;
  measurement.context = machine_context(omp_get_max_threads(), options.backend);
  ModelInputs inputs =
      given ? *std::move(given) : random_inputs(model.spec, workload, options.seed);
  require_memory(model.spec, workload, lengths_to_plan(inputs, workload, options));

  reset_peak_resident();
  measurement.memory.rss_before_bytes = resident_bytes();
  const Session session(model.spec, source, session_options(options, workload, inputs));
  Runner runner(session, options, workload, std::move(inputs));
  store_times(collect(runner, options, observer), options, measurement);
  store_counts(session.weights(), runner, measurement);
  measurement.engine = kOwnEngine;
  measurement.phase = options.phase;
  measurement.workload = workload;
  measurement.new_tokens = options.phase == MeasuredPhase::generate ? options.new_tokens : 0;
  measurement.model = std::move(model);
  measurement.warnings = warnings_about(measurement);
  return measurement;
}

}  // namespace headroom::measured
