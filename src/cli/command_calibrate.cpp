// headroom calibrate: what this machine can do, measured once and kept.
#include <fmt/format.h>

#include <memory>

#include "calibrate.h"
#include "commands.h"
#include "own_machine.h"
#include "run_options.h"

namespace headroom::cli {
namespace {

struct CalibrateCommand {
  measured::CalibrateOptions options;
  bool quick = false;
  OutputOptions output;
};

void run(CalibrateCommand& command) {
  if (command.quick) command.options.effort = measured::Effort::quick;
  const auto [profile, file, warnings] = calibrate_here(command.options);
  std::vector<std::string> notes{fmt::format("stored in {}", file.string())};
  notes.insert(notes.end(), warnings.begin(), warnings.end());
  write_output(render(profile, render_options(command.output, Detail::operators)), notes,
               command.output);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto command = std::make_shared<CalibrateCommand>();
  CLI::App* calibrate =
      app.add_subcommand("calibrate", "Measure what this machine can do, for predictions of time");
  add_backend_option(*calibrate, command->options.backend);
  calibrate
      ->add_option("--threads", command->options.threads,
                   "Numbers of threads, with commas between (1 and all processors)")
      ->delimiter(',')
      ->type_name("NUMBERS")
      ->check(CLI::Range(kThreads.least, kThreads.most));
  calibrate->add_flag("--quick", command->quick, "A rougher profile in a fraction of the time");
  add_output_options(*calibrate, command->output);
  calibrate->footer(
      "Examples:\n"
      "  headroom calibrate\n"
      "  headroom calibrate --quick --threads 1,4\n"
      "  headroom analyze bert-base --machine here");
  calibrate->callback([command] { run(*command); });
}

}  // namespace headroom::cli
