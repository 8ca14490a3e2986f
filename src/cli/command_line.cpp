#include "command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "foreign_options.h"
#include "headroom/error.h"
#include "help_text.h"
#include "similar.h"
#include "standard_streams.h"

namespace headroom::cli {
namespace {

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

/// Options and subcommands of `app`: the words that a mistyped one may mean.
std::vector<std::string> known_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  }
  const std::vector<std::string> commands = subcommand_names(app);
  words.insert(words.end(), commands.begin(), commands.end());
  return words;
}

/// The innermost command that was recognised before parsing failed.
const CLI::App& deepest_parsed(const CLI::App& app) {
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->parsed()) return deepest_parsed(*command);
  }
  return app;
}

/// The first argument that the parser had no place for, or that is nearly a subcommand and took an
/// optional argument's place; empty if another error stopped the parser.
std::string unknown_argument(const CLI::App& app, const CLI::App& command,
                             const std::vector<std::string>& arguments) {
  if (&command == &app && !arguments.empty() && !arguments.front().starts_with("-")) {
    return arguments.front();
  }
  std::vector<std::string> left = app.remaining(true);
  std::erase(left, "--");  // before positional arguments
  const std::vector<std::string> names = subcommand_names(command);
  for (const std::string& argument : left.empty() ? left : arguments) {
    const bool is_near = !argument.starts_with("-") && argument != command.get_name() &&
                         !detail::did_you_mean(argument, names).empty();
    if (is_near) return argument;
  }
  return left.empty() ? std::string() : left.front().substr(0, left.front().find('='));
}

/// " presets show" for that subcommand; empty for the program.
std::string path_of(const CLI::App& command) {
  if (command.get_parent() == nullptr) return {};
  return path_of(*command.get_parent()) + " " + command.get_name();
}

/// "MODEL_B is required" for the parser's "model_b is required": help shows MODEL_B.
std::string message_of(const CLI::App& command, const CLI::ParseError& error) {
  constexpr std::string_view kRequired = " is required";
  std::string message = error.what();
  const std::size_t repeated = message.find(": At Most 1 required but received");
  if (repeated != std::string::npos) return message.substr(0, repeated) + " is given twice";
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  for (const CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    const std::string shown = type.substr(0, type.find('|'));
    const bool is_missing =
        option->get_positional() && message == option->get_single_name() + std::string(kRequired);
    if (is_missing && std::ranges::none_of(shown, is_lower)) return shown + std::string(kRequired);
  }
  return message;
}

/// A hint that says how to get what is missing.
std::string hint_for_missing(const CLI::ParseError& error) {
  const std::string message = error.what();
  if (message == "model is required" || message == "model_b is required") {
    return "name a preset, such as bert-base (`headroom presets` lists them), a config.json, a "
           "folder with one, or a GGUF file";
  }
  if (message == "--machine is required") {
    return "add --machine with a name of `headroom machines`, such as h100-80gb, or here";
  }
  return {};
}

/// Returns whether `unknown` stands where `command` takes a subcommand: the program takes nothing
/// else, and other commands take optional arguments, too.
bool is_mistyped_command(const CLI::App& app, const CLI::App& command, const std::string& unknown) {
  if (unknown.empty() || unknown.starts_with("-")) return false;
  return &command == &app || !detail::did_you_mean(unknown, subcommand_names(command)).empty();
}

Error unknown_command(const CLI::App& command, const std::string& word) {
  std::string hint = detail::did_you_mean(word, subcommand_names(command));
  if (hint.empty()) hint = fmt::format("`headroom{} --help` lists the commands", path_of(command));
  return {ErrorCode::invalid_input, fmt::format("unknown command \"{}\"", word), {}, hint};
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error,
                  const std::vector<std::string>& arguments) {
  const CLI::App& command = deepest_parsed(app);
  // A bad value is an argument that is known.
  const bool bad_value = dynamic_cast<const CLI::ValidationError*>(&error) != nullptr;
  const std::string unknown = bad_value ? "" : unknown_argument(app, command, arguments);
  if (is_mistyped_command(app, command, unknown)) return unknown_command(command, unknown);
  const std::vector<std::string> known = known_words(command);
  std::string hint = hint_for_foreign_option(unknown, known);
  if (hint.empty()) hint = detail::did_you_mean_option(unknown, known);
  if (hint.empty() && unknown.empty()) hint = hint_for_missing(error);
  if (hint.empty()) {
    hint = fmt::format("`headroom{} --help` lists the options", path_of(command));
  }
  const std::string message = unknown.empty() ? message_of(command, error)
                                              : fmt::format("unknown argument \"{}\"", unknown);
  return {ErrorCode::invalid_input, message, {}, hint};
}

