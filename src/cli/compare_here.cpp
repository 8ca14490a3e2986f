// Predicts, measures and compares in one go, watching the machine meanwhile.
#include <fmt/format.h>

#include "compare_command.h"
#include "drift_watch.h"
#include "own_machine.h"
#include "progress.h"
#include "run_options.h"

namespace headroom::cli {
namespace {

/// This machine's profile; made quickly where there is none that holds.
MachineProfile profile_or_calibrate(measured::Backend backend, std::vector<std::string>& notes) {
  std::string why = "this machine was not calibrated";
  if (auto profile = load_own_profile(name_of(backend))) {
    why = mismatch(*profile, backend);
    if (why.empty()) return *std::move(profile);
    why = "the stored profile " + why;
  }
  fmt::print(stderr, "headroom: {}: calibrating quickly\n", why);
  const std::string backend_option =
      backend == default_backend() ? "" : fmt::format(" --backend {}", name_of(backend));
  notes.push_back(fmt::format(
      "{}: calibrated quickly, and kept; `headroom calibrate{}` takes under a minute and predicts "
      "more closely",
      why, backend_option));
  StoredProfile stored = calibrate_here({backend, measured::Effort::quick, {}});
  notes.insert(notes.end(), stored.warnings.begin(), stored.warnings.end());
  return std::move(stored.profile);
}

/// A measurement and how the machine drifted during its runs.
struct WatchedRun {
  Measurement measurement;
  std::vector<Drift> drifts;
  DriftReport report;
};

WatchedRun run_watched(const AnalyzeReport& report, const measured::MeasureOptions& options,
                       const ThreadProfile& profile) {
  catch_interrupt();
  measured::DriftWatch watch(profile, options.backend);
  const auto observer = [&](int done, int at_most) {
    watch.run_done();
    return show_run(done, at_most);
  };
  const auto source = measured::random_weights(options.seed);
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
  std::vector<std::string> notes;
  measured::MeasureOptions run = command.run;
  Model model = load_model(command.subjects.front());
  const Workload workload = workload_of_run(command.request, run.phase, model.spec);
  run.storage = storage_of(workload);
  WorkloadRequest request = command.request;
  request.phase = first_pass(run.phase);
  AnalyzeReport report = make_analyze_report(std::move(model), request);
  const MachineProfile machine = profile_or_calibrate(run.backend, notes);
  add_prediction(report, machine, time_request(run));
  run.threads = report.time->threads;
  const WatchedRun watched = run_watched(report, run, *curves_of(machine, run.threads));
  const Measurement& measurement = watched.measurement;

  const std::vector<double>& samples = measurement.time.samples_s;
  Figured measured = measured_figures(measurement);
  measured.time_spread = spread_beside_drift(*report.time, samples, watched.drifts);
  report.time = corrected_for_drift(*std::move(report.time), samples, watched.drifts);
  Comparison comparison = compare(predicted_figures(report), measured, command.options);
  comparison.machine = fmt::format("{} · {} thread{} · {}", machine.name, run.threads,
                                   run.threads == 1 ? "" : "s", machine.context.backend);
  comparison.drift = watched.report;
  comparison.context = measurement.context;
  notes.insert(notes.end(), measurement.warnings.begin(), measurement.warnings.end());
  comparison.notes.insert(comparison.notes.end(), notes.begin(), notes.end());
  return comparison;
}

}  // namespace headroom::cli
