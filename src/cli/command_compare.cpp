// headroom compare: predictions beside measurements, with a verdict.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "commands.h"
#include "gauge.h"
#include "headroom/compare.h"
#include "headroom/error.h"
#include "measure.h"
#include "options.h"
#include "own_machine.h"
#include "progress.h"

namespace headroom::cli {
namespace {

struct CompareCommand {
  std::vector<std::string> subjects;  ///< a model, or two files
  std::string import_file;
  std::string machine = "here";
  WorkloadRequest request;
  MeasuredPhase phase = MeasuredPhase::prefill;
  measured::MeasureOptions run;
  std::vector<std::string> tolerances;
  bool detail = false;
  OutputOptions output;
};

std::string read_file(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    throw Error(ErrorCode::invalid_input, "cannot be read", file, "check the name of the file");
  }
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// "time=10%" or "time_s=0.1": a quantity or a group of them, and a share.
void add_tolerance(const std::string& text, CompareOptions& options) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  char* end = nullptr;
  double share = std::strtod(value.c_str(), &end);
  const bool percent = end != nullptr && *end == '%';
  if (percent) share /= 100;
  const bool whole = end != nullptr && end != value.c_str() && *(end + (percent ? 1 : 0)) == '\0';
  if (!whole || !(share >= 0) || !std::isfinite(share)) {
    throw CLI::ValidationError("--tolerance", fmt::format("{} is not like time=10%", text));
  }
  bool known = false;
  for (const Quantity quantity : all_quantities()) {
    const std::string_view full = name_of(quantity);
    const bool times = name == "time" && full.ends_with("_s");
    if (!times && name != full) continue;
    options.tolerances[quantity] = share;
    known = true;
  }
  if (name == "ops") {
    options.operator_tolerance = share;
    known = true;
  }
  if (!known) {
    throw CLI::ValidationError("--tolerance",
                               fmt::format("there is no quantity \"{}\": take time, ops, {}", name,
                                           "parameters, matrix_flops, weight_bytes, "
                                           "kv_cache_bytes, peak_activation_bytes, "
                                           "rss_peak_bytes, time_s, ttft_s or tpot_s"));
  }
}

CompareOptions compare_options(const CompareCommand& command) {
  CompareOptions options;
  options.detail = command.detail ? Detail::operators : Detail::summary;
  for (const std::string& text : command.tolerances) add_tolerance(text, options);
  return options;
}

/// This machine's profile; made quickly where there is none that holds.
MachineProfile profile_or_calibrate(const CompareCommand& command,
                                    std::vector<std::string>& notes) {
  const measured::Backend backend = command.run.backend;
  std::string why = "this machine was not calibrated";
  if (auto profile = load_own_profile(name_of(backend))) {
    why = mismatch(*profile, backend);
    if (why.empty()) return *std::move(profile);
    why = "the stored profile " + why;
  }
  fmt::print(stderr, "headroom: {}: calibrating quickly\n", why);
  MachineProfile profile = calibrate_here({backend, measured::Effort::quick, {}});
  store_own_profile(profile, name_of(backend));
  notes.push_back(why +
                  ": calibrated quickly; `headroom calibrate` takes a minute and predicts "
                  "more closely");
  return profile;
}

const ThreadProfile& threads_of(const MachineProfile& profile, int threads) {
  const auto& all = std::get<MeasuredRates>(profile.rates).by_threads;
  return *std::ranges::find(all, threads, &ThreadProfile::threads);
}

/// Watches the machine while the model runs: a reading of the gauge now and then between runs.
class DriftWatch {
 public:
  DriftWatch(const ThreadProfile& profile, measured::Backend backend)
      : profile_(profile), gauge_(backend, profile.threads) {}

  /// Called after every run.
  void run_done() {
    ++pending_;
    if (seconds_since(last_) < kInterval) return;
    const Drift now = read();
    if (readings_.empty()) readings_.push_back(now);
    const Drift before = readings_.back();
    const Drift mean{(before.compute + now.compute) / 2, (before.memory + now.memory) / 2};
    by_run_.insert(by_run_.end(), pending_, mean);
    pending_ = 0;
    readings_.push_back(now);
    last_ = Clock::now();
  }

