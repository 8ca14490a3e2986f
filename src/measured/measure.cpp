#include "measure.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "headroom/error.h"
#include "system.h"

namespace headroom::measured {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFewestRuns = 5;
constexpr int kMostRuns = 100;
constexpr double kLongestSeconds = 20;
/// The standard error of a median is 1.2533·σ/√n, and σ is 1.4826·MAD for a normal spread.
constexpr double kMedianErrorOfMad = 1.2533 * 1.4826;
constexpr double kSteadyShare = 0.005;
constexpr double kNoisyShare = 0.05;
constexpr double kBusyLoad = 0.5;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Whether the median of the samples is known to half a per cent.
bool is_steady(const std::vector<double>& samples) {
  if (samples.size() < kFewestRuns) return false;
  const TimeStatistics statistics = summarize(samples);
  const double error =
      kMedianErrorOfMad * statistics.mad_s / std::sqrt(static_cast<double>(samples.size()));
  return error < kSteadyShare * statistics.median_s;
}

/// One run's times, and what its operators did.
struct Sample {
  double total_s = 0;
  double ttft_s = 0;
  std::vector<OperatorMeasurement> operators;
};

void add_operators(const Program& program, std::vector<OperatorMeasurement>& operators) {
  for (const ProgramBlock& block : program.blocks()) {
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
      const std::string path = block.path + "." + block.steps[i].node->path;
      auto found = std::ranges::find(operators, path, &OperatorMeasurement::path);
      if (found == operators.end()) found = operators.insert(found, {path, 0, 0, 0});
      found->time_s += std::chrono::duration<double>(block.times[i]).count();
      found->matrix_flops += block.counts[i].matrix_flops;
      found->bytes += block.counts[i].bytes;
    }
  }
}

/// What is run again and again.
class Runner {
 public:
  Runner(const Session& session, const MeasureOptions& options, const Workload& workload,
         ModelInputs inputs)
      : options_(options), inputs_(std::move(inputs)), next_(inputs_) {
    lengths_ = lengths_of(inputs_);
    lengths_.past = workload.past_len;
    const bool generates = options.phase == MeasuredPhase::generate;
    lengths_.capacity =
        workload.past_len + lengths_.seq_len + (generates ? options.new_tokens - 1 : 0);
    cache_ = std::make_unique<KvCache>(session.make_cache(lengths_));
    cache_->fill(options.seed);
    if (options.phase != MeasuredPhase::decode) {
      first_ = session.program(Phase::prefill, inputs_, lengths_, *cache_);
    }
    if (options.phase == MeasuredPhase::prefill) return;
    Lengths step = lengths_;
    if (generates) {
      step.seq_len = 1;
      next_.main = {inputs_.main.batch,
                    1,
                    std::vector<std::int64_t>(static_cast<std::size_t>(inputs_.main.batch)),
                    {},
                    {}};
    }
    vocab_ = session.spec().embedding.vocab_size;
    decode_ = session.program(Phase::decode, next_, step, *cache_);
  }

  Sample run() {
    Sample sample;
    const auto start = Clock::now();
    switch (options_.phase) {
      case MeasuredPhase::prefill:
        first_->run();
        break;
      case MeasuredPhase::decode:
        decode_->run();
        break;
      case MeasuredPhase::generate:
        generate(start, sample);
        break;
    }
    sample.total_s = seconds_since(start);
    if (options_.phase == MeasuredPhase::decode) add_operators(*decode_, sample.operators);
    if (options_.phase == MeasuredPhase::prefill) add_operators(*first_, sample.operators);
    return sample;
  }

  [[nodiscard]] std::int64_t kv_cache_bytes() const { return cache_->bytes(); }

  [[nodiscard]] std::int64_t arena_peak_bytes() const {
    std::int64_t peak = 0;
    for (const auto* program : {first_.get(), decode_.get()}) {
      if (program != nullptr) peak = std::max(peak, program->arena_peak_bytes());
    }
    return peak;
  }

