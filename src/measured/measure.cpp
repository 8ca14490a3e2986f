#include "measure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <iterator>

#include "clock.h"
#include "cpu_watch.h"
#include "headroom/error.h"
#include "interruption.h"
#include "replicas.h"
#include "run_memory.h"
#include "runner.h"
#include "system.h"
#include "thread_limit.h"

namespace headroom::measured {
namespace {

constexpr int kMinRuns = 5;
constexpr int kMaxRuns = 100;
constexpr double kMaxRunSeconds = 20;
/// The standard error of a median is 1.2533·σ/√n; σ = 1.4826·MAD for a normal distribution.
constexpr double kMedianErrorOfMad = 1.2533 * 1.4826;
constexpr double kSteadyError = 0.005;
constexpr double kNoisySpread = 0.05;

/// Returns whether the median of `samples` is known to half a per cent.
bool is_steady(const std::vector<double>& samples) {
  if (samples.size() < kMinRuns) return false;
  const TimeStatistics statistics = summarize(samples);
  const double error =
      kMedianErrorOfMad * statistics.mad_s / std::sqrt(static_cast<double>(samples.size()));
  return error < kSteadyError * statistics.median_s;
}

/// Completed runs.
struct CollectedSamples {
  std::vector<Sample> samples;
  bool interrupted = false;
  std::optional<RetiredOperations> retired{};
};

/// Operations of `runs` runs since `before` was read.
RetiredOperations retired_since(std::optional<double> before, const FloatCounters& counters,
                                std::size_t runs) {
  const std::optional<double> after = counters.operations();
  if (!counters.refusal().empty()) return {std::nullopt, counters.refusal()};
  if (!before || !after || runs == 0) return {std::nullopt, "a counter could not be read"};
  if (*after <= *before) return {std::nullopt, "the processor's counters stayed at 0"};
  return {(*after - *before) / static_cast<double>(runs), {}};
}

/// Appends a run. Returns false if it was interrupted after others were completed.
bool add_run(Runner& runner, std::vector<Sample>& samples) {
  try {
    samples.push_back(runner.run());
  } catch (const headroom::detail::Interrupted&) {
    if (samples.empty()) throw;
    return false;
  }
  return true;
}

CollectedSamples collect_samples(Runner& runner, const MeasureOptions& options,
                                 const RunObserver& observer) {
  for (int i = 0; i < options.warmup; ++i) (void)runner.run();
  CollectedSamples collected;
  std::vector<double> times;
  const int max_runs = options.runs.value_or(kMaxRuns);
  std::optional<double> retired_before;
  if (options.counters != nullptr) retired_before = options.counters->operations();
  const auto start = Clock::now();
  for (int run = 1; run <= max_runs; ++run) {
    collected.interrupted =
        !add_run(runner, collected.samples) || (!observer(run, max_runs) && run < max_runs);
    if (collected.interrupted) break;
    times.push_back(collected.samples.back().total_s);
    std::int64_t enough =
        !options.runs && (is_steady(times) || seconds_since(start) > kMaxRunSeconds) ? 1 : 0;
    if (options.rank != nullptr) options.rank->world->broadcast({&enough, 1}, 0);
    if (enough != 0) break;
  }
  if (options.counters != nullptr) {
    collected.retired = retired_since(retired_before, *options.counters, collected.samples.size());
    if (collected.interrupted) collected.retired = {std::nullopt, "the last run was interrupted"};
  }
  return collected;
}

std::vector<std::string> warnings_about(const Measurement& measurement) {
  std::vector<std::string> warnings;
  if (measurement.retired && !measurement.retired->per_run) {
    warnings.push_back("no retired operations: " + measurement.retired->refusal);
  }
  const TimeStatistics& time = measurement.time;
  if (time.mad_s > kNoisySpread * time.median_s) {
    warnings.push_back(
        fmt::format("the runs deviate by {:.0f} % of the median: the machine is noisy",
                    100 * time.mad_s / time.median_s));
  }
  const MachineContext& context = measurement.context;
  if (std::string why = disturbance_of(context); !why.empty()) {
    warnings.push_back(std::move(why) +
                       " during the run, so its times include the effect of other programs");
  }
  if (context.frequency_governor == "powersave") {
    warnings.emplace_back("the frequency governor is powersave: clock rates may be low");
  }
  return warnings;
}

SessionOptions session_options(const MeasureOptions& options, const Workload& workload) {
  const PlannedRun run = planned_run(workload, options);
  return {options.backend,    options.storage,
          row_range_of(run),  run.workload.batch_size * workload.seq_len,
          workload.attention, options.activations,
          workload.logits,    head_row_range_of(run),
          options.rank};
}

/// The sample whose `time` is nearest to `median_s`.
const Sample& nearest_sample(const std::vector<Sample>& samples, double Sample::*time,
                             double median_s) {
  return *std::ranges::min_element(
      samples, {}, [&](const Sample& sample) { return std::abs(sample.*time - median_s); });
}

/// Stores the times of all samples, and the operators of the sample nearest the median.
void store_times(const std::vector<Sample>& samples, const MeasureOptions& options,
                 Measurement& measurement) {
  std::vector<double> totals;
  totals.reserve(samples.size());
  for (const Sample& sample : samples) totals.push_back(sample.total_s);
  measurement.time = summarize(totals);
  const Sample& nearest = nearest_sample(samples, &Sample::total_s, measurement.time.median_s);
  measurement.operators = nearest.operators;
  if (options.phase != MeasuredPhase::generate) return;
  measurement.ttft_s = nearest.ttft_s;
  if (options.new_tokens > 1) {
    measurement.tpot_s =
        (nearest.total_s - nearest.ttft_s) / static_cast<double>(options.new_tokens - 1);
  }
}

/// Stores the counts and the memory of the run.
void store_counts(const ModelWeights& weights, const Runner& runner, Measurement& measurement) {
  for (const OperatorMeasurement& op : measurement.operators) {
    measurement.counted.matrix_flops += op.matrix_flops;
  }
  measurement.counted.parameters = weights.parameters();
  measurement.counted.weight_bytes = weights.bytes();
  measurement.counted.kv_cache_bytes = runner.kv_cache_bytes();
  measurement.memory.weights_held_bytes = weights.held_bytes();
  measurement.weight_formats = weights.formats();
  measurement.memory.arena_peak_bytes = runner.arena_peak_bytes();
  measurement.memory.allocated = runner.allocated();
  measurement.memory.rss_peak_bytes = peak_resident_bytes();
}

/// Returns whether any weights are held in blocks.
bool holds_blocks(const Measurement& measurement) {
  return std::ranges::any_of(measurement.weight_formats, [](const WeightFormat& format) {
    return format.stored == format.held && format.stored != "F32";
  });
}

/// Name of the activations' path, where weights are held in fewer bits.
std::string_view name_of(ActivationPath path) {
  switch (path) {
    case ActivationPath::float32:
      return "float32";
    case ActivationPath::bfloat16:
      return "bfloat16";
    case ActivationPath::int8:
      break;
  }
  return "int8";
}

}  // namespace

std::string reason_not_run(const ModelSpec& spec) { return spec.not_run; }

namespace {

/// The operators of a rank's sample. A reception is no operator of the graph: it is the rest of the
/// communication.
std::vector<OperatorMeasurement> operators_with_reception(const Sample& sample) {
  double receive_s = sample.communication_s;
  for (const OperatorMeasurement& one : sample.operators) {
    if (one.role == OperatorRole::communication) receive_s -= one.time_s;
  }
  std::vector<OperatorMeasurement> operators = sample.operators;
  operators.insert(operators.begin(), {"pipeline.receive", std::max(0.0, receive_s), 0, 0,
                                       OperatorRole::communication});
  return operators;
}

/// This rank's part of the measurement.
RankMeasurement rank_measurement(const RankContext& rank, const std::vector<Sample>& samples,
                                 const Measurement& measurement) {
  RankMeasurement own;
  own.rank = rank.world->rank();
  own.stage = rank.pipeline.rank;
  own.data_rank = rank.data.rank;
  own.tensor_rank = rank.tensor.rank;
  std::vector<double> times;
  std::vector<double> communication;
  for (const Sample& sample : samples) {
    times.push_back(sample.rank_s);
    communication.push_back(sample.communication_s);
  }
  own.time_s = summarize(std::move(times)).median_s;
  own.communication_s = summarize(std::move(communication)).median_s;
  own.counted = measurement.counted;
  own.memory = measurement.memory;
  own.traffic = samples.back().traffic;
  const Sample& nearest = nearest_sample(samples, &Sample::rank_s, own.time_s);
  own.operators = rank.pipeline.is_first() ? nearest.operators : operators_with_reception(nearest);
  return own;
}

/// Processors that programs other than the ranks on this host used.
std::optional<double> others_beside_ranks(const CpuWatch& watch, Coordinator& world) {
  std::array<char, HOST_NAME_MAX + 1> host{};
  (void)gethostname(host.data(), HOST_NAME_MAX);
  const std::string own = fmt::format("{} ", host.data());
  double partners_s = -watch.own_s();
  for (const std::string& text : world.exchange(fmt::format("{}{}", own, watch.own_s()))) {
    if (text.starts_with(own)) partners_s += std::stod(text.substr(own.size()));
  }
  return watch.other_programs_cpus(std::max(0.0, partners_s));
}

/// Runs `prepare`, on all ranks together if there are several.
void prepare_together(const RankContext* rank, const std::function<void()>& prepare) {
  if (rank == nullptr) {
    prepare();
  } else {
    run_together(*rank->world, prepare);
  }
}

/// A warning about weights that int8 activations do not multiply. Throws Error{invalid_input} if
/// they multiply none.
std::vector<std::string> warnings_about(const GroupProducts& products) {
  if (products.decoded.empty()) return {};
  const std::string types = fmt::format("{}", fmt::join(products.decoded, " and "));
  if (products.integers == 0) {
    throw Error(
        ErrorCode::invalid_input,
        fmt::format("int8 activations need integer weights in whole blocks, and weights in {} have "
                    "none",
                    types),
        {}, "use float32 activations");
  }
  return {
      fmt::format("weights in {} have no integers in whole blocks that int8 activations multiply: "
                  "they are decoded to float32",
                  types)};
}

/// A warning about `count` outputs that are NaN or infinite.
std::vector<std::string> warnings_about_outputs(std::int64_t count) {
  if (count == 0) return {};
  return {
      fmt::format("{} of the last operator's outputs {} NaN or infinite: times and counts hold, "
                  "but the weights or the config's factors are beyond what float32 can compute",
                  count, count == 1 ? "is" : "are")};
}

}  // namespace

std::int64_t micro_batches_of(const Workload& workload, const MeasureOptions& options) noexcept {
  return workload.batch_size / options.micro_batch.value_or(workload.batch_size);
}

PlannedRun planned_run(const Workload& workload, const MeasureOptions& options) {
  const bool generates = options.phase == MeasuredPhase::generate;
  PlannedRun run{
      workload,        generates ? options.new_tokens : 0,  options.storage,    options.outputs,
      options.backend, micro_batches_of(workload, options), options.activations};
  run.workload.batch_size /= run.micro_batches;
  return run;
}

void require_runnable(const ModelSpec& spec) {
  const std::string reason = reason_not_run(spec);
  if (reason.empty()) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} is counted but cannot be run: {}", spec.model_type, reason),
              spec.name, "use analyze");
}