/// `word` as a shell reads it back.
std::string in_shell(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:%+@";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

OptionSummary summary_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  OptionSummary summary;
  if (option.get_positional()) summary.argument = option.get_single_name();
  summary.long_names = option.get_lnames();
  summary.short_names = option.get_snames();
  if (type.find('|') != std::string::npos) summary.words = CLI::detail::split(type, '|');
  summary.value = type;
  summary.group = option.get_group();
  summary.description = option.get_description();
  summary.has_value = option.get_expected_max() > 0;
  summary.is_required = option.get_required();
  return summary;
}

bool is_hidden(const CLI::App& command) { return command.get_group().empty(); }

/// "--seq,-s N"; an argument's value only.
std::string words_of(const CLI::Option& option) {
  const std::string value = option.get_expected_max() > 0 ? option.get_type_name() : "";
  if (option.get_positional()) {
    const std::string word = option.get_expected_max() > 1 ? value + "..." : value;
    return option.get_required() ? word : "[" + word + "]";
  }
  std::string words;
  for (const std::string& name : option.get_lnames())
    words += (words.empty() ? "--" : ", --") + name;
  for (const std::string& name : option.get_snames()) words += (words.empty() ? "-" : ", -") + name;
  return value.empty() ? words : words + " " + value;
}

CommandHelp help_of(const CLI::App& command) {
  CommandHelp help{"headroom" + path_of(command), command.get_description(), {}, {}, {},
                   command.get_footer()};
  for (const CLI::App* nested : command.get_subcommands({})) {
    if (is_hidden(*nested)) continue;
    help.commands.push_back({nested->get_name(), nested->get_description()});
  }
  for (const CLI::Option* option : command.get_options()) {
    const HelpEntry entry{words_of(*option), option->get_description()};
    if (option->get_positional()) {
      help.arguments.push_back(entry);
      continue;
    }
    const std::string title = option->get_group();
    auto group = std::ranges::find(help.groups, title, &HelpGroup::title);
    if (group == help.groups.end()) group = help.groups.insert(group, {title, {}});
    group->entries.push_back(entry);
  }
  // The options of every command, such as --help and --format, come last.
  const auto common = std::ranges::find(help.groups, "Options", &HelpGroup::title);
  if (common != help.groups.end()) std::rotate(common, common + 1, help.groups.end());
  return help;
}

/// Options of llama.cpp by names of several letters after one dash (common/arg.cpp), which CLI11
/// reads as an option of one letter and its value.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kLlamaCppNames{{
    {"-ngl", "--gpu-layers"},
    {"-ncmoe", "--n-cpu-moe"},
}};

void name_in_full(std::vector<std::string>& arguments) {
  for (std::string& word : arguments) {
    for (const auto& [name, full] : kLlamaCppNames) {
      if (word == name) word = full;
    }
  }
}

bool names_command(const CLI::App& app, const std::string& word) {
  const auto is_named = [&](const CLI::App* one) { return one->get_name() == word; };
  return !app.get_subcommands(is_named).empty();
}

/// The arguments as the parser takes them: `headroom help analyze` is `headroom analyze --help`,
/// and no argument at all asks for help. A word that is no command stays, for the parser to refuse.
std::vector<std::string> without_help_command(const CLI::App& app,
                                              std::vector<std::string> arguments) {
  if (arguments.empty()) return {"--help"};
  if (arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  const bool is_known = arguments.empty() || names_command(app, arguments.front());
  if (is_known) arguments.emplace_back("--help");
  return arguments;
}

CommandSummary summary_of(const CLI::App& command) {
  CommandSummary summary{
      command.get_name(), command.get_description(), command.get_footer(), {}, {}};
  for (const CLI::Option* option : command.get_options()) {
    summary.options.push_back(summary_of(*option));
  }
  for (const CLI::App* nested : command.get_subcommands({})) {
    if (!is_hidden(*nested)) summary.subcommands.push_back(summary_of(*nested));
  }
  return summary;
}

}  // namespace

void refuse_value(const std::string& names, const std::string& message) {
  throw CLI::ValidationError(names.substr(0, names.find(',')), message);
}

Option& Option::group(const std::string& heading) {
  option_->group(heading);
  return *this;
}

Option& Option::require() {
  option_->required();
  return *this;
}

Option& Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}

bool Option::is_given() const { return option_->count() > 0; }

std::string Option::name() const { return "--" + option_->get_lnames().front(); }

void refuse_given(const std::vector<Option>& options, const std::string& reason,
                  const std::string& hint) {
  const auto given = std::ranges::find_if(options, &Option::is_given);
  if (given != options.end()) throw_invalid_input(given->name() + " " + reason, hint);
}

Command Command::add_command(const std::string& name, const std::string& description) {
  return Command(*app_->add_subcommand(name, description));
}

void Command::make_subcommand_optional() { app_->require_subcommand(0, 1); }

void Command::add_argument(const std::string& name, const std::string& value, const SetText& set,
                           const std::string& description) {
  app_->add_option_function<std::string>(name, set, description)->type_name(value)->required();
}

Option Command::add_optional_argument(const std::string& name, const std::string& value,
                                      std::string& target, const std::string& description) {
  return Option(*app_->add_option(name, target, description)->type_name(value));
}

