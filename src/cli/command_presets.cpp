// headroom presets [list | show NAME]
#include <memory>

#include "commands.h"
#include "headroom/error.h"
#include "options.h"
#include "similar.h"

namespace headroom::cli {
namespace {

struct PresetsOptions {
  std::string name;
  OutputOptions output;
};

Preset require_preset(const std::string& name) {
  if (auto preset = find_preset(name)) return std::move(*preset);
  std::vector<std::string> known;
  for (const Preset& preset : list_presets()) {
    known.push_back(preset.name);
    known.insert(known.end(), preset.aliases.begin(), preset.aliases.end());
  }
  const std::string guess = detail::did_you_mean(name, known);
  throw Error(ErrorCode::invalid_input, "no preset of this name", name,
              guess.empty() ? "`headroom presets` lists them" : guess);
}

void write_presets(const std::vector<Preset>& presets, const OutputOptions& output) {
  const PresetsReport report = make_presets_report(presets);
  write_output(render(report, render_options(output, Detail::summary)), {}, output);
}

}  // namespace

void add_presets(Command root) {
  auto options = std::make_shared<PresetsOptions>();
  Command command = root.add_command("presets", "List the models known by name");
  command.make_subcommand_optional();
  add_output_options(command, options->output);
  Command list = command.add_command("list", "All presets with their parameter counts");
  add_output_options(list, options->output);
  Command show = command.add_command("show", "Config, source and parameter count of one preset");
  show.add_argument(
      "name", "NAME", [options](const std::string& name) { options->name = name; },
      "The preset's name or an alias");
  add_output_options(show, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom presets\n"
      "  headroom presets show bert-base\n"
      "  headroom presets list --format csv");
  command.on_run([options, show] {
    write_presets(show.is_parsed() ? std::vector{require_preset(options->name)} : list_presets(),
                  options->output);
  });
}

}  // namespace headroom::cli