  /// The drift of every run, after the last one.
  std::vector<Drift> finish() {
    last_ = {};
    if (pending_ > 0) {
      --pending_;
      run_done();
    }
    return by_run_;
  }

  [[nodiscard]] DriftReport report() const { return {readings_.front(), readings_.back()}; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kInterval = 0.08;

  static double seconds_since(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }

  Drift read() {
    const measured::GaugeReading reading = gauge_.read();
    return {reading.compute_s / profile_.probe_compute_s,
            reading.memory_s / profile_.probe_memory_s};
  }

  const ThreadProfile& profile_;
  measured::Gauge gauge_;
  std::vector<Drift> readings_;
  std::vector<Drift> by_run_;
  std::size_t pending_ = 0;
  Clock::time_point last_;
};

double median_of(std::vector<double> values) { return summarize(std::move(values)).median_s; }

/// The prediction as the machine was during the runs: each run is held against what the machine
/// would have taken just then.
TimePrediction corrected(TimePrediction prediction, const std::vector<double>& samples,
                         const std::vector<Drift>& drifts) {
  std::vector<double> ratios;
  std::vector<double> compute;
  std::vector<double> memory;
  for (std::size_t i = 0; i < std::min(samples.size(), drifts.size()); ++i) {
    ratios.push_back(samples[i] / total_with(prediction, drifts[i]));
    compute.push_back(drifts[i].compute);
    memory.push_back(drifts[i].memory);
  }
  const double total = median_of(samples) / median_of(std::move(ratios));
  return with_drift(std::move(prediction),
                    {median_of(std::move(compute)), median_of(std::move(memory))}, total);
}

/// How much runs scatter once the machine's own changes are taken away.
double spread_of(const TimePrediction& prediction, const std::vector<double>& samples,
                 const std::vector<Drift>& drifts) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(samples.size(), drifts.size()); ++i) {
    ratios.push_back(samples[i] / total_with(prediction, drifts[i]));
  }
  const TimeStatistics statistics = summarize(std::move(ratios));
  return statistics.mad_s / statistics.median_s;
}

WorkloadRequest request_of(const CompareCommand& command) {
  WorkloadRequest request = command.request;
  request.phase = command.phase == MeasuredPhase::decode ? Phase::decode : Phase::prefill;
  return request;
}

TimeRequest time_request(const CompareCommand& command, int threads) {
  return {threads, command.phase, command.run.new_tokens,
          command.run.backend == measured::Backend::onednn};
}

bool show_run(int done, int at_most) {
  return show_progress(static_cast<double>(done) / at_most, fmt::format("run {}", done));
}

std::string title_of(const AnalyzeReport& report, const CompareCommand& command) {
  const Workload& workload = report.workload;
  std::string title = fmt::format("{} · batch {} · seq {}", name_of(command.phase),
                                  workload.batch_size, workload.seq_len);
  if (report.model.spec.kind == ModelKind::encoder_decoder) {
    title += fmt::format(" · enc-seq {}", workload.enc_seq_len);
  }
  if (workload.past_len > 0) title += fmt::format(" · past {}", workload.past_len);
  if (command.phase == MeasuredPhase::generate) {
    title += fmt::format(" · {} new tokens", command.run.new_tokens);
  }
  return title +
         fmt::format(" · {} · {} attention", name_of(workload.dtype), name_of(workload.attention));
}