void Command::add_arguments(const std::string& name, const std::string& value,
                            std::vector<std::string>& target, int most,
                            const std::string& description) {
  CLI::Option* const option =
      app_->add_option(name, target, description)->type_name(value)->required();
  if (most > 0) option->expected(1, most);
}

Option Command::add_text(const std::string& names, const std::string& value, const SetText& set,
                         const std::string& description) {
  return Option(*app_->add_option_function<std::string>(names, set, description)->type_name(value));
}

Option Command::add_text(const std::string& names, const std::string& value, std::string& target,
                         const std::string& description) {
  return Option(*app_->add_option(names, target, description)->type_name(value));
}

Option Command::add_optional_text(const std::string& names, const std::string& value,
                                  const SetText& set, const std::string& description) {
  return Option(*app_->add_option_function<std::string>(names, set, description)
                     ->expected(0, 1)
                     ->type_name(value));
}

Option Command::add_list(const std::string& names, const std::string& value, const SetList& set,
                         const std::string& description) {
  return Option(*app_->add_option_function<std::vector<std::string>>(names, set, description)
                     ->delimiter(',')
                     ->allow_extra_args(false)  // the next word may be the model
                     ->type_name(value));
}

Option Command::add_flag(const std::string& names, bool& target, const std::string& description) {
  return Option(*app_->add_flag(names, target, description));
}

void Command::set_footer(const std::string& text) { app_->footer(text); }

namespace {

/// Names of options, of this thread: programs call commands from several threads.
struct OptionUse {
  std::vector<std::string> left_out;
  std::vector<std::string> determined;  ///< by other options
};

OptionUse& option_use() {
  thread_local OptionUse use;
  return use;
}

void leave_out_determined() {
  OptionUse& use = option_use();
  std::erase_if(use.left_out, [&](const std::string& name) {
    return std::ranges::find(use.determined, name) != use.determined.end();
  });
}

std::vector<std::string> find_left_out(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    const bool has_value = option->get_expected_max() > 0 && !option->get_lnames().empty();
    if (has_value && option->count() == 0) names.push_back(option->get_lnames().front());
  }
  return names;
}

}  // namespace

const std::vector<std::string>& options_left_out() { return option_use().left_out; }

void count_as_given(const std::vector<std::string>& names) {
  std::vector<std::string>& determined = option_use().determined;
  determined.insert(determined.end(), names.begin(), names.end());
  leave_out_determined();
}

void Command::on_run(std::function<void()> action) {
  app_->callback([app = app_, action = std::move(action)] {
    option_use().left_out = find_left_out(*app);
    leave_out_determined();
    action();
  });
}

bool Command::is_parsed() const { return app_->parsed(); }

std::string Command::restated(const std::vector<OptionValue>& changes) const {
  std::string line = fmt::format("headroom {}", app_->get_name());
  const auto is_changed = [&](const CLI::Option& option) {
    return std::ranges::any_of(
        changes, [&](const OptionValue& change) { return option.check_name(change.name); });
  };
  std::vector<const CLI::Option*> seen;
  for (const CLI::Option* option : app_->parse_order()) {
    const bool repeated = std::ranges::find(seen, option) != seen.end();
    seen.push_back(option);
    if (repeated || is_changed(*option)) continue;
    if (!option->get_positional()) line += " --" + option->get_lnames().front();
    if (option->get_expected_max() == 0) continue;  // a flag
    for (const std::string& value : option->results()) {
      if (!value.empty()) line += " " + in_shell(value);  // an option may stand alone
    }
  }
  for (const OptionValue& change : changes) {
    if (!change.value.empty()) line += " " + change.name + " " + change.value;
  }
  return line;
}

void Command::hide() { app_->group(""); }

CommandSummary Command::summary() const { return summary_of(*app_); }

Application::Application(const std::string& name, const std::string& description,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_version_flag("--version,-V", version, "Print the version");
  app_->set_help_flag("--help,-h", "Print the usual options");
  app_->set_help_all_flag("--help-all", "Print all options");
  app_->require_subcommand(1);
  app_->option_defaults()->always_capture_default(false);
}

Application::~Application() = default;

void Application::run(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = without_help_command(*app_, arguments);
  name_in_full(words);
  try {
    option_use() = {};
    // CLI11 takes its arguments in reverse order.
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::CallForHelp&) {
    write_standard_output(
        help_text(help_of(deepest_parsed(*app_)), HelpScope::usual, terminal_width()));
  } catch (const CLI::CallForAllHelp&) {
    write_standard_output(
        help_text(help_of(deepest_parsed(*app_)), HelpScope::all, terminal_width()));
  } catch (const CLI::CallForVersion& version) {
    write_standard_output(fmt::format("{}\n", version.what()));
  } catch (const CLI::ParseError& error) {
    throw usage_error(*app_, error, words);
  }
}

}  // namespace headroom::cli