namespace {

/// Throws if images are read together with an adapter of the model, which does not run.
void require_no_adapter_of_images(const ModelSpec& spec, const Workload& workload) {
  const bool has_adapter = std::ranges::any_of(spec.counted_only, [](const CountedWeight& weight) {
    return weight.part == ModelPart::adapter;
  });
  if (!has_adapter || workload.images.count == 0) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("images of {} cannot be run: its adapter for images is counted, and "
                          "has no kernel yet",
                          spec.model_type),
              spec.name, "measure a text, or use analyze");
}

/// `workload` in the types that kernels compute and cache in: those that a config states are of
/// engines.
Workload in_own_types(Workload workload) {
  workload.kv_dtype = workload.dtype;
  workload.arithmetic.reset();
  return workload;
}

}  // namespace

Measurement measure(Model model, const Workload& workload, WeightSource& source,
                    std::optional<ModelInputs> given, const MeasureOptions& options,
                    const RunObserver& observer, const OutputObserver& outputs) {
  require_runnable(model.spec);
  require_no_adapter_of_images(model.spec, workload);
  const GroupPosition replica = options.rank == nullptr ? GroupPosition{} : options.rank->data;
  const Workload own = workload_of_replica(workload, replica);
  prepare_together(options.rank, [&] {
    require_run_fits(model.spec, planned_run(own, options), memory_limit(), options.rank);
    require_threads(options.threads > 0 ? options.threads : omp_get_max_threads());
  });
  if (options.threads > 0) omp_set_num_threads(options.threads);
  Measurement measurement;
  measurement.context = machine_context(omp_get_max_threads(), options.backend);
  ModelInputs inputs = inputs_of_replica(
      given ? *std::move(given) : random_inputs(model.spec, workload, options.seed), replica);

  const CpuWatch watch;
  reset_peak_resident();
  measurement.memory.rss_before_bytes = resident_bytes();
  std::optional<Session> prepared;
  std::optional<Runner> ready;
  prepare_together(options.rank, [&] {
    const Session& loaded = prepared.emplace(model.spec, source, session_options(options, own));
    ready.emplace(loaded, options, own, std::move(inputs));
  });
  const Session& session = *prepared;
  const GroupProducts& products = session.weights().group_products();
  std::vector<std::string> on_products = warnings_about(products);
  measurement.integers_decoded =
      options.activations == ActivationPath::float32 && products.integers > 0;
  Runner& runner = *ready;
  const CollectedSamples collected = collect_samples(runner, options, observer);
  store_times(collected.samples, options, measurement);
  std::vector<std::string> on_outputs = warnings_about_outputs(runner.non_finite_outputs());
  measurement.interrupted = collected.interrupted;
  measurement.retired = collected.retired;
  measurement.context.other_programs_cpus = options.rank == nullptr
                                                ? watch.other_programs_cpus()
                                                : others_beside_ranks(watch, *options.rank->world);
  store_counts(session.weights(), runner, measurement);
  if (options.rank != nullptr) {
    measurement.ranks.emplace().ranks.push_back(
        rank_measurement(*options.rank, collected.samples, measurement));
  }
  if (outputs && !collected.interrupted) outputs(runner.outputs(model.spec));
  const bool rounds = options.activations == ActivationPath::bfloat16;
  if (holds_blocks(measurement) || rounds) measurement.activations = name_of(options.activations);
  measurement.engine = kOwnEngine;
  measurement.phase = options.phase;
  measurement.workload = in_own_types(workload);
  measurement.new_tokens = options.phase == MeasuredPhase::generate ? options.new_tokens : 0;
  measurement.model = std::move(model);
  measurement.warnings = warnings_about(measurement);
  std::ranges::move(on_products, std::back_inserter(measurement.warnings));
  std::ranges::move(on_outputs, std::back_inserter(measurement.warnings));
  return measurement;
}

}  // namespace headroom::measured
