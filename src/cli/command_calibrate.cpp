// headroom calibrate: measures this machine once and stores its profile.
#include <fmt/format.h>

#include <memory>

#include "calibrate/calibrate.h"
#include "commands.h"
#include "output.h"
#include "own_machine.h"
#include "run_options.h"

namespace headroom::cli {
namespace {

struct CalibrateCommand {
  measured::CalibrateOptions options;
  bool quick = false;
  OutputOptions output;
};

std::string note_on(const StoredFile& stored) {
  if (stored.kept_because.empty()) return fmt::format("stored in {}", stored.file.string());
  return fmt::format("not stored, since {}: the profile before stays ({})", stored.kept_because,
                     stored.file.string());
}

void run_calibrate(CalibrateCommand& command, int& status) {
  if (command.quick) command.options.effort = measured::Effort::quick;
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
      "  headroom analyze bert-base --machine here\n"
      "\n"
      "Exit status: 1 if a better profile stays in place of the new one.");
  command.on_run([options, &status] { run_calibrate(*options, status); });
}

}  // namespace headroom::cli