/// Predicts, measures and compares in one go.
Comparison compare_here(CompareCommand& command) {
  std::vector<std::string> notes;
  AnalyzeReport report =
      make_analyze_report(load_model(command.subjects.front()), request_of(command));
  const MachineProfile machine = profile_or_calibrate(command, notes);
  add_prediction(report, machine, time_request(command, command.run.threads));
  command.run.phase = command.phase;
  command.run.threads = report.time->threads;
  if (report.workload.dtype == DType::bfloat16) {
    command.run.storage = measured::WeightStorage::bfloat16;
  } else if (report.workload.dtype != DType::float32) {
    throw Error(ErrorCode::invalid_input, "kernels compute in float32", {},
                "use --dtype float32 or bfloat16");
  }
  const ThreadProfile& profile = threads_of(machine, command.run.threads);
  catch_interrupt();
  DriftWatch watch(profile, command.run.backend);
  const auto source = measured::random_weights(command.run.seed);
  const Measurement measurement =
      measured::measure(report.model, report.workload, *source, std::nullopt, command.run,
                        [&](int done, int at_most) {
                          watch.run_done();
                          return show_run(done, at_most);
                        });
  clear_progress();
  const std::vector<double>& samples = measurement.time.samples_s;
  const std::vector<Drift> drifts = watch.finish();
  Figured measured = measured_figures(measurement);
  measured.time_spread = spread_of(*report.time, samples, drifts);
  report.time = corrected(*std::move(report.time), samples, drifts);
  Comparison comparison = compare(predicted_figures(report), measured, compare_options(command));
  comparison.title = title_of(report, command);
  comparison.machine = fmt::format("{} · {} thread{} · {}", machine.name, command.run.threads,
                                   command.run.threads == 1 ? "" : "s", machine.context.backend);
  comparison.drift = watch.report();
  comparison.context = measurement.context;
  comparison.notes.insert(comparison.notes.end(), notes.begin(), notes.end());
  comparison.notes.insert(comparison.notes.end(), measurement.warnings.begin(),
                          measurement.warnings.end());
  return comparison;
}

Comparison compare_files(const CompareCommand& command) {
  const std::string& a = command.subjects[0];
  const std::string& b = command.subjects[1];
  const Figured predicted = predicted_from_json(read_file(a), a);
  const Figured measured = measured_from_json(read_file(b), b);
  Comparison comparison = compare(predicted, measured, compare_options(command));
  comparison.title = fmt::format("{} · {}", name_of(*predicted.identity.phase), measured.engine);
  comparison.machine = fmt::format("predicted in {}, measured in {}", a, b);
  return comparison;
}

/// What a foreign file says of its run takes the place of options that were not given; what it does
/// not say has to be given.
void take_over(const RunIdentity& identity, CompareCommand& command) {
  if (identity.phase) command.phase = *identity.phase;
  if (identity.batch_size) command.request.batch_size = *identity.batch_size;
  if (identity.seq_len) command.request.seq_len = identity.seq_len;
  if (identity.enc_seq_len) command.request.enc_seq_len = identity.enc_seq_len;
  if (identity.past_len) command.request.past_len = identity.past_len;
  if (identity.new_tokens) command.run.new_tokens = *identity.new_tokens;
  if (!command.request.seq_len) {
    throw Error(ErrorCode::invalid_input, "does not say how long the prompt was",
                command.import_file, "give --seq, and --batch and --new-tokens where they differ");
  }
}

