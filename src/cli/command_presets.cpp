// headroom presets [TEXT | list | show NAME]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "commands.h"
#include "headroom/error.h"
#include "number_text.h"
#include "options.h"
#include "similar.h"

namespace headroom::cli {
namespace {

struct PresetsOptions {
  std::string name;
  PresetQuery query;
  OutputOptions output;
};

MatchedPreset require_preset(const std::string& name) {
  if (auto matched = match_preset(name)) return *std::move(matched);
  std::vector<std::string> known;
  for (const Preset& preset : list_presets()) {
    known.push_back(preset.name);
    known.insert(known.end(), preset.aliases.begin(), preset.aliases.end());
  }
  const std::string guess = detail::did_you_mean(name, known);
  throw Error(ErrorCode::invalid_input, "no preset has this name", name,
              guess.empty() ? "`headroom presets` lists them" : guess);
}

void show_preset(const PresetsOptions& options) {
  const MatchedPreset matched = require_preset(options.name);
  const PresetsReport report = make_presets_report({matched.preset});
  std::vector<std::string> notes;
  if (auto note = note_on(matched, options.name); !note.empty()) notes.push_back(std::move(note));
  write_output(render(report, render_options(options.output, Detail::operators)), notes,
               options.output);
}

void list_found(const PresetsOptions& options) {
  write_output(render(find_presets(options.query), render_options(options.output, Detail::summary)),
               {}, options.output);
}

/// The factor of "K", "M", "B" or "T", in either case; 1 for no unit, empty for another.
std::optional<double> unit_of(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, double>, 5> kUnits{
      {{"", 1}, {"k", 1e3}, {"m", 1e6}, {"b", 1e9}, {"t", 1e12}}};
  const std::string unit = detail::lower_case(word);
  const auto* const found =
      std::ranges::find(kUnits, unit, [](const auto& known) { return known.first; });
  return found == kUnits.end() ? std::nullopt : std::optional(found->second);
}

/// "8B", "560M", "1.5b" or a plain number of parameters.
Integer parse_parameters(const std::string& names, const std::string& word) {
  constexpr double kMost = 1e18;
  std::string_view rest = word;
  const double value = detail::take_decimal(rest).value_or(0);
  const double parameters = value * unit_of(rest).value_or(0);
  if (!(parameters >= 1) || parameters > kMost) {
    refuse_value(names,
                 fmt::format("\"{}\" is not a number of parameters, such as 8B or 560M", word));
  }
  return Integer{std::llround(parameters)};
}

void add_query_options(Command command, PresetsOptions& options) {
  command.add_text("--family", "TYPE", options.query.family,
                   "Only presets of this model_type's family, such as qwen3");
  const auto set_most = [&options](const std::string& word) {
    options.query.max_parameters = parse_parameters("--max-parameters", word);
  };
  command.add_text("--max-parameters", "N", set_most, "Only presets with at most N parameters: 8B");
  const Choices<PresetOrder> orders{{"name", PresetOrder::name},
                                    {"parameters", PresetOrder::parameters}};
  add_choice(command, "--sort", options.query.order, orders, "Order of the list (name)");
  add_output_options(command, options.output);
}

void write_types(const OutputOptions& output) {
  write_output(render(list_model_types(), render_options(output, Detail::summary)), {}, output);
}

}  // namespace

void add_presets(Command root) {
  auto options = std::make_shared<PresetsOptions>();
  Command command = root.add_command("presets", "List the models known by name");
  command.make_subcommand_optional();
  const char* const text = "Part of a name, alias or repository, in any case";
  command.add_optional_argument("text", "TEXT", options->query.text, text);
  add_query_options(command, *options);
  Command list = command.add_command("list", "All presets with their parameter counts");
  list.add_optional_argument("text", "TEXT", options->query.text, text);
  add_query_options(list, *options);
  Command show = command.add_command("show", "Config, source and parameter count of one preset");
  show.add_argument(
      "name", "NAME", [options](const std::string& name) { options->name = name; },
      "The preset's name, an alias or its repository");
  add_output_options(show, options->output);
  Command types = command.add_command("types", "The model types that configs may have");
  add_output_options(types, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom presets\n"
      "  headroom presets qwen --max-parameters 8B --sort parameters\n"
      "  headroom presets --family mixtral\n"
      "  headroom presets show bert-base\n"
      "  headroom presets types\n"
      "  headroom presets list --format csv");
  command.on_run([options, show, types] {
    if (types.is_parsed()) {
      write_types(options->output);
    } else if (show.is_parsed()) {
      show_preset(*options);
    } else {
      list_found(*options);
    }
  });
}

}  // namespace headroom::cli
