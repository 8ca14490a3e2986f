// headroom calibrate: measures this machine once and stores its profile, or fits a device's
// efficiencies to measured runs.
#include <fmt/format.h>

#include <memory>

#include "calibrate/calibrate.h"
#include "collective_calibration.h"
#include "commands.h"
#include "headroom/error.h"
#include "headroom/machine_names.h"
#include "headroom/report.h"
#include "joined_processes.h"
#include "measured_runs.h"
#include "output.h"
#include "own_machine.h"
#include "run_options.h"
#include "stored_gemms.h"
#include "system.h"
#include "waiting_threads.h"

namespace headroom::cli {
namespace {

struct CalibrateCommand {
  measured::CalibrateOptions options;
  bool quick = false;
  bool collectives = false;          ///< of the processes that mpirun started
  std::vector<std::string> formats;  ///< of weights as they are stored
  std::string runs;                  ///< file of measured runs
  std::string machine;               ///< that they ran on
  std::vector<Option> measuring;
  std::vector<Option> kernels;  ///< of them, those of kernels alone
  OutputOptions output;
};

std::string note_on(const StoredFile& stored) {
  if (stored.kept_because.empty()) return fmt::format("stored in {}", stored.file.string());
  return fmt::format("not stored, because {}: the previous profile is kept ({})",
                     stored.kept_because, stored.file.string());
}

/// The machine of --machine, whose efficiencies can be fitted.
MachineProfile machine_to_fit(const std::string& name) {
  MachineProfile machine = catalogue_machine(name);
  if (std::holds_alternative<DatasheetRates>(machine.rates)) return machine;
  throw_invalid_input("a calibrated machine's rates are measured, without efficiencies to fit",
                      "give a machine of the catalogue, or its file");
}

/// Replaces the machine's efficiencies for the purpose of `fitted`.
MachineProfile with_fitted(MachineProfile machine, const FittedEfficiency& fitted) {
  auto& sheet = std::get<DatasheetRates>(machine.rates);
  std::erase_if(sheet.fitted,
                [&](const FittedEfficiency& one) { return one.purpose == fitted.purpose; });
  sheet.fitted.push_back(fitted);
  return machine;
}

/// The file gets the machine, standard output the comparison of its runs.
void fit_machine(const CalibrateCommand& command) {
  if (command.machine.empty()) {
    throw_invalid_input("--from requires --machine", "add --machine, such as --machine b200");
  }
  refuse_given(command.measuring, "applies only to a measurement of this machine",
               "leave it out, or leave out --from");
  OutputOptions screen = command.output;
  screen.file.clear();
  std::optional<detail::OutputFile> file;
  if (!command.output.file.empty()) file.emplace(command.output.file);
  // Before the runs, whose predictions would repeat its errors and notes.
  MachineProfile machine = machine_to_fit(command.machine);
  const RateFit fit = fit_rates(read_measured_runs(command.runs, machine_meant(command.machine)));
  CalibrationReport report{with_fitted(std::move(machine), fit.efficiency), fit};
  report.machine.produced_by = current_invocation();
  std::vector<std::string> notes;
  if (file) {
    file->write(profile_to_json(report.machine));
    file->commit();
    notes.push_back(fmt::format("predict with --machine {}", command.output.file));
  } else {
    notes.emplace_back("add -o FILE to store the machine, for --machine FILE");
  }
  write_output(render(report, render_options(screen, Detail::operators)), notes, screen);
}

/// Measures on all processes; the first adds the tables to its profile, and writes the report.
void calibrate_collectives(const CalibrateCommand& command) {
  refuse_given(command.kernels, "applies only to kernels, and --collectives measures none",
               "leave it out, or leave out --collectives");
  if (distributed::launched_processes() < 2) {
    throw_invalid_input("--collectives measures between processes, and one was started",
                        "start several: mpirun -n 2 headroom calibrate --collectives");
  }
  JoinedProcesses all;
  all.run([&] {
    std::optional<ReportOutput> output;
    MachineProfile machine;
    all.together([&] {
      if (!all.reports()) return;
      output.emplace(command.output);
      prepare_profile_folder();
      machine = own_machine(command.options.backend);
    });
    CollectiveRates rates = distributed::measure_collectives(
        all.processes(), command.quick ? measured::Effort::quick : measured::Effort::full);
    all.together([&] {
      if (!all.reports()) return;
      rates.date = measured::utc_timestamp();
      machine.collectives = merged(machine.collectives.value_or(CollectiveRates{}), rates);
      const StoredFile stored = store_extended_profile(machine, name_of(command.options.backend));
      output->write(render(machine, render_options(command.output, Detail::summary)),
                    {note_on(stored)});
    });
  });
}

/// Adds GEMMs of weights as they are stored to this machine's profile.
void calibrate_formats(const CalibrateCommand& command) {
  if (!command.options.threads.empty()) {
    throw_invalid_input("--weights measures with the numbers of threads of the stored profile",
                        "leave out --threads");
  }
  (void)types_named(command.formats);  // refuses a wrong name before the work
  ReportOutput output(command.output);
  prepare_profile_folder();
  MachineProfile machine = own_machine(command.options.backend);
  measure_stored_gemms(machine, command.formats, command.options);
  const StoredFile stored = store_extended_profile(machine, name_of(command.options.backend));
  output.write(render(machine, render_options(command.output, Detail::operators)),
               {note_on(stored)});
}

/// Copies of one program would measure each other.
void refuse_copies() {
  const std::int64_t launched = distributed::launched_processes();
  if (launched == 1) return;
  throw_invalid_input(
      fmt::format("{} processes were started, and kernels are measured by one", launched),
      "start headroom without mpirun, or add --collectives to measure between the processes");
}

void run_calibrate(CalibrateCommand& command, int& status) {
  prepare_threads(0);
  if (!command.runs.empty()) return fit_machine(command);
  if (!command.machine.empty()) {
    throw_invalid_input("--machine applies only to --from: calibrate measures this machine",
                        "add --from FILE, or leave out --machine");
  }
  if (command.collectives) return calibrate_collectives(command);
  refuse_copies();
  if (command.quick) command.options.effort = measured::Effort::quick;
  if (!command.formats.empty()) return calibrate_formats(command);
  ReportOutput output(command.output);
  const auto [profile, stored, warnings] = calibrate_here(command.options, Storing::required);
  std::vector<std::string> notes{note_on(stored)};
  if (!stored.kept_because.empty()) status = 1;
  notes.insert(notes.end(), warnings.begin(), warnings.end());
  output.write(render(profile, render_options(command.output, Detail::operators)), notes);
}

}  // namespace

void add_calibrate(Command root, int& status) {
  auto options = std::make_shared<CalibrateCommand>();
  Command command =
      root.add_command("calibrate", "Measure this machine's rates for time predictions");
  const Option backend = add_backend_option(command, options->options.backend);
  command.add_text("--from", "RUNS.jsonl", options->runs,
                   "Fit a device's efficiencies to measured runs instead: lines of {\"command\": "
                   "[\"fit\", …], \"time_s\": …} or {\"command\": [\"serve\", …], "
                   "\"output_tokens_per_s\": …}, or with ttft_s, tpot_s, tokens_per_s, or an "
                   "\"import\": FILE of a benchmark that `compare` reads");
  command.add_text("--machine", "MACHINE", options->machine,
                   "With --from: the device of the runs, a name of `headroom machines` or a file");
  const auto set_threads = [options](const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      options->options.threads.push_back(
          static_cast<int>(parse_count("--threads", word, kThreads)));
    }
  };
  options->kernels.push_back(
      command.add_list("--threads", "N", set_threads,
                       "Numbers of threads, separated by commas (1, 2, 4, … and all processors)"));
  const auto set_formats = [options](const std::vector<std::string>& words) {
    options->formats.insert(options->formats.end(), words.begin(), words.end());
  };
  options->kernels.push_back(
      command.add_list("--weights", "FORMAT", set_formats,
                       "Measure GEMMs of weights stored in these formats instead, such as q4_k, "
                       "and add them to the profile"));
  options->measuring = options->kernels;
  options->measuring.push_back(backend);
  options->measuring.push_back(
      command.add_flag("--quick", options->quick, "A coarser profile in a fraction of the time"));
  options->measuring.push_back(
      command.add_flag("--collectives", options->collectives,
                       "Measure all-reduce, all-gather, reduce-scatter, all-to-all and sends "
                       "between the processes of mpirun, "
                       "and add them to the profile"));
  add_output_options(command, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom calibrate\n"
      "  headroom calibrate --quick --threads 1,4\n"
      "  headroom calibrate --weights q4_k,q6_k\n"
      "  headroom analyze bert-base --machine here\n"
      "  headroom calibrate --from runs.jsonl --machine b200 -o my-b200.json\n"
      "  mpirun -n 2 headroom calibrate --collectives\n"
      "\n"
      "Exit status: 1 if an existing, better profile is kept.");
  command.on_run([options, &status] { run_calibrate(*options, status); });
}

}  // namespace headroom::cli
