// headroom machines [TEXT | list | show]: this machine's profiles, and the catalogue.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "headroom/error.h"
#include "options.h"
#include "own_machine.h"

namespace headroom::cli {
namespace {

struct MachinesCommand {
  std::string name;
  std::string text;  ///< part of the names to list
  OutputOptions output;
};

void find_in_catalogue(const MachinesCommand& command) {
  if (command.text == "here") {
    throw_invalid_input("\"here\" is this machine, and a word searches the catalogue",
                        "`headroom machines show here` prints its profile");
  }
  const MachinesReport report{{}, find_machines(command.text)};
  write_output(render(report, render_options(command.output, Detail::summary)), {}, command.output);
}

void list_machines(const OutputOptions& output) {
  MachinesReport report;
  std::vector<std::string> notes;
  for (const measured::Backend backend : {measured::Backend::onednn, measured::Backend::eigen}) {
    try {
      if (auto own = stored_profile(backend)) report.own.push_back(*std::move(own));
    } catch (const Error& error) {
      notes.push_back(fmt::format("{}: run `headroom calibrate --backend {}` to replace it",
                                  error.what(), name_of(backend)));
    }
  }
  report.catalogue = catalogue_machines();
  if (report.own.empty() && notes.empty()) {
    notes.emplace_back("this machine is not calibrated: run `headroom calibrate`");
  }
  write_output(render(report, render_options(output, Detail::summary)), notes, output);
}

void show_machine(const MachinesCommand& command) {
  const MachineProfile profile = machine_named(command.name, default_backend());
  write_output(render(profile, render_options(command.output, Detail::operators)), {},
               command.output);
}

}  // namespace

void add_machines(Command root) {
  auto options = std::make_shared<MachinesCommand>();
  Command command =
      root.add_command("machines", "List machines that headroom can predict times for");
  command.make_subcommand_optional();
  const char* const text = "Part of a catalogue machine's name, in any case";
  command.add_optional_argument("text", "TEXT", options->text, text);
  add_output_options(command, options->output);
  Command list = command.add_command("list", "This machine's profiles and the catalogue");
  list.add_optional_argument("text", "TEXT", options->text, text);
  add_output_options(list, options->output);
  Command show = command.add_command("show", "Show one machine's rates");
  show.add_argument(
      "machine", "MACHINE", [options](const std::string& name) { options->name = name; },
      "here, a name of the list, or a file");
  add_output_options(show, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom machines\n"
      "  headroom machines h100\n"
      "  headroom machines show h100-80gb\n"
      "  headroom machines show here --format json");
  command.on_run([options, show] {
    if (show.is_parsed()) {
      show_machine(*options);
    } else if (!options->text.empty()) {
      find_in_catalogue(*options);
    } else {
      list_machines(options->output);
    }
  });
}

}  // namespace headroom::cli
