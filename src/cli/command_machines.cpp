// headroom machines [list|show]: this machine's profile, and the catalogue.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "options.h"
#include "own_machine.h"

namespace headroom::cli {
namespace {

struct MachinesCommand {
  std::string name;
  OutputOptions output;
};

void list(const OutputOptions& output) {
  MachinesReport report;
  for (const measured::Backend backend : {measured::Backend::onednn, measured::Backend::eigen}) {
    if (auto own = load_own_profile(name_of(backend))) report.own.push_back(*std::move(own));
  }
  report.catalogue = catalogue_machines();
  std::vector<std::string> notes;
  if (report.own.empty()) notes.emplace_back("this machine is not calibrated: headroom calibrate");
  write_output(render(report, render_options(output, Detail::summary)), notes, output);
}

void show(const MachinesCommand& command) {
  const MachineProfile profile = machine_named(command.name, default_backend());
  write_output(render(profile, render_options(command.output, Detail::operators)), {},
               command.output);
}

}  // namespace

void add_machines(CLI::App& app) {
  auto command = std::make_shared<MachinesCommand>();
  CLI::App* machines = app.add_subcommand("machines", "List machines to predict times for");
  machines->require_subcommand(0, 1);
  add_output_options(*machines, command->output);
  CLI::App* list_command = machines->add_subcommand("list", "Measured ones and the catalogue");
  add_output_options(*list_command, command->output);
  CLI::App* show_command = machines->add_subcommand("show", "What one machine can do");
  show_command->add_option("machine", command->name, "here, a name of the list, or a file")
      ->type_name("MACHINE")
      ->required();
  add_output_options(*show_command, command->output);
  machines->footer(
      "Examples:\n"
      "  headroom machines\n"
      "  headroom machines show h100-80gb\n"
      "  headroom machines show here --format json");
  machines->callback([command, show_command] {
    if (show_command->parsed()) {
      show(*command);
    } else {
      list(command->output);
    }
  });
}

}  // namespace headroom::cli