 private:
  void generate(Clock::time_point start, Sample& sample) {
    first_->run();
    choose(first_->output("logits"), lengths_.seq_len);
    sample.ttft_s = seconds_since(start);
    add_operators(*first_, sample.operators);
    for (std::int64_t step = 1; step < options_.new_tokens; ++step) {
      decode_->set_past(lengths_.past + lengths_.seq_len + step - 1);
      decode_->run();
      choose(decode_->output("logits"), 1);
      add_operators(*decode_, sample.operators);
    }
  }

  /// The likeliest token of every sequence becomes the next one.
  void choose(const float* logits, std::int64_t tokens) {
    for (std::size_t b = 0; b < next_.main.ids.size(); ++b) {
      const float* const last =
          logits + (static_cast<std::int64_t>(b) * tokens + tokens - 1) * vocab_;
      next_.main.ids[b] = std::max_element(last, last + vocab_) - last;
    }
  }

  MeasureOptions options_;
  ModelInputs inputs_;
  ModelInputs next_;
  Lengths lengths_;
  std::int64_t vocab_ = 0;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Program> first_;
  std::unique_ptr<Program> decode_;
};

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

}  // namespace

Measurement measure(Model model, const Workload& workload, WeightSource& source,
                    const std::optional<ModelInputs>& given, const MeasureOptions& options,
                    const RunObserver& observer) {
  if (options.threads > 0) omp_set_num_threads(options.threads);
  Measurement measurement;
  measurement.context = machine_context(omp_get_max_threads(), options.backend);
  const ModelInputs inputs = given ? *given : random_inputs(model.spec, workload, options.seed);
  Lengths lengths = lengths_of(inputs, options.new_tokens);
  lengths.capacity += workload.past_len;
  require_memory(model.spec, workload, lengths);

  reset_peak_resident();
  measurement.memory.rss_before_bytes = resident_bytes();
  const std::int64_t rows = inputs.main.batch * inputs.main.seq_len;
  SessionOptions session_options{options.backend, options.storage, RowRange::both, rows,
                                 workload.attention};
  if (options.phase != MeasuredPhase::generate) {
    session_options.rows = rows <= PackedLinear::kFewRows ? RowRange::few : RowRange::many;
  }
  const Session session(model.spec, source, session_options);
  Runner runner(session, options, workload, inputs);
  const std::vector<Sample> samples = collect(runner, options, observer);
  if (samples.empty()) throw Error(ErrorCode::invalid_input, "nothing was measured");

  std::vector<double> totals;
  totals.reserve(samples.size());
  for (const Sample& sample : samples) totals.push_back(sample.total_s);
  measurement.time = summarize(totals);
  const auto& nearest = *std::ranges::min_element(samples, {}, [&](const Sample& sample) {
    return std::abs(sample.total_s - measurement.time.median_s);
  });
  measurement.operators = nearest.operators;
  if (options.phase == MeasuredPhase::generate) {
    measurement.ttft_s = nearest.ttft_s;
    if (options.new_tokens > 1) {
      measurement.tpot_s =
          (nearest.total_s - nearest.ttft_s) / static_cast<double>(options.new_tokens - 1);
    }
  }
  for (const OperatorMeasurement& one : measurement.operators) {
    measurement.counted.matrix_flops += one.matrix_flops;
  }
  measurement.counted.parameters = session.weights().parameters();
  measurement.counted.weight_bytes = session.weights().bytes();
  measurement.counted.kv_cache_bytes = runner.kv_cache_bytes();
  measurement.memory.weights_held_bytes = session.weights().held_bytes();
  measurement.memory.arena_peak_bytes = runner.arena_peak_bytes();
  measurement.memory.rss_peak_bytes = peak_resident_bytes();
  measurement.engine = "headroom";
  measurement.phase = options.phase;
  measurement.workload = workload;
  measurement.new_tokens = options.phase == MeasuredPhase::generate ? options.new_tokens : 0;
  measurement.model = std::move(model);
  measurement.warnings = warnings_about(measurement);
  return measurement;
}

}  // namespace headroom::measured
