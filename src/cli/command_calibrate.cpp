// headroom calibrate: what this machine can do, measured once and kept.
#include <fmt/format.h>

#include <memory>

#include "calibrate.h"
#include "commands.h"
#include "headroom/error.h"
#include "options.h"
#include "own_machine.h"
#include "progress.h"

namespace headroom::cli {
namespace {

struct CalibrateCommand {
  measured::CalibrateOptions options;
  bool backend_chosen = false;
  bool quick = false;
  OutputOptions output;
};

void run(CalibrateCommand& command) {
  if (!command.backend_chosen) command.options.backend = default_backend();
  if (command.quick) command.options.effort = measured::Effort::quick;
  const MachineProfile profile = calibrate_here(command.options);
  const auto file = store_own_profile(profile, name_of(command.options.backend));
  const std::vector<std::string> notes{fmt::format("stored in {}", file.string())};
  write_output(render(profile, render_options(command.output, Detail::operators)), notes,
               command.output);
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto command = std::make_shared<CalibrateCommand>();
  CLI::App* calibrate =
      app.add_subcommand("calibrate", "Measure what this machine can do, for predictions of time");
  add_choice<measured::Backend>(
      *calibrate, "--backend", command->options.backend,
      {{"eigen", measured::Backend::eigen}, {"onednn", measured::Backend::onednn}},
      "Library of matrix products (onednn where it is there)")
      ->each([command](const std::string&) { command->backend_chosen = true; });
  calibrate
      ->add_option("--threads", command->options.threads,
                   "Numbers of threads, with commas between (1 and all processors)")
      ->delimiter(',')
      ->type_name("NUMBERS")
      ->check(CLI::Range(1, 4096));
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
