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
  throw Error(ErrorCode::invalid_input, "there is no such preset", name,
              guess.empty() ? "`headroom presets` lists them" : guess);
}

void run(const std::vector<Preset>& presets, const OutputOptions& output) {
  const PresetsReport report = make_presets_report(presets);
  write_output(render(report, render_options(output, Detail::summary)), {}, output);
}

}  // namespace

void add_presets(CLI::App& app) {
  auto options = std::make_shared<PresetsOptions>();
  CLI::App* command = app.add_subcommand("presets", "List the models that are known by name");
  command->require_subcommand(0, 1);
  add_output_options(*command, options->output);
  CLI::App* list = command->add_subcommand("list", "All presets, with their parameter counts");
  add_output_options(*list, options->output);
  CLI::App* show = command->add_subcommand("show", "One preset: its config, source and count");
  show->add_option("name", options->name, "The preset's name or an alias")
      ->type_name("NAME")
      ->required();
  add_output_options(*show, options->output);
  command->footer(
      "Examples:\n"
      "  headroom presets\n"
      "  headroom presets show bert-base\n"
      "  headroom presets list --format csv");
  command->callback([options, show] {
    if (show->parsed()) {
      run({require_preset(options->name)}, options->output);
    } else {
      run(list_presets(), options->output);
    }
  });
}

}  // namespace headroom::cli
