// Predicts and measures on this machine, watches its drift, and compares.
#include <fmt/format.h>

#include <filesystem>

#include "calibrate/drift_watch.h"
#include "compare_command.h"
#include "gguf.h"
#include "headroom/error.h"
#include "headroom/storage.h"
#include "interruption.h"
#include "measured_weights.h"
#include "own_machine.h"
#include "progress.h"
#include "quantization/group_format.h"
#include "run_options.h"
#include "similar.h"
#include "standard_streams.h"
#include "stored_gemms.h"
#include "user_settings.h"
#include "with_noun.h"

namespace headroom::cli {
namespace {

/// This machine's profile; a quick calibration if there is no valid one.
MachineProfile profile_or_calibrate(measured::Backend backend, std::vector<std::string>& notes) {
  std::string why = "this machine is not calibrated";
  if (auto profile = stored_profile(backend)) {
    why = mismatch(*profile, backend);
    if (why.empty()) return *std::move(profile);
    why = "the stored profile " + why;
  }
  write_standard_error(fmt::format("headroom: {}; running a quick calibration\n", why));
  const std::string backend_option =
      backend == default_backend() ? "" : fmt::format(" --backend {}", name_of(backend));
  notes.push_back(
      fmt::format("{}; used a quick calibration: `headroom calibrate{}` takes under a minute and "
                  "predicts more accurately",
                  why, backend_option));
  StoredProfile stored =
      calibrate_here({backend, measured::Effort::quick, {}}, Storing::if_possible);
  notes.insert(notes.end(), stored.warnings.begin(), stored.warnings.end());
  return std::move(stored.profile);
}

void note_quick_gemms(const MachineProfile& machine, const std::vector<std::string>& formats,
                      std::vector<std::string>& notes) {
  const std::vector<std::string> quick = quick_gemms(machine, formats);
  if (quick.empty()) return;
  notes.push_back(fmt::format(
      "GEMMs of {} weights were measured quickly; `headroom calibrate "
      "--weights {}` takes a few seconds and predicts more accurately",
      fmt::join(quick, " and "), detail::lower_case(fmt::format("{}", fmt::join(quick, ",")))));
}

/// Measures the GEMMs of `formats` that the profile lacks, and stores them if possible.
void add_missing_gemms(MachineProfile& machine, const std::vector<std::string>& formats,
                       measured::Backend backend, std::vector<std::string>& notes) {
  const std::vector<std::string> missing = missing_gemms(machine, formats);
  if (missing.empty()) return note_quick_gemms(machine, formats, notes);
  write_standard_error(
      fmt::format("headroom: calibrating GEMMs of {} weights\n", fmt::join(missing, " and ")));
  measure_stored_gemms(machine, missing, {backend, measured::Effort::quick, {}});
  try {
    (void)store_extended_profile(machine, name_of(backend));
  } catch (const Error& error) {
    notes.push_back(fmt::format("the GEMMs are not stored: {}", error.what()));
  }
  note_quick_gemms(machine, formats, notes);
}

/// A model with the types of its random weights.
struct RunWeights {
  Model model;
  WorkloadRequest request;
  /// Formats that GEMMs read as they are stored; empty where all weights run as plain numbers.
  std::optional<std::vector<std::string>> formats{};
  bool in_groups = false;
  bool from_files = false;  ///< of quantised safetensors; all others are random
};

/// Of weights that calibrations have no rates for.
RunWeights as_float32(RunWeights run, std::vector<std::string>& notes) {
  notes.push_back(
      fmt::format("compare predicts and runs random float32 weights: calibrations have no rates "
                  "for the weights of {}, which `headroom measure` runs",
                  run.model.weight_files));
  run.request.weights = WeightType::float32;
  run.in_groups = run.from_files = false;
  return run;
}

/// Chooses the types of the model's files, of --weights, or those that its config states; float32
/// for formats of files that calibrations have no rates for, with a note.
RunWeights weights_of_run(RunWeights run, MeasuredPhase phase, std::vector<std::string>& notes) {
  const bool quantised = !run.request.weights && is_quantised(run.model.weight_files);
  if (quantised) {
    run.from_files = !checkpoint::is_gguf(run.model.weight_files);
    // Without a method in the config, no rule tells the formats of packed safetensors.
    if (run.from_files && run.model.spec.quantization.empty()) {
      return as_float32(std::move(run), notes);
    }
    run.model = with_file_types(std::move(run.model));
  }
  const Workload workload = workload_of_run(run.request, phase, run.model.spec);
  if (storage_of(workload) == measured::HeldType::stored) {
    run.model.spec = stored_as(std::move(run.model.spec), *workload.weights);
  }
  try {
    run.formats = stored_gemm_formats(run.model.spec, workload);
    run.in_groups = run.formats && detail::runs_in_groups(run.model.spec);
    if (quantised && !run.formats) {
      run.from_files = false;
      notes.push_back(
          fmt::format("no weights of {} run as they are stored: compare predicts and runs random "
                      "float32 weights",
                      run.model.weight_files));
    }
  } catch (const Error& error) {
    if (!quantised || error.code() != ErrorCode::invalid_input) throw;
    return as_float32(std::move(run), notes);
  }
  return run;
}

measured::MeasureOptions options_of(const CompareCommand& command, const RunWeights& weights,
                                    const Workload& workload) {
  measured::MeasureOptions run = command.run;
  fill_in_threads(run.threads);
  run.storage = weights.formats ? measured::HeldType::stored : storage_of(workload);
  if (weights.formats) run.activations = measured::ActivationPath::int8;
  if (weights.in_groups) run.activations = measured::ActivationPath::float32;
  return run;
}

/// A measurement and the machine's drift during its runs.
struct WatchedRun {
  Measurement measurement;
  std::vector<Drift> drifts;
  DriftReport report;
};

WatchedRun run_watched(const AnalyzeReport& report, const std::filesystem::path& weights,
                       const measured::MeasureOptions& options, const ThreadProfile& profile) {
  detail::end_at_next_step();
  measured::DriftWatch watch(profile, options.backend);
  const auto observer = [&](int done, int at_most) {
    watch.run_done();
    return show_run(done, at_most);
  };
  const ModelSpec& spec = report.model.spec;
  const auto source = with_progress(open_weights(weights, options, spec), spec);
  WatchedRun run;
  run.measurement =
      measured::measure(report.model, report.workload, *source, std::nullopt, options, observer);
  clear_progress();
  run.drifts = watch.finish();
  run.report = {watch.first(), watch.last()};
  return run;
}

}  // namespace

Comparison compare_here(const CompareCommand& command) {
  Model loaded = command.reading.load(command.model);
  std::vector<std::string> notes = notes_on_config(loaded.spec);
  if (!loaded.name_note.empty()) notes.push_back(loaded.name_note);
  measured::require_runnable(loaded.spec);
  RunWeights weights =
      weights_of_run({std::move(loaded), command.request}, command.run.phase, notes);
  auto& [model, request, formats, in_groups, from_files] = weights;
  const Workload workload = workload_of_run(request, command.run.phase, model.spec);
  measured::MeasureOptions run = options_of(command, weights, workload);
  // Before the calibration, which takes a minute.
  require_run_fits(model.spec, planned_run(workload, run), measured::memory_limit());
  const std::filesystem::path files = from_files ? model.weight_files : "";
  request.phase = first_pass(run.phase);
  request.dtype = workload.dtype;
  if (run.phase == MeasuredPhase::generate) request = prompt_request(request);
  AnalyzeReport report = make_analyze_report(std::move(model), request);
  MachineProfile machine = profile_or_calibrate(run.backend, notes);
  if (formats) add_missing_gemms(machine, *formats, run.backend, notes);
  add_prediction(report, machine, time_request(run));
  run.threads = report.time->threads;
  const WatchedRun watched = run_watched(report, files, run, *curves_of(machine, run.threads));
  const Measurement& measurement = watched.measurement;

  const std::vector<double>& samples = measurement.time.samples_s;
  ComparedRun measured = measured_run(measurement);
  measured.time_spread = spread_without_drift(*report.time, samples, watched.drifts);
  if (measured.disturbance.empty()) measured.disturbance = disturbance_of(watched.report);
  report.time = corrected_for_drift(*std::move(report.time), samples, watched.drifts);
  Comparison comparison = compare(predicted_run(report), measured, command.options);
  comparison.machine =
      fmt::format("{} · {} · {}", machine.name, detail::with_noun(run.threads, "thread"),
                  machine.context.backend);
  comparison.drift = watched.report;
  comparison.context = measurement.context;
  comparison.interrupted = measurement.interrupted;
  notes.insert(notes.end(), measurement.warnings.begin(), measurement.warnings.end());
  comparison.notes.insert(comparison.notes.end(), notes.begin(), notes.end());
  return comparison;
}

}  // namespace headroom::cli
