// headroom calibrate: measures this machine once and stores its profile.
#include <fmt/format.h>

#include <memory>

#include "calibrate/calibrate.h"
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

void run_calibrate(CalibrateCommand& command) {
  if (command.quick) command.options.effort = measured::Effort::quick;
  const auto [profile, file, warnings] = calibrate_here(command.options);
  std::vector<std::string> notes{fmt::format("stored in {}", file.string())};
  notes.insert(notes.end(), warnings.begin(), warnings.end());
  write_output(render(profile, render_options(command.output, Detail::operators)), notes,
               command.output);
}

}  // namespace

void add_calibrate(Command root) {
  auto options = std::make_shared<CalibrateCommand>();
  Command command =
      root.add_command("calibrate", "Measure this machine's rates, for predictions of time");
  add_backend_option(command, options->options.backend);
  const auto set_threads = [options](const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      options->options.threads.push_back(
          static_cast<int>(parse_count("--threads", word, kThreads)));
    }
  };
  command.add_list("--threads", "N", set_threads,
                   "Numbers of threads, separated by commas (1 and all processors)");
  command.add_flag("--quick", options->quick, "A coarser profile in a fraction of the time");
  add_output_options(command, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom calibrate\n"
      "  headroom calibrate --quick --threads 1,4\n"
      "  headroom analyze bert-base --machine here");
  command.on_run([options] { run_calibrate(*options); });
}

}  // namespace headroom::cli