std::vector<Comparison> compare_import(const CompareCommand& original) {
  std::vector<Comparison> comparisons;
  for (Figured measured :
       import_measurements(read_file(original.import_file), original.import_file)) {
    CompareCommand command = original;
    take_over(measured.identity, command);
    AnalyzeReport report =
        make_analyze_report(load_model(command.subjects.front()), request_of(command));
    const MachineProfile machine = machine_named(command.machine, command.run.backend);
    add_prediction(report, machine, time_request(command, command.run.threads));
    // Names of models, threads and of what else a file says differently are the user's to match.
    measured.identity = {};
    measured.rss_before_bytes.reset();
    Comparison comparison = compare(predicted_figures(report), measured, compare_options(command));
    comparison.title = title_of(report, command);
    comparison.machine = fmt::format("{} ({}), measured by {}", machine.name,
                                     name_of(report.time->basis), measured.engine);
    comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

std::vector<Comparison> comparisons_of(CompareCommand& command) {
  if (!command.import_file.empty()) return compare_import(command);
  if (command.subjects.size() == 2) return {compare_files(command)};
  if (command.machine != "here") {
    throw Error(ErrorCode::invalid_input,
                fmt::format("what {} does cannot be measured here", command.machine), {},
                "give its measurement with --import");
  }
  return {compare_here(command)};
}

void run(CompareCommand& command, int& status) {
  std::string text;
  std::vector<std::string> notes;
  for (const Comparison& comparison : comparisons_of(command)) {
    text += (text.empty() || command.output.format == Format::json ? "" : "\n");
    text += render(comparison, render_options(command.output, Detail::summary));
    notes.insert(notes.end(), comparison.notes.begin(), comparison.notes.end());
    if (comparison.result == RowResult::fail) status = 1;
  }
  if (interrupted()) notes.emplace_back("interrupted: this is what was measured until then");
  write_output(text, notes, command.output);
}

void add_run_options(CLI::App& app, CompareCommand& command) {
  const auto whole = [&](const char* name, auto set, const char* text, std::int64_t most) {
    add_count(app, name, set, text)->check(CLI::Range(std::int64_t{1}, most))->group("Run");
  };
  whole(
      "--threads", [&](std::int64_t n) { command.run.threads = static_cast<int>(n); },
      "Threads (the most that were calibrated)", 4096);
  whole(
      "--runs", [&](std::int64_t n) { command.run.runs = static_cast<int>(n); },
      "Runs that count (until the median is steady)", 1'000'000);
  whole(
      "--new-tokens", [&](std::int64_t n) { command.run.new_tokens = n; },
      "Tokens to generate (32)", 1'000'000);
  add_choice<measured::Backend>(
      app, "--backend", command.run.backend,
      {{"eigen", measured::Backend::eigen}, {"onednn", measured::Backend::onednn}},
      "Library of matrix products (onednn where it is there)")
      ->group("Run");
  app.add_option("--import", command.import_file,
                 "Another engine's measurement: llama-bench, vLLM bench, optimum-benchmark, or "
                 "headroom's own")
      ->type_name("FILE")
      ->group("Run");
  app.add_option("--machine", command.machine,
                 "That the import was measured on: here, a name of `headroom machines`, or a file")
      ->type_name("MACHINE")
      ->group("Run");
  app.add_option("--tolerance", command.tolerances,
                 "How far a quantity may be off: time=10%, ops=25%, rss_peak_bytes=5%, …")
      ->type_name("QUANTITY=SHARE")
      ->group("Verdict");
  app.add_flag("--detail,-d", command.detail, "Single operators as well")->group("Verdict");
}

}  // namespace

void add_compare(CLI::App& app, int& status) {
  auto command = std::make_shared<CompareCommand>();
  command->run.backend = default_backend();
  CLI::App* compare =
      app.add_subcommand("compare", "Predict, measure, and lay both beside each other");
  compare
      ->add_option("subjects", command->subjects,
                   "A model, or two files: a prediction (analyze --machine) and a measurement")
      ->type_name("MODEL | PREDICTED.json MEASURED.json")
      ->required()
      ->expected(1, 2);
  add_choice<MeasuredPhase>(*compare, "--phase", command->phase,
                            {{"prefill", MeasuredPhase::prefill},
                             {"decode", MeasuredPhase::decode},
                             {"generate", MeasuredPhase::generate}},
                            "What the model does (prefill)")
      ->group("Workload");
  add_inference_options(*compare, command->request);
  add_run_options(*compare, *command);
  add_output_options(*compare, command->output);
  compare->footer(
      "Examples:\n"
      "  headroom compare bert-base\n"
      "  headroom compare gpt2 --phase generate --seq 64 --new-tokens 32 --detail\n"
      "  headroom compare predicted.json measured.json --tolerance time=10%\n"
      "  headroom compare llama-3-8b --import llama-bench.json --machine h100-80gb\n"
      "\n"
      "Exit status 1: a row failed.");
  compare->callback([command, &status] { run(*command, status); });
}

}  // namespace headroom::cli
